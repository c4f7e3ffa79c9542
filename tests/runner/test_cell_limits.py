"""CPU time of cells: measured with all processes of a cell, limited, and independent of pauses."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.processes.tree import own_cpu_seconds
from ep_bench.runner import cell_limits, supervisor
from ep_bench.runner.cell_limits import CellLimits
from ep_bench.types import Record
from tests.runner.support import becomes_true, job, write_methods

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sends signals to process groups")


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("methods")
    write_methods(folder)
    yield folder
    supervisor.close()


def outcome(record: Record) -> tuple[str, str]:
    return record.row["status"], record.row["reason"]


def test_the_cpu_time_of_processes_counts_also_after_their_end() -> None:
    started, before = own_cpu_seconds(), time.process_time()
    if (pid := os.fork()) == 0:
        while time.process_time() < 0.1:
            pass
        os._exit(0)
    used = os.wait4(pid, 0)[2]  # includes freeing the memory, which depends on the tests before
    own = time.process_time() - before
    assert used.ru_utime + used.ru_stime >= 0.09
    assert own_cpu_seconds() - started - own == pytest.approx(used.ru_utime + used.ru_stime, abs=0.02)


def test_the_cpu_time_of_a_cell_includes_its_processes(methods: Path) -> None:
    row = supervisor.run(job("Busy", base=methods)).row
    assert row["status"] == "ok"
    assert 0.4 < row["fit_cpu_seconds"] < 1.0


def test_a_cell_over_its_cpu_limit_times_out(methods: Path) -> None:
    record = supervisor.run(job("Busy", base=methods, cpu_seconds=0.2))
    assert outcome(record) == ("timeout", "over the limit of 0.2 CPU seconds")


def test_loading_has_an_allowance_which_the_reason_names(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = job("Busy", seconds=0.0, cpu_seconds=None)
    assert CellLimits(limited, os.getpid(), startup=True).exceeded() is None
    monkeypatch.setattr(cell_limits, "STARTUP_SECONDS", 0.0)
    reason = "over the limit of 0 seconds and 0 for loading before its work began"
    assert CellLimits(limited, os.getpid(), startup=True).exceeded() == ("timeout", reason)


def test_work_of_earlier_cells_of_a_process_does_not_count() -> None:
    assert time.process_time() > 0.2
    assert CellLimits(job("Busy", cpu_seconds=0.2), os.getpid()).exceeded() is None


def test_waiting_uses_no_cpu_time(methods: Path) -> None:
    """The method sleeps for 0.4 seconds."""
    assert outcome(supervisor.run(job("Slow", base=methods, cpu_seconds=0.2))) == ("ok", "")


@pytest.mark.exhaustive
def test_a_cell_that_is_stopped_and_continued_does_not_time_out(methods: Path) -> None:
    """The pause alone is longer than the limit."""
    mark = methods / "mark"
    mark.unlink(missing_ok=True)
    found: list[Record] = []

    def run() -> None:
        found.append(supervisor.run(job("Busy", base=methods, cpu_seconds=1.0)))
        supervisor.close()  # each thread has processes of its own

    worker = threading.Thread(target=run)
    worker.start()
    assert becomes_true(lambda: mark.exists() and mark.read_text() != "")
    group = os.getpgid(int(mark.read_text()))
    os.killpg(group, signal.SIGSTOP)
    time.sleep(1.5)
    os.killpg(group, signal.SIGCONT)
    worker.join()
    assert outcome(found[0]) == ("ok", "")
    assert found[0].row["fit_seconds"] > 1.4
    assert found[0].row["fit_cpu_seconds"] < 1.0
