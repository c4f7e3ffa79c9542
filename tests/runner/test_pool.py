"""The pool continues whatever a method or the machine does to its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from ep_bench.errors import UserError
from ep_bench.runner.cell import run_cell
from ep_bench.runner.pool import run_jobs
from ep_bench.types import Record
from tests.runner.support import RAISED, becomes_true, children, command_of, job, write_methods


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    write_methods(tmp_path)
    return tmp_path


def outcome(records: list[Record]) -> dict[str, tuple[str, str]]:
    return {r.row["method"]: (r.row["status"], r.row["reason"]) for r in records}


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
def test_a_misbehaving_method_affects_only_its_own_cell(bad: Path, n_jobs: int) -> None:
    names = ["Raises", "NotFinite", "Crashes", "Leaves", "Warns", "States"]
    jobs = [job(name, base=bad) for name in names]
    jobs += [job("Stuck", base=bad, seconds=1.0), job("Hungry", base=bad, memory_gb=0.75)]
    jobs += [job(split=split) for split in range(4)]
    records = list(run_jobs(jobs, n_jobs=n_jobs))
    assert len(records) == len(jobs)
    found = outcome(records)
    assert found["Raises"] == ("failed", RAISED)
    assert found["NotFinite"][0] == "failed"
    assert found["NotFinite"][1].startswith("non-finite")
    assert "SIGSEGV" in found["Crashes"][1]
    assert found["Leaves"][1].startswith("SystemExit: 5 (bad.py:")
    assert found["Warns"] == ("ok", "not converged: stopped after 3 sweeps")
    stated = {r.row["method"]: r.row.get("converged", "") for r in records if r.row["status"] == "ok"}
    assert stated == {"Warns": "false", "States": "false", "ConstantRegressor": ""}
    assert found["Stuck"] == ("timeout", "over the limit of 1 seconds")
    assert found["Hungry"][0] == "memory"
    assert "over the limit of 0.75 GiB" in found["Hungry"][1]
    assert found["ConstantRegressor"][0] == "ok"
    traceback = next(r for r in records if r.row["method"] == "Raises").traceback
    assert "no luck today" in traceback
    assert "bad.py" in traceback


@pytest.mark.slow
def test_a_killed_server_loses_no_cell_and_changes_no_score(bad: Path) -> None:
    jobs = [job(name, split, base=bad) for split in range(4) for name in ("Slow", "Draws")]
    running_jobs = run_jobs(jobs, n_jobs=2)
    records = [next(running_jobs)]  # the other worker is running a cell
    os.kill(next(pid for pid in children(os.getpid()) if b"fork_server" in command_of(pid)), signal.SIGKILL)
    records += running_jobs
    assert sorted(record.key for record in records) == sorted(one.cell.key for one in jobs)
    assert {record.row["status"] for record in records} == {"ok"}
    assert numbers(records) == numbers(map(run_cell, jobs[1::2]))


def numbers(records: Iterable[Record]) -> dict[int, list[float]]:
    """Return the scores of the method that draws random numbers."""
    rows = [record.row for record in records if record.row["method"] == "Draws"]
    return {row["split"]: [row[column] for column in ("rmse", "ll", "crps", "seed")] for row in rows}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_closing_the_run_ends_its_processes_at_once(bad: Path) -> None:
    before = children(os.getpid())
    records = run_jobs([job("Slow", base=bad), *(job("Stuck", s, base=bad) for s in range(3))], n_jobs=2)
    next(records)
    below = set(children(os.getpid())).difference(before)
    assert any(b"fork_server" in command_of(pid) for pid in below)
    records.close()  # the running cells never end
    assert becomes_true(lambda: not any(b"fork_server" in command_of(pid) for pid in below))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends orphans on Linux alone")
def test_a_killed_run_leaves_no_processes(bad: Path) -> None:
    """Of its two servers, one is busy and one is idle."""
    script = f"""
import pathlib, time
from tests.runner.support import job
from ep_bench.runner.pool import run_jobs
records = run_jobs([job(name, base={str(bad)!r}) for name in ("Parent", "Slow")], n_jobs=2)
next(records)
pathlib.Path({str(bad)!r}, "came").touch()
time.sleep(999)
"""
    run = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    busy = b"sleep\x0097.31\0"
    assert becomes_true(lambda: (bad / "came").exists() and busy in map(command_of, children(run.pid)))
    below = children(run.pid)
    assert sum(b"fork_server" in command_of(pid) for pid in below) == 3  # two servers, and a child of the busy one
    run.kill()
    run.wait()
    assert becomes_true(lambda: not any(command_of(pid) for pid in below))


@pytest.mark.slow
def test_two_runs_in_one_process(bad: Path) -> None:
    first, second = (run_jobs([job("Draws", s, base=bad) for s in splits], n_jobs=2) for splits in ((0, 1), (2, 3)))
    records = [next(first), next(second), *first, *second]
    assert sorted((record.row["split"], record.row["status"]) for record in records) == [(s, "ok") for s in range(4)]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UserError, match="unknown backend"):
        list(run_jobs([job()], n_jobs=1, backend="mpi"))
