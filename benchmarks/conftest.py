"""Print the recorded ratios of each benchmark next to its time; on a shared machine, only the ratios are comparable."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    recorded = [bench for bench in getattr(session, "benchmarks", ()) if bench.extra_info]
    if recorded:
        terminalreporter.section("recorded ratios")
    for bench in recorded:
        terminalreporter.write_line(bench.name)
        for key, value in bench.extra_info.items():
            terminalreporter.write_line(f"    {key.replace('_', ' ')}: {value}")
