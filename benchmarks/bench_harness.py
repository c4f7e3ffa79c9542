"""Overhead of the runner: a cell that does nothing, ``ep-bench --help``, a report of 3,000 cells.

The extra columns are milliseconds per cell with 1 and 2 jobs, and seconds of a command compared with those of a bare
interpreter.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from ep_bench.results import store
from ep_bench.runner.pool import run_jobs
from tests.report.synthetic import NAMES, make_study
from tests.runner.support import job


@pytest.mark.parametrize("n_jobs", [1, 2])
def bench_cell_that_does_nothing(benchmark, tmp_path, n_jobs):
    def seconds(count: int) -> float:
        jobs = [job(split=i % 20, tag=i) for i in range(count)]
        started = time.perf_counter()
        for record in run_jobs(jobs, n_jobs=n_jobs):
            store.write_record(tmp_path, record)
        return time.perf_counter() - started

    few, many = 40, 540
    start_up = seconds(few)
    total = benchmark.pedantic(seconds, args=(many,), rounds=1)
    assert len(list(store.each_record(tmp_path, []))) == many
    benchmark.extra_info["ms_per_cell"] = round((total - start_up) / (many - few) * 1000, 2)
    benchmark.extra_info["start_up_seconds"] = round(start_up, 2)


def command_seconds(*words: object) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def bench_help(benchmark):
    bare = min(command_seconds("-c", "pass") for _ in range(5))
    benchmark.pedantic(command_seconds, args=("-m", "ep_bench", "--help"), rounds=7)
    benchmark.extra_info["bare_interpreter_seconds"] = round(bare, 3)


def bench_report_of_3000_cells(benchmark, tmp_path: Path):
    folder = make_study(tmp_path / "study", [f"method {i}" for i in range(16)], NAMES[:9], splits=20)
    benchmark.pedantic(command_seconds, args=("-m", "ep_bench", "report", folder), rounds=3)
    benchmark.extra_info["cells"] = len(store.read_rows(folder / "results.csv"))
