"""Send cells to a worker process, enforce their limits, and replace a worker process that dies.

A joblib worker runs ``run``; the method's code runs one process further down. So a crash, a time-out or a method that
eats the memory ends a worker process, never a worker of the pool, which joblib would answer by ending the whole run.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ep_bench.processes.child_process import ChildProcess, ending
from ep_bench.processes.memory import used_gb
from ep_bench.runner.jobs import Job
from ep_bench.runner.payload import Payload, UnpackedPayload
from ep_bench.runner.records import KILLED, LOST, blank_record, fail
from ep_bench.runner.worker import IDLE_EXIT, STARTED
from ep_bench.types import DatasetRef, Record

_POLL = 0.05  # seconds between looks at a cell with a memory limit
_RARELY = 10  # times as long as a look took is waited before the next: it halts the method where it is thorough
_STARTING = 120.0  # seconds beyond its limit that a cell has for libraries, data and compilation
ABANDONED = f"{LOST}: the run has ended or given it to another worker"
_WATCH = 0.5  # seconds between looks at whether the run is still there

_local = threading.local()  # one worker process a thread: a worker of dask may have several
_workers: list[WorkerProcess] = []
_payloads: dict[str, UnpackedPayload] = {}  # of the runs that this worker of a cluster works for


@dataclass(frozen=True)
class UnfinishedCell:
    """A cell that its worker did not finish: the reason, and whether the machine caused it and not the method."""

    status: str
    reason: str
    printed: str
    infrastructure: bool = False


def run(job: Job, run_pid: int | None = None, payload: str | None = None, tag: str | None = None) -> Record:
    """Run a job in this thread's worker process; retry once if the machine, and not the method, made it fail.

    ``run_pid`` is the process of the run: a supervisor that it has started ends with it, busy or idle. On a cluster
    ``payload`` names the run, whose payload has been taken in, and ``tag`` is what ``abandon`` would call the job.
    """
    if run_pid is not None:
        _end_with(run_pid)
    outcome = _attempt(job, payload, tag)
    if isinstance(outcome, UnfinishedCell) and outcome.infrastructure:
        outcome = _attempt(job, payload, tag)
    return _unfinished(job, outcome) if isinstance(outcome, UnfinishedCell) else outcome


def take_in(payload: Payload) -> None:
    """Keep what a run on a cluster has sent, until ``end_run``."""
    if payload.run in _payloads:
        _payloads[payload.run].drop()
    _payloads[payload.run] = UnpackedPayload(payload)


def end_run(run: str) -> None:
    """Forget a run of a cluster and end the worker processes that worked for it."""
    for worker in [worker for worker in _workers if worker.works_for == run]:
        worker.abandon()
    unpacked = _payloads.pop(run, None)
    if unpacked is not None:
        unpacked.drop()


def abandon(tag: str) -> None:
    """End the worker process of a job that nobody waits for any more."""
    for worker in [worker for worker in _workers if worker.tag == tag]:
        worker.abandon()


def _attempt(job: Job, payload: str | None, tag: str | None) -> Record | UnfinishedCell:
    """Run a job once. Whatever goes wrong ends as a cell that is not ok: an exception would end joblib's whole call."""
    outcome: Record | UnfinishedCell
    try:
        worker = _own_worker()
    except OSError as error:  # no memory or no processes left on the machine, a full disk
        return UnfinishedCell("failed", f"{LOST}: no process can be started: {error}", "", infrastructure=True)
    worker.works_for, worker.tag = payload, tag
    try:
        outcome = worker.run(job, _payloads.get(payload or ""))
    except Exception as error:  # noqa: BLE001
        outcome = UnfinishedCell("failed", f"no answer from its process: {type(error).__name__}: {error}", "")
    worker.tag = None
    if isinstance(outcome, UnfinishedCell) or worker.leaves_running():
        close()
    return outcome


@cache
def _end_with(run_pid: int) -> None:
    """Watch the parent process from now on, if the run is this process's parent; once a process.

    A worker of the pool says nothing itself from now on: what goes wrong stands in records, and what Python prints of a
    worker that was just sending one as its run ended is of use to nobody.
    """
    if os.getppid() != run_pid:  # the supervisor is the run itself, or a worker that something else looks after
        return
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 it stays open to the end

    def watch() -> None:
        while os.getppid() == run_pid:
            time.sleep(_WATCH)
        for worker in _workers:
            worker.kill()
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def close() -> None:
    """End this supervisor's worker process, if it has one."""
    worker = getattr(_local, "worker", None)
    if worker is not None:
        _local.worker = None
        _workers.remove(worker)
        worker.stop()


def _close_all() -> None:
    for worker in _workers:
        worker.kill()


atexit.register(_close_all)


class WorkerProcess:
    """A computing process and the connection to it."""

    def __init__(self) -> None:
        self.works_for: str | None = None  # a run of a cluster
        self.tag: str | None = None  # of the job under way
        self._abandoned = False
        self._has: dict[DatasetRef, str] = {}  # the checksums of the data sets that it was given
        self._places: dict[str, str] = {}  # of files that were sent to this machine
        self._child = ChildProcess("ep_bench.runner.worker")

    @property
    def alive(self) -> bool:
        """False where it has ended, as one does that had nothing to do for long."""
        return self._child.alive

    def run(self, job: Job, payload: UnpackedPayload | None = None) -> Record | UnfinishedCell:
        """Return the record of a job, or how the worker process ended without one."""
        self._child.forget_printed()
        begun, started = time.monotonic(), False
        try:
            self._give(job.dataset, payload)
            self._child.connection.send(job)
            # Reading data and compiling are not the cell's own work, but they end some time too.
            patience = None if job.seconds is None else _STARTING + job.seconds
            answer = self._answer(job, begun, patience)
            if answer == STARTED:
                started = True
                answer = self._answer(job, time.monotonic(), job.seconds)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._died(time.monotonic() - begun, started)
        except BaseException:
            self.stop()
            raise
        if not isinstance(answer, Record | UnfinishedCell):
            raise TypeError(f"an answer of type {type(answer).__name__}")
        return answer

    def leaves_running(self) -> bool:
        """Return whether the last job left processes behind, which would work and use memory beside the next."""
        return self._child.leaves_running()

    def abandon(self) -> None:
        """Kill the process because nobody wants its answer."""
        self._abandoned = True
        self.kill()

    def kill(self) -> None:
        """Kill the process and those that it started."""
        self._child.kill()

    def stop(self) -> None:
        """Kill the process and let go of what belongs to it."""
        self._child.stop()

    def _give(self, ref: DatasetRef, payload: UnpackedPayload | None) -> None:
        """Send what the worker process could not read here: a data set once, and where the files of methods are."""
        dataset = payload.datasets.get(ref) if payload else None
        if dataset is not None and self._has.get(ref) != dataset.checksum:
            self._child.connection.send((ref, dataset))
            self._has[ref] = dataset.checksum
        if payload is not None and payload.places != self._places:
            self._child.connection.send(payload.places)
            self._places = payload.places

    def _answer(self, job: Job, since: float, seconds: float | None) -> Any:
        """Return what the worker process sends next, or how the cell ended where it went over a limit."""
        pause = None if job.memory_gb is None else _POLL
        while not self._child.connection.poll(_patience(since, seconds, pause)):
            if seconds is not None and time.monotonic() - since >= seconds:
                limit = f"over the limit of {job.seconds:g} seconds"
                return UnfinishedCell(
                    "timeout", limit if seconds == job.seconds else f"{limit} before its work began", self._child.tail()
                )
            if job.memory_gb is not None:
                look = time.monotonic()
                if (used := used_gb(self._child.pid, job.memory_gb)) > job.memory_gb:
                    reason = f"{used:.1f} GiB, over the limit of {job.memory_gb:g} GiB"
                    return UnfinishedCell("memory", reason, self._child.tail())
                pause = max(_POLL, _RARELY * (time.monotonic() - look))
        return self._child.connection.recv()

    def _died(self, seconds: float, started: bool) -> UnfinishedCell:
        code = self._child.wait()
        if self._abandoned:
            return UnfinishedCell("failed", ABANDONED, "")
        if code == IDLE_EXIT and not started:  # the job came just when the worker process gave up waiting
            return UnfinishedCell("failed", f"{LOST}: its process had ended", "", infrastructure=True)
        killed = code == -signal.SIGKILL
        what = f"{KILLED}: SIGKILL" if killed else ending(code)
        return UnfinishedCell("failed", f"{what} after {seconds:.1f} s", self._child.tail(), infrastructure=killed)


def _patience(since: float, seconds: float | None, pause: float | None) -> float | None:
    """Return how long to wait before a look at the limits; None, for ever, where there are none."""
    waits = [] if pause is None else [pause]
    waits += [] if seconds is None else [max(0.0, since + seconds - time.monotonic())]
    return min(waits, default=None)


def _own_worker() -> WorkerProcess:
    if (worker := getattr(_local, "worker", None)) is not None and not worker.alive:
        close()
    if getattr(_local, "worker", None) is None:
        _local.worker = WorkerProcess()
        _workers.append(_local.worker)
    return _local.worker  # type: ignore[no-any-return]


def _unfinished(job: Job, outcome: UnfinishedCell) -> Record:
    record = blank_record(job)
    fail(record, outcome.status, outcome.reason)
    record.traceback = outcome.printed
    return record
