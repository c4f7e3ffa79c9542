"""Whole studies: table 1 of the PBP paper on two cores, and a fit of the size of year.

``year`` has the shape of the real data set (463,715 training rows, 90 inputs, 100 units, 40 epochs) and synthetic rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

YEAR = """
import json, resource, sys, time
import numpy as np
from ep_bench import Estimator
rng = np.random.default_rng(0)
X = rng.standard_normal((463_715, 90))
y = X[:, :10] @ rng.standard_normal(10) + np.sin(3 * X[:, 0]) + rng.standard_normal(len(X))
Estimator("pbp", hidden=[100], epochs=1, random_state=0).fit(X[:50], y[:50])
started, cpu = time.perf_counter(), time.process_time()
Estimator("pbp", hidden=[100], epochs=40, random_state=0).fit(X, y)
print(json.dumps({
    "wall": time.perf_counter() - started,
    "cpu": time.process_time() - cpu,
    "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


@pytest.mark.skipif(not os.environ.get("EP_BENCH_DATA"), reason="needs the real data: set EP_BENCH_DATA")
def bench_table1_on_two_cores(benchmark, tmp_path):
    def run(folder: Path) -> None:
        command = [sys.executable, "-m", "ep_bench", "run", str(ROOT / "configs" / "pbp_2015" / "pbp_table1.yaml")]
        subprocess.run([*command, "--jobs", "2", "--quiet", "--results", str(folder)], check=True)

    benchmark.pedantic(run, args=(tmp_path,), rounds=1)
    benchmark.extra_info["cells"] = 165


def bench_year(benchmark):
    def run() -> dict[str, float]:
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, "-c", YEAR]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **one})
        return json.loads(done.stdout)

    started = time.perf_counter()
    found = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["fit_wall_seconds"] = round(found["wall"], 1)
    benchmark.extra_info["fit_cpu_seconds"] = round(found["cpu"], 1)
    benchmark.extra_info["us_per_point_and_epoch_cpu"] = round(found["cpu"] / 463_715 / 40 * 1e6, 2)
    benchmark.extra_info["peak_gib_data_included"] = round(found["peak_gib"], 2)
    benchmark.extra_info["seconds_with_making_rows"] = round(time.perf_counter() - started, 1)
