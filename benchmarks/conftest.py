"""Print the recorded ratios of each benchmark next to its time, and the programs and the machine that they compare.

On a shared machine, only the ratios are comparable. They depend on versions, on the BLAS kernel and on the processor.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ep_bench.results.provenance import environment

COMPARED = (
    "numpy", "scipy", "numba", "scikit-learn",
    "torch", "jax", "gpytorch", "GPy", "numpyro", "blackjax", "laplace-torch",
)  # fmt: skip


def versions():
    """Yield name and version of each package that is installed."""
    for name in COMPARED:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def environment_lines():
    """Return the versions of the compared packages, the BLAS libraries with their kernels, and the processor."""
    found = environment()
    machine = found["machine"]
    return [
        f"packages: {', '.join(versions())}",
        f"BLAS: {', '.join(found['blas'])}",
        f"processor: {machine['processor']}, {machine['cores']} cores, {machine['system']}",
    ]


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    measured = list(getattr(session, "benchmarks", ()))
    recorded = [bench for bench in measured if bench.extra_info]
    if recorded:
        terminalreporter.section("recorded ratios")
    for bench in recorded:
        terminalreporter.write_line(bench.name)
        for key, value in bench.extra_info.items():
            terminalreporter.write_line(f"    {key.replace('_', ' ')}: {value}")
    if measured:
        terminalreporter.section("environment")
        for line in environment_lines():
            terminalreporter.write_line(line)
