"""Throughput with 1, 2, 4 and 8 workers, local pool and dask cluster: cells that do nothing, and cells that wait.

Cells that do nothing show the overhead of the runner (cells per second, once all workers are running). Cells that sleep
for a fifth of a second need no core and show whether the run uses all workers: the optimum is 5 cells per second and
worker.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ep_bench.results import store
from ep_bench.runner.pool import run_jobs
from tests.runner.support import CONSTANT, job

WAITING = """
import time
from ep_bench.baselines import ConstantRegressor

class Waits(ConstantRegressor):
    def fit(self, X, y):
        time.sleep(0.2)
        return super().fit(X, y)
"""


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("backend", ["local", "dask"])
def bench_throughput(benchmark, tmp_path: Path, backend: str, workers: int):
    (tmp_path / "waiting.py").write_text(WAITING)

    def rate(use: str, count: int) -> float:
        """Return the cells per second after every worker has finished its first two."""
        jobs = [job(use, base=tmp_path, split=i % 20, tag=i) for i in range(count)]
        begun = warm = 2 * workers
        started = time.perf_counter()
        for done, record in enumerate(run_jobs(jobs, n_jobs=workers, backend=backend), start=1):
            assert record.row["status"] == "ok", record.row["reason"]
            store.write_record(tmp_path, record)
            if done == warm:
                begun, started = done, time.perf_counter()
        return (count - begun) / (time.perf_counter() - started)

    nothing = benchmark.pedantic(rate, args=(CONSTANT, 300 * workers), rounds=1)
    benchmark.extra_info["nothing_cells_per_second"] = round(nothing, 1)
    benchmark.extra_info["nothing_ms_per_cell"] = round(1000 / nothing, 2)
    benchmark.extra_info["waiting_cells_per_second"] = round(rate("./waiting.py:Waits", 30 * workers), 1)
    benchmark.extra_info["waiting_ideal"] = 5 * workers
