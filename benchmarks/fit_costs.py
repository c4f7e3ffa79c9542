"""CPU time and memory of one fit of every method by the number of training points, with default options.

The data have eight inputs. A curve ends at the first number of points whose fit takes more than ``LIMIT`` CPU seconds,
or would if its cost grew linearly from the number before; this one has no time. Each fit is in a process of its own,
with one thread, after compilation. ``make costs`` measures the methods that the file lacks; methods that are named are
measured again.

    make costs METHODS="gp pbp"
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.conftest import environment_lines
from ep_bench import estimator, methods
from ep_bench.processes.tree import peak_megabytes
from ep_bench.types import Array

POINTS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
INPUTS = 8
TEST_POINTS = 1_000
LIMIT = 60.0  # CPU seconds of one fit
FILE = Path(__file__).parents[1] / "ep_bench" / "runner" / "fit_costs.json"
COSTS = ("fit_cpu_seconds", "predict_cpu_seconds", "peak_mb")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

Row = dict[str, str | int | float]


def data(n: int) -> tuple[Array, Array]:
    """Return inputs (n, INPUTS) and targets (n,): a smooth function of four of the inputs, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, INPUTS))
    function = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return X, function + 0.3 * rng.standard_normal(n)


def measure(name: str, n: int) -> dict[str, float]:
    """Return the costs of one fit in this process, which SIGPROF ends after LIMIT CPU seconds."""
    warnings.simplefilter("ignore")
    X, y = data(n + TEST_POINTS)
    estimator.warm_up(name, {}, "regression")
    Path("/proc/self/clear_refs").write_text("5")  # so that the peak of memory is that of the fit (Linux)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    started = time.process_time()
    model = estimator.model_class(name, "regression")(random_state=0).fit(X[:n], y[:n])
    fitted = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    model.predict_dist(X[n:])
    seconds = fitted - started, time.process_time() - fitted
    return dict(zip(COSTS, (*(float(f"{value:.3g}") for value in seconds), round(peak_megabytes())), strict=True))


def curve(name: str) -> Iterator[Row]:
    """Yield the rows of a method."""
    expected = 0.0
    for n in POINTS:
        row: Row = {"method": name, "n": n}
        found = None if expected > LIMIT else child(name, n)
        if found is None:
            yield row
            return
        yield row | found
        expected = found["fit_cpu_seconds"] * POINTS[min(POINTS.index(n) + 1, len(POINTS) - 1)] / n


def child(name: str, n: int) -> dict[str, float] | None:
    """Return the costs of one fit in a new process, None if it takes more than LIMIT CPU seconds."""
    command = [sys.executable, "-m", "benchmarks.fit_costs", "--one", name, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD, check=False)
    if done.returncode == -signal.SIGPROF:
        return None
    if done.returncode:
        raise SystemExit(f"{name}, {n} points: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def main(*names: str) -> None:
    """Write environment and rows to the file that plans read, and replace the rows of the named methods."""
    rows: list[Row] = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
    known = {row["method"] for row in rows}
    new = [name for name in methods.REGISTRY if name not in known and "regression" in methods.get(name).tasks]
    for name in names or new:
        rows = [row for row in rows if row["method"] != name]
        for row in curve(name):
            print(row, flush=True)
            rows.append(row)
        found = {"environment": environment_lines(), "inputs": INPUTS, "limit": LIMIT, "rows": rows}
        FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main(*sys.argv[1:])
