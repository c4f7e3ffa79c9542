"""One lane of the pool: hands cells to an engine process, holds them to their limits, replaces an engine that dies.

A joblib worker runs ``run``; the method's code runs one process further down. So a crash, a time-out or a method that
eats the memory ends an engine, never a worker of the pool, which joblib would answer by ending the whole run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Pipe

from ep_bench.runner.jobs import Job
from ep_bench.runner.memory import resident_gb
from ep_bench.runner.records import blank_record, fail
from ep_bench.types import Record

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip
_POLL = 0.05  # seconds between looks at a cell with a memory limit
_WATCH = 0.5  # seconds between looks at whether the run is still there
_TAIL = 2000  # characters kept of what a dead engine printed

_engine: Engine | None = None


@dataclass(frozen=True)
class Ended:
    """A cell that its engine did not finish: why, and whether the machine is to blame rather than the method."""

    status: str
    reason: str
    printed: str
    infrastructure: bool = False


def run(job: Job, run_pid: int | None = None) -> Record:
    """Run a job in this lane's engine; what the machine did to it is tried once more, what the method did is not.

    ``run_pid`` is the process of the run: a lane that it has started ends with it, busy or idle.
    """
    if run_pid is not None:
        _end_with(run_pid)
    outcome = _attempt(job)
    if isinstance(outcome, Ended) and outcome.infrastructure:
        outcome = _attempt(job)
    return _unfinished(job, outcome) if isinstance(outcome, Ended) else outcome


def _attempt(job: Job) -> Record | Ended:
    outcome = _lane_engine().run(job)
    if isinstance(outcome, Ended):
        close()
    return outcome


@cache
def _end_with(run_pid: int) -> None:
    """Watch the parent process from now on, if the run is this process's parent; once a process."""
    if os.getppid() != run_pid:  # the lane is the run itself, or a worker that something else looks after
        return

    def watch() -> None:
        while os.getppid() == run_pid:
            time.sleep(_WATCH)
        if _engine is not None:
            _engine.kill()
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def close() -> None:
    """End this lane's engine, if it has one."""
    global _engine  # noqa: PLW0603 a lane is a process, and this its one piece of state
    if _engine is not None:
        _engine.stop()
        _engine = None


atexit.register(close)


class Engine:
    """A computing process and the connection to it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the engine
        descriptor = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ep_bench.runner.engine", str(descriptor)],
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C at the terminal reaches the run, which decides
        )
        theirs.close()

    def run(self, job: Job) -> Record | Ended:
        """Return the record of a job, or how the engine ended without one."""
        self._printed.seek(0)
        self._printed.truncate()
        started = time.monotonic()
        try:
            self._connection.send(job)
            over = self._wait(job, started)
            return self._connection.recv() if over is None else over
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._died(time.monotonic() - started)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """Kill the process; it keeps nothing that could be lost."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def stop(self) -> None:
        """Kill the process and let go of what belongs to it."""
        self.kill()
        self._process.wait()
        self._connection.close()
        self._printed.close()

    def _wait(self, job: Job, started: float) -> Ended | None:
        """Wait for an answer; return how the cell ended where it went over a limit."""
        while not self._connection.poll(self._patience(job, started)):
            if job.seconds is not None and time.monotonic() - started >= job.seconds:
                return Ended("timeout", f"over the limit of {job.seconds:g} seconds", self._tail())
            if job.memory_gb is not None and (used := resident_gb(self._process.pid)) > job.memory_gb:
                return Ended("memory", f"{used:.1f} GiB, over the limit of {job.memory_gb:g} GiB", self._tail())
        return None

    @staticmethod
    def _patience(job: Job, started: float) -> float | None:
        """Return how long to wait before a look at the limits; None, for ever, where there are none."""
        waits = [] if job.memory_gb is None else [_POLL]
        waits += [] if job.seconds is None else [max(0.0, started + job.seconds - time.monotonic())]
        return min(waits, default=None)

    def _died(self, seconds: float) -> Ended:
        code = self._process.wait()
        if code >= 0:
            return Ended(
                "failed", f"the method ended its process with exit code {code} after {seconds:.1f} s", self._tail()
            )
        name = signal.Signals(-code).name
        killed = code == -signal.SIGKILL
        what = "killed from outside" if killed else "the method crashed"
        return Ended("failed", f"{what}: {name} after {seconds:.1f} s", self._tail(), infrastructure=killed)

    def _tail(self) -> str:
        self._printed.seek(0)
        return self._printed.read().decode("utf-8", errors="replace")[-_TAIL:]


def _lane_engine() -> Engine:
    global _engine  # noqa: PLW0603
    if _engine is None:
        _engine = Engine()
    return _engine


def _unfinished(job: Job, outcome: Ended) -> Record:
    record = blank_record(job)
    fail(record, outcome.status, outcome.reason)
    record.traceback = outcome.printed
    return record
