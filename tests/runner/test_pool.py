"""The pool keeps going whatever a method or the machine does to its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ep_bench.runner.pool import run_jobs
from ep_bench.types import Record, UserError
from tests.runner.support import becomes_true, children, command_of, job, running, write_methods


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    write_methods(tmp_path)
    return tmp_path


def outcome(records: list[Record]) -> dict[str, tuple[str, str]]:
    return {r.row["method"]: (r.row["status"], r.row["reason"]) for r in records}


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_method_that_misbehaves_costs_its_own_cell_alone(bad: Path, n_jobs: int) -> None:
    names = ["Raises", "NotFinite", "Exits", "Crashes", "Signalled", "Leaves", "Warns", "Deaf"]
    jobs = [job(name, base=bad) for name in names]
    jobs += [job("Stuck", base=bad, seconds=2.0), job("Hungry", base=bad, memory_gb=1.5)]
    jobs += [job(split=split) for split in range(8)]
    records = list(run_jobs(jobs, n_jobs=n_jobs))
    assert len(records) == len(jobs)
    found = outcome(records)
    assert found["Raises"] == ("failed", "RuntimeError: no luck today")
    assert found["NotFinite"][0] == "failed"
    assert found["NotFinite"][1].startswith("non-finite")
    assert found["Exits"] == ("failed", found["Exits"][1])
    assert "exit code 7" in found["Exits"][1]
    assert "SIGSEGV" in found["Crashes"][1]
    assert "signal 40" in found["Signalled"][1]
    assert "exit code 5" in found["Leaves"][1]
    assert found["Deaf"][1].startswith("the method closed the connection of its process")
    assert found["Warns"] == ("ok", "not converged: stopped after 3 sweeps")
    assert found["Stuck"] == ("timeout", "over the limit of 2 seconds")
    assert found["Hungry"][0] == "memory"
    assert "over the limit of 1.5 GiB" in found["Hungry"][1]
    assert found["ConstantRegressor"][0] == "ok"
    traceback = next(r for r in records if r.row["method"] == "Raises").traceback
    assert "no luck today" in traceback
    assert "bad.py" in traceback


@pytest.mark.slow
def test_what_a_method_started_ends_with_it(bad: Path) -> None:
    (record,) = run_jobs([job("Parent", base=bad, seconds=1.0)], n_jobs=1)
    assert record.row["status"] == "timeout"
    assert becomes_true(lambda: not running("sleep", "97.31"))


@pytest.mark.slow
def test_global_generators_are_seeded(bad: Path) -> None:
    first, again = (next(iter(run_jobs([job("Global", base=bad)], n_jobs=1))).row["rmse"] for _ in range(2))
    assert first == again


@pytest.mark.slow
def test_start_up_is_not_charged_to_a_cell(bad: Path) -> None:
    (record,) = run_jobs([job("Slow", base=bad, seconds=0.9)], n_jobs=1)
    assert record.row["status"] == "ok"


@pytest.mark.slow
def test_what_the_machine_did_is_tried_once_more(bad: Path) -> None:
    records = list(run_jobs([job("Once", base=bad)], n_jobs=1))
    assert outcome(records)["Once"] == ("ok", "")


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(bad: Path) -> None:
    jobs = [job("Slow", split, base=bad) for split in range(12)]
    running_jobs = run_jobs(jobs, n_jobs=2)
    records = [next(running_jobs)]  # the other worker's cell is under way, or the one after it
    loky = [pid for pid in children(os.getpid()) if b"loky" in command_of(pid)]
    os.kill(next(pid for pid in loky if b"resource_tracker" not in command_of(pid)), signal.SIGKILL)
    records += running_jobs
    assert sorted(r.row["split"] for r in records) == list(range(12))
    assert {r.row["status"] for r in records} == {"ok"}


@pytest.mark.slow
def test_numbers_do_not_depend_on_jobs(bad: Path) -> None:
    def numbers(n_jobs: int) -> dict[int, list[float]]:
        records = run_jobs([job("Draws", split, base=bad) for split in range(6)], n_jobs=n_jobs)
        return {r.row["split"]: [r.row[c] for c in ("rmse", "ll", "crps", "seed")] for r in records}

    assert numbers(1) == numbers(2)


@pytest.mark.slow
def test_closing_the_run_ends_its_processes_at_once(bad: Path) -> None:
    records = run_jobs([job("Slow", base=bad), *(job("Stuck", s, base=bad) for s in range(3))], n_jobs=2)
    next(records)
    below = children(os.getpid())
    assert any(b"engine" in command_of(pid) for pid in below)
    records.close()  # the cells that are under way would go on for ever
    assert becomes_true(lambda: not any(b"engine" in command_of(pid) for pid in below))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends orphans on Linux alone")
@pytest.mark.parametrize("state", ["busy", "idle"])
def test_a_killed_run_leaves_nothing_behind(bad: Path, state: str) -> None:
    name, records = ("Parent", 1) if state == "busy" else ("Slow", 2)
    script = f"""
import pathlib, time
from tests.runner.support import job
from ep_bench.runner.pool import run_jobs
records = run_jobs([job({name!r}, split, base={str(bad)!r}) for split in range(2)], n_jobs=2)
for _ in range({records}):
    next(records)
    pathlib.Path({str(bad)!r}, "came").open("a").write("x")
time.sleep(999)
"""
    run = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])

    def ready() -> bool:
        if state == "busy":
            return sum(command_of(pid) == b"sleep\x0097.31\0" for pid in children(run.pid)) == 2
        return (bad / "came").exists() and len((bad / "came").read_text()) == 2

    assert becomes_true(ready)
    below = [pid for pid in children(run.pid) if b"resource_tracker" not in command_of(pid)]
    assert sum(b"engine" in command_of(pid) for pid in below) == 2
    run.kill()
    run.wait()
    assert becomes_true(lambda: not any(command_of(pid) for pid in below))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UserError, match="unknown backend"):
        list(run_jobs([job()], n_jobs=1, backend="mpi"))
