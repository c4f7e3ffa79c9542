"""The pool keeps going whatever a method or the machine does to its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ep_bench.runner.pool import run_jobs
from ep_bench.types import Record, UserError
from tests.runner.support import children, command_of, job, write_methods


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
    time.sleep(0.5)
    left = subprocess.run(["pgrep", "-f", "sleep 97.31"], capture_output=True, text=True).stdout.split()
    assert not left


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

    def kill() -> None:
        time.sleep(4.0)
        for pid in children(os.getpid()):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"loky" in command and b"resource_tracker" not in command:
                os.kill(pid, signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    records = list(run_jobs(jobs, n_jobs=2))
    killer.join()
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
    started = time.monotonic()
    records.close()
    assert time.monotonic() - started < 5
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(b"engine" in command_of(pid) for pid in below):
        time.sleep(0.1)
    assert not [pid for pid in below if b"engine" in command_of(pid)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends orphans on Linux alone")
@pytest.mark.parametrize("state", ["busy", "idle"])
def test_a_killed_run_leaves_nothing_behind(bad: Path, state: str) -> None:
    name, records = ("Stuck", 1) if state == "busy" else ("Slow", 2)
    script = f"""
import time
from tests.runner.support import job
from ep_bench.runner.pool import run_jobs
records = run_jobs([job({name!r}, split, base={str(bad)!r}) for split in range(2)], n_jobs=2)
for _ in range({records}):
    next(records)
time.sleep(99)
"""
    run = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and sum(b"engine" in command_of(pid) for pid in children(run.pid)) < 2:
        time.sleep(0.1)
    time.sleep(6)  # the cells are under way, or done
    below = [pid for pid in children(run.pid) if b"resource_tracker" not in command_of(pid)]
    assert sum(b"engine" in command_of(pid) for pid in below) == 2
    run.kill()
    run.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(command_of(pid) for pid in below):
        time.sleep(0.1)
    assert not [pid for pid in below if command_of(pid)]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UserError, match="unknown backend"):
        list(run_jobs([job()], n_jobs=1, backend="mpi"))
