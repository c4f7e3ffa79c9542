"""The supervisor of a worker process: sends cells, enforces their limits, and replaces the process if it dies.

``run`` is executed by a joblib worker; the code of a method runs one process further down. A crash, a time-out or
excessive memory therefore ends a worker process, never a worker of the pool, for which joblib would end the whole run.
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
from ep_bench.runner.cell_limits import CellLimits
from ep_bench.runner.jobs import Job
from ep_bench.runner.payload import Payload, UnpackedPayload
from ep_bench.runner.records import KILLED, LOST, blank_record, fail
from ep_bench.runner.worker import IDLE_EXIT, STARTED
from ep_bench.types import DatasetRef, Record

ABANDONED = f"{LOST}: the run has ended or given it to another worker"
_PARENT_INTERVAL = 0.5  # seconds between two checks whether the run is alive

_local = threading.local()  # one worker process per thread, because a dask worker may have several threads
_workers: list[WorkerProcess] = []
_payloads: dict[str, UnpackedPayload] = {}  # of the runs that use this cluster worker


@dataclass(frozen=True)
class UnfinishedCell:
    """A cell that its worker did not finish; ``infrastructure`` is true if the machine is the cause."""

    status: str
    reason: str
    printed: str
    infrastructure: bool = False


def run(job: Job, run_pid: int | None = None, payload: str | None = None, tag: str | None = None) -> Record:
    """Run a job in the worker process of this thread; retry once if it failed because of the machine.

    ``run_pid`` is the process of the run; a supervisor started by it ends together with it. On a cluster, ``payload``
    is the name of the run, whose payload has been unpacked, and ``tag`` identifies the job for ``abandon``.
    """
    if run_pid is not None:
        _end_with(run_pid)
    outcome = _attempt(job, payload, tag)
    if isinstance(outcome, UnfinishedCell) and outcome.infrastructure:
        outcome = _attempt(job, payload, tag)
    return _unfinished(job, outcome) if isinstance(outcome, UnfinishedCell) else outcome


def unpack(payload: Payload) -> None:
    """Unpack the payload of a run on a cluster; it is kept until ``end_run``."""
    if payload.run in _payloads:
        _payloads[payload.run].drop()
    _payloads[payload.run] = UnpackedPayload(payload)


def end_run(run: str) -> None:
    """Delete the payload of a run on a cluster and end its worker processes."""
    for worker in [worker for worker in _workers if worker.works_for == run]:
        worker.abandon()
    unpacked = _payloads.pop(run, None)
    if unpacked is not None:
        unpacked.drop()


def abandon(tag: str) -> None:
    """Kill the worker process of a job whose result is no longer awaited."""
    for worker in [worker for worker in _workers if worker.tag == tag]:
        worker.abandon()


def _attempt(job: Job, payload: str | None, tag: str | None) -> Record | UnfinishedCell:
    """Run a job once. All errors become an unfinished cell, because an exception would end joblib's whole call."""
    outcome: Record | UnfinishedCell
    try:
        worker = _own_worker()
    except OSError as error:  # out of memory or processes, or the disk is full
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
    """End this process when the run ends, if the run is its parent; called once per process.

    The process prints nothing from then on. Errors are stored in records, and a traceback of a worker whose run has
    just ended would be of no use.
    """
    if os.getppid() != run_pid:  # the supervisor is part of the run, or dask manages this worker
        return
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the process ends

    def monitor() -> None:
        while os.getppid() == run_pid:
            time.sleep(_PARENT_INTERVAL)
        for worker in _workers:
            worker.kill()
        os._exit(1)

    threading.Thread(target=monitor, name="parent monitor", daemon=True).start()


def close() -> None:
    """End the worker process of this thread, if there is one."""
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
    """A worker process and the connection to it."""

    def __init__(self) -> None:
        self.works_for: str | None = None  # name of a run on a cluster
        self.tag: str | None = None  # of the current job
        self._abandoned = False
        self._sent: dict[DatasetRef, str] = {}  # checksums of the data sets sent to it
        self._paths: dict[str, str] = {}  # paths on this machine of files sent by the run
        self._child = ChildProcess("ep_bench.runner.worker")

    @property
    def alive(self) -> bool:
        """False if the process has exited, for example after a long time without a job."""
        return self._child.alive

    def run(self, job: Job, payload: UnpackedPayload | None = None) -> Record | UnfinishedCell:
        """Return the record of a job, or an unfinished cell if the worker process ended without a record."""
        self._child.forget_printed()
        sent_at, started = time.monotonic(), False
        try:
            self._send_data(job.dataset, payload)
            self._child.connection.send(job)
            # Loading and compilation do not count as work of the cell, but have a limit of their own.
            answer = self._answer(CellLimits(job, self._child.pid, startup=True))
            if answer == STARTED:
                started = True
                answer = self._answer(CellLimits(job, self._child.pid))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._died(time.monotonic() - sent_at, started)
        except BaseException:
            self.stop()
            raise
        if not isinstance(answer, Record | UnfinishedCell):
            raise TypeError(f"an answer of type {type(answer).__name__}")
        return answer

    def leaves_running(self) -> bool:
        """Return whether the last job left processes running, which would affect the next job."""
        return self._child.leaves_running()

    def abandon(self) -> None:
        """Kill the process because its result is no longer awaited."""
        self._abandoned = True
        self.kill()

    def kill(self) -> None:
        """Kill the process and its descendants."""
        self._child.kill()

    def stop(self) -> None:
        """Kill the process and release its resources."""
        self._child.stop()

    def _send_data(self, ref: DatasetRef, payload: UnpackedPayload | None) -> None:
        """Send what the worker process cannot read on this machine: a data set once, and paths of method files."""
        dataset = payload.datasets.get(ref) if payload else None
        if dataset is not None and self._sent.get(ref) != dataset.checksum:
            self._child.connection.send((ref, dataset))
            self._sent[ref] = dataset.checksum
        if payload is not None and payload.paths != self._paths:
            self._child.connection.send(payload.paths)
            self._paths = payload.paths

    def _answer(self, limits: CellLimits) -> Any:
        """Return the next message of the worker process, or an unfinished cell if a limit was exceeded."""
        while not self._child.connection.poll(limits.pause()):
            exceeded = limits.exceeded()
            if exceeded is not None:
                return UnfinishedCell(*exceeded, self._child.tail())
        return self._child.connection.recv()

    def _died(self, seconds: float, started: bool) -> UnfinishedCell:
        code = self._child.wait()
        if self._abandoned:
            return UnfinishedCell("failed", ABANDONED, "")
        if code == IDLE_EXIT and not started:  # the worker process exited just before the job arrived
            return UnfinishedCell("failed", f"{LOST}: its process had ended", "", infrastructure=True)
        killed = code == -signal.SIGKILL
        what = f"{KILLED}: SIGKILL" if killed else ending(code)
        return UnfinishedCell("failed", f"{what} after {seconds:.1f} s", self._child.tail(), infrastructure=killed)


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
