"""Print what each benchmark notes beside its time: the ratios, which are what counts on a shared machine."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    noted = [bench for bench in getattr(session, "benchmarks", ()) if bench.extra_info]
    if noted:
        terminalreporter.section("beside the times")
    for bench in noted:
        terminalreporter.write_line(bench.name)
        for key, value in bench.extra_info.items():
            terminalreporter.write_line(f"    {key.replace('_', ' ')}: {value}")
