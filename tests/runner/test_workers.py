"""Effects of a method on its process end with its cell: processes, memory, output, exit codes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.processes.tree import memory_below
from ep_bench.processes.warm_server import module_path
from ep_bench.runner import supervisor
from ep_bench.types import Record
from tests.runner.support import becomes_true, command_of, job, running, write_methods

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]


@pytest.fixture(scope="module")
def shared_worker() -> Iterator[None]:
    """Share one worker process between the tests, until a test ends it."""
    yield
    supervisor.close()


@pytest.fixture
def bad(shared_worker: None, tmp_path: Path) -> Path:
    write_methods(tmp_path)
    return tmp_path


def run(name: str, base: Path, split: int = 0, **limits: float) -> Record:
    return supervisor.run(job(name, split, base=base, **limits))


def status(record: Record) -> tuple[str, str]:
    return record.row["status"], record.row["reason"]


def litter() -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*") if b"# litter" in command_of(int(path.name))]


def test_a_time_limit_excludes_the_start_of_the_process(bad: Path) -> None:
    supervisor.close()
    assert status(run("Slow", bad, seconds=0.9)) == ("ok", "")


def test_global_generators_are_seeded(bad: Path) -> None:
    first, again = (run("Global", bad).row["rmse"] for _ in range(2))
    assert first == again


def test_a_failure_of_the_machine_is_retried_once(bad: Path) -> None:
    assert status(run("Once", bad)) == ("ok", "")


def test_much_output_does_not_fill_the_disk(bad: Path) -> None:
    record = run("PrintsAndCrashes", bad)
    assert "x\nthe end\n" in record.traceback
    child = supervisor._own()._server._child
    assert child is not None
    assert os.fstat(child.printed.fileno()).st_blocks * 512 < 2**20


def test_processes_left_running_end_with_the_cell(bad: Path) -> None:
    for split in range(2):
        assert run("Litters", bad, split).row["status"] == "ok"
        assert becomes_true(lambda: not litter())
    assert status(run("ConstantRegressor", bad, memory_gb=0.5)) == ("ok", "")


@pytest.mark.parametrize("name", ["Pid", "Parallel", "Threads"])
def test_each_cell_of_an_external_method_has_a_process_of_its_own(bad: Path, name: str) -> None:
    for split in range(3):
        assert status(run(name, bad, split)) == ("ok", "")
    pids = (bad / "mark").read_text().split()
    assert len(pids) == 3
    assert len(set(pids)) == 3


def test_what_a_class_keeps_does_not_reach_the_next_cell(bad: Path) -> None:
    (bad / "bad.py").write_text("""
import numpy as np

class Remembers:
    seen = {}
    def fit(self, X, y):
        self.mean = y.mean()
        Remembers.seen.update(zip(map(bytes, X), y))
        return self
    def predict(self, X, return_std=False):
        mean = np.array([Remembers.seen.get(bytes(x), self.mean) for x in X])
        return (mean, np.ones(len(X))) if return_std else mean
""")
    alone = run("Remembers", bad, 1).row["rmse"]
    run("Remembers", bad, 0)
    assert run("Remembers", bad, 1).row["rmse"] == alone


def test_a_time_out_kills_other_sessions_and_orphans(bad: Path) -> None:
    record = run("Runaway", bad, seconds=3.0)  # enough for its start on a busy machine
    assert status(record) == ("timeout", "over the limit of 3 seconds")
    assert (bad / "mark").exists()
    assert becomes_true(lambda: not running("sleep", "97.31"), 5.0)  # the kernel ends it when it is scheduled
    assert not running("sleep", "97.32")
    assert not running("sleep", "97.33")


def test_shared_memory_counts_once(bad: Path) -> None:
    assert status(run("Shares", bad, memory_gb=0.7)) == ("ok", "")


def test_memory_of_descendants_counts(bad: Path) -> None:
    found, reason = status(run("Divides", bad, memory_gb=0.55))
    assert found == "memory"
    assert "over the limit of 0.55 GiB" in reason


def test_proportional_memory_is_read_only_above_the_limit() -> None:
    with subprocess.Popen(["sleep", "97.37"]) as child:
        resident, proportional = memory_below(os.getpid(), 1e9), memory_below(os.getpid(), 0.0)
        child.kill()
    assert 0 < proportional <= resident
    assert memory_below(2**22 + 1, 0.0) == 0.0  # no such process


def test_output_of_a_method_uses_no_memory_of_the_run(bad: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = run("Talks", bad)
    assert "exit code 3" in record.row["reason"]
    assert record.traceback.endswith("the last word\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


def test_worker_processes_find_modules_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook, ``sys.path`` has an empty entry."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/elsewhere"])
    assert module_path() == f"{tmp_path}{os.pathsep}/elsewhere"
