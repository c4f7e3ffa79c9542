"""Tables of a results folder have one writer at a time, and the last one writes all rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ep_bench.results import store, writers
from ep_bench.results.writers import sole_writer
from tests.results.test_store import lock, record

HOLD = """
import sys, time
from pathlib import Path
from ep_bench.results.writers import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def waiting(call: object) -> threading.Thread:
    """Start a thread, and return it when it has had time to finish."""
    thread = threading.Thread(target=call)  # type: ignore[arg-type]
    thread.start()
    time.sleep(0.3)
    return thread


def test_a_writer_waits_and_then_writes_the_rows_of_that_time(tmp_path: Path) -> None:
    def write() -> None:
        with sole_writer(tmp_path):
            store.export(tmp_path)

    first, second = "a" * 16, "b" * 16
    store.write_lock(tmp_path, lock(first, second))
    store.write_record(tmp_path, record(first))
    with sole_writer(tmp_path):
        thread = waiting(write)
        assert thread.is_alive()
        assert not (tmp_path / store.RESULTS).exists()
        store.write_record(tmp_path, record(second, split=1))
    thread.join()
    assert [row["cell"] for row in store.read_rows(tmp_path / store.RESULTS)] == [first, second]


@pytest.mark.slow
def test_a_killed_writer_keeps_nobody(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        entered = threading.Event()

        def enter() -> None:
            with sole_writer(tmp_path):
                entered.set()

        thread = waiting(enter)
        assert not entered.is_set()
        os.kill(other.pid, signal.SIGKILL)
        thread.join()
        assert entered.is_set()


def test_a_suspended_writer_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "WAIT", 0.2)
    with sole_writer(tmp_path):
        begun = time.monotonic()
        with sole_writer(tmp_path):
            assert 0.2 <= time.monotonic() - begun < 5.0


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(writers.fcntl, "flock", unsupported)
    with sole_writer(tmp_path):
        pass
