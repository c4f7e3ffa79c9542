"""The supervisor of the processes of cells: sends cells, enforces their limits, and replaces processes that die.

``run`` is executed by a joblib worker; the code of a method runs further down. A crash, a time-out or excessive memory
therefore ends processes of one cell, never a worker of the pool, for which joblib would end the whole run.
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

from ep_bench.processes.channel import MessageError, ready
from ep_bench.processes.child_process import ending
from ep_bench.processes.forked import ForkedProcess, ForkServer
from ep_bench.runner.cell_limits import CellLimits
from ep_bench.runner.jobs import Job
from ep_bench.runner.payload import Payload, UnpackedPayload
from ep_bench.runner.records import KILLED, LOST, blank_record, fail
from ep_bench.runner.worker_messages import IDLE_EXIT, STARTED, Assignment, LostMethod, SentDataset
from ep_bench.types import DatasetRef, Record

ABANDONED = f"{LOST}: the run has ended or given it to another worker"
_NOTICE = 5.0  # seconds that the worker process has to notice the end of the process of a method
_PARENT_INTERVAL = 0.5  # seconds between two checks whether the run is alive

_local = threading.local()  # one set of processes per thread, because a dask worker may have several threads
_all_workers: list[Workers] = []
_payloads: dict[str, UnpackedPayload] = {}  # of the runs that use this cluster worker


@dataclass(frozen=True)
class UnfinishedCell:
    """A cell that its processes did not finish; ``infrastructure`` is true if the machine is the cause."""

    status: str
    reason: str
    printed: str
    infrastructure: bool = False


def run(job: Job, run_pid: int | None = None, payload: str | None = None, tag: str | None = None) -> Record:
    """Run a job in the processes of this thread; retry once if it failed because of the machine.

    ``run_pid`` is the process of the run; a supervisor started by it ends together with it. On a cluster, ``payload``
    is the name of the run, whose payload has been unpacked, and ``tag`` identifies the job for ``abandon``.
    """
    if run_pid is not None:
        end_with(run_pid)
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
    """Delete the payload of a run on a cluster and end its processes."""
    for workers in [workers for workers in _all_workers if workers.works_for == run]:
        workers.abandon()
    unpacked = _payloads.pop(run, None)
    if unpacked is not None:
        unpacked.drop()


def abandon(tag: str) -> None:
    """Kill the processes of a job whose result is no longer awaited."""
    for workers in [workers for workers in _all_workers if workers.tag == tag]:
        workers.abandon()


def _attempt(job: Job, payload: str | None, tag: str | None) -> Record | UnfinishedCell:
    """Run a job once. All errors become an unfinished cell, because an exception would end joblib's whole call."""
    outcome: Record | UnfinishedCell
    try:
        workers = _own_workers()
    except OSError as error:  # out of memory or processes, or the disk is full
        return _no_process(error)
    workers.works_for, workers.tag = payload, tag
    try:
        outcome = workers.run(job, _payloads.get(payload or ""))
    except OSError as error:
        outcome = _no_process(error)
    except Exception as error:  # noqa: BLE001
        outcome = UnfinishedCell("failed", f"no answer from its process: {type(error).__name__}: {error}", "")
    except BaseException:
        close()
        raise
    workers.tag = None
    if not workers.alive:
        close()
    else:
        workers.settle(job, outcome)
    return outcome


def _no_process(error: OSError) -> UnfinishedCell:
    return UnfinishedCell("failed", f"{LOST}: no process can be started: {error}", "", infrastructure=True)


@cache
def end_with(run_pid: int) -> None:
    """End this process when the run ends, unless this process is the run; called once per process.

    The process prints nothing from then on. Errors are stored in records, and a traceback of a worker whose run has
    just ended would be of no use.
    """
    if os.getpid() == run_pid:
        return
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the process ends

    def monitor() -> None:
        while os.getppid() == run_pid:
            time.sleep(_PARENT_INTERVAL)
        for workers in _all_workers:
            workers.kill()
        os._exit(1)

    threading.Thread(target=monitor, name="parent monitor", daemon=True).start()


def close() -> None:
    """End the processes of this thread, if there are any."""
    workers = getattr(_local, "workers", None)
    if workers is not None:
        _local.workers = None
        _all_workers.remove(workers)
        workers.stop()


def _close_all() -> None:
    for workers in _all_workers:
        workers.kill()


atexit.register(_close_all)


class Workers:
    """The processes of one supervisor: a fork server, a worker process, and that of an external method.

    An external method has a new process in each cell, so that nothing that it keeps, such as data points in an
    attribute of its class, can affect another cell.
    """

    def __init__(self) -> None:
        self.works_for: str | None = None  # name of a run on a cluster
        self.tag: str | None = None  # of the current job
        self._abandoned = False
        self._sent: dict[DatasetRef, str] = {}  # checksums of the data sets sent to the worker process
        self._worker: ForkedProcess | None = None
        self._method: ForkedProcess | None = None  # of the external method of the current cell
        self._server = ForkServer("ep_bench.runner.worker:prepare")

    @property
    def alive(self) -> bool:
        """False if the fork server has ended, for example after a long time without a job."""
        return self._server.alive

    def run(self, job: Job, payload: UnpackedPayload | None = None) -> Record | UnfinishedCell:
        """Return the record of a job, or an unfinished cell if its processes ended without a record."""
        worker = self._ready_worker()
        self._method = method = self._server.start("ep_bench.runner.method_process:main") if job.external else None
        worker.forget_printed()
        sent_at, started = time.monotonic(), False
        pids = [process.pid for process in (worker, method) if process is not None]
        try:
            self._send_data(worker, job.dataset, payload)
            copies = payload.paths if payload else None
            descriptors = [] if method is None else [method.channel.fileno()]
            worker.channel.send_object(Assignment(job, method.pid if method else None, copies), descriptors)
            # Loading and compilation do not count as work of the cell, but have a limit of their own.
            answer = self._answer(worker, method, CellLimits(job, pids, startup=True))
            if answer == STARTED:
                started = True
                answer = self._answer(worker, method, CellLimits(job, pids))
        except (EOFError, BrokenPipeError, ConnectionResetError, MessageError):
            return self._lost_worker(worker, job, time.monotonic() - sent_at, started)
        if method is not None and isinstance(answer, LostMethod):
            return self._lost_method(method, time.monotonic() - sent_at, answer.reason)
        if not isinstance(answer, Record | UnfinishedCell):
            raise TypeError(f"an answer of type {type(answer).__name__}")
        return answer

    def settle(self, job: Job, outcome: Record | UnfinishedCell) -> None:
        """End the processes that the next cell must not meet."""
        self._drop_method()
        if self._worker is None:
            return
        if isinstance(outcome, UnfinishedCell) or (not job.external and self._worker.leaves_running()):
            self._drop_worker()

    def abandon(self) -> None:
        """Kill the processes because their result is no longer awaited."""
        self._abandoned = True
        self.kill()

    def kill(self) -> None:
        """Kill all processes and their descendants."""
        self._server.kill()

    def stop(self) -> None:
        """Kill all processes and release their resources."""
        self._server.kill()
        for process in filter(None, (self._method, self._worker)):
            process.stop()
        self._server.stop()

    def _ready_worker(self) -> ForkedProcess:
        if self._worker is not None and not self._worker.alive:
            self._drop_worker()
        if self._worker is None:
            self._worker = self._server.start("ep_bench.runner.worker:main")
            self._sent.clear()
        return self._worker

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _drop_method(self) -> None:
        if self._method is not None:
            self._method.stop()
            self._method = None

    def _send_data(self, worker: ForkedProcess, ref: DatasetRef, payload: UnpackedPayload | None) -> None:
        """Send a data set that the worker process cannot read on this machine, once."""
        dataset = payload.datasets.get(ref) if payload else None
        if dataset is not None and self._sent.get(ref) != dataset.checksum:
            worker.channel.send_object(SentDataset(ref, dataset))
            self._sent[ref] = dataset.checksum

    def _answer(self, worker: ForkedProcess, method: ForkedProcess | None, limits: CellLimits) -> Any:
        """Return the next message of the worker process, or an unfinished cell if a limit was exceeded."""
        grace: float | None = None  # end of the time that the worker process has to notice the end of the method
        while True:
            left = None if grace is None else max(0.0, grace - time.monotonic())
            pauses = [pause for pause in (limits.pause(), left) if pause is not None]
            found = ready([worker.channel, self._server.channel], min(pauses, default=None))
            if worker.channel in found:
                return worker.channel.receive_object()
            if found and not worker.alive:
                raise EOFError
            if left == 0.0:
                return LostMethod("")
            if grace is None and found and method is not None and not method.alive:
                grace = time.monotonic() + _NOTICE
            exceeded = limits.exceeded()
            if exceeded is not None:
                return UnfinishedCell(*exceeded, (method or worker).tail())

    def _lost_worker(self, worker: ForkedProcess, job: Job, seconds: float, started: bool) -> UnfinishedCell:
        """Return why the worker process ended; an external method, which has a process of its own, is not the cause."""
        if self._abandoned:
            return UnfinishedCell("failed", ABANDONED, "")
        code, printed = worker.wait(), worker.tail()
        if code == -signal.SIGKILL:
            return _killed(seconds, printed)
        if code == IDLE_EXIT and not started:  # the process exited just before the job arrived
            return UnfinishedCell("failed", f"{LOST}: its process had ended", "", infrastructure=True)
        if job.external or code is None:
            reason = f"{LOST}: no answer, exit code {code} after {seconds:.1f} s"
            return UnfinishedCell("failed", reason, printed, infrastructure=True)
        return UnfinishedCell("failed", f"{ending(code)} after {seconds:.1f} s", printed)

    def _lost_method(self, method: ForkedProcess, seconds: float, reason: str) -> UnfinishedCell:
        """Return why the process of an external method ended, or ``reason`` if its answer was invalid."""
        if self._abandoned:
            return UnfinishedCell("failed", ABANDONED, "")
        code, printed = None if reason else method.wait(), method.tail()
        if code == -signal.SIGKILL:
            return _killed(seconds, printed)
        return UnfinishedCell("failed", reason or f"{ending(code)} after {seconds:.1f} s", printed)


def _killed(seconds: float, printed: str) -> UnfinishedCell:
    return UnfinishedCell("failed", f"{KILLED}: SIGKILL after {seconds:.1f} s", printed, infrastructure=True)


def _own_workers() -> Workers:
    if (workers := getattr(_local, "workers", None)) is not None and not workers.alive:
        close()
    if getattr(_local, "workers", None) is None:
        _local.workers = Workers()
        _all_workers.append(_local.workers)
    return _local.workers  # type: ignore[no-any-return]


def _unfinished(job: Job, outcome: UnfinishedCell) -> Record:
    record = blank_record(job)
    fail(record, outcome.status, outcome.reason)
    record.traceback = outcome.printed
    return record
