"""The pool on a dask.distributed cluster: connection, checks of its workers, and data sent to them once.

Imported only for the dask backend, which requires the extra ``[dask]``. A thread of a dask worker acts as a supervisor:
the cell runs in a process below it. A plugin of the scheduler sends data sets and method files once to each worker,
including workers that join later. Workers do not access the results folder: records return to the run.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import signal
import sys
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, get_worker
from distributed.comm import CommClosedError
from joblib import Parallel, delayed, parallel_config
from joblib._dask import DaskDistributedBackend

from ep_bench.errors import UserError
from ep_bench.processes.output_streams import print_line
from ep_bench.processes.tree import ignoring_interrupts
from ep_bench.runner import supervisor
from ep_bench.runner.jobs import LOST, AnyJob, blank_record, fail
from ep_bench.runner.supervisor import Payload, pack
from ep_bench.types import Record


class AbandonedError(Exception):
    """The worker process of a cell was killed because its result was no longer awaited; the cell is sent again."""


# Repeated loss of a cell's worker, or loss of the scheduler.
LOSSES = (KilledWorker, CommClosedError, CancelledError, AbandonedError)
_LOSSES_ALLOWED = 10  # losses after which a cell that was in flight each time is given up
_AHEAD, _MINIMUM_AHEAD = 2, 64  # cells sent per thread of the cluster, and at least, because more workers may join
_CONNECT_TIMEOUT = "10s"  # how long to wait for the scheduler
_MESSAGE_DELAY = 10.0  # seconds until a message reports that no worker has joined yet
_PACKAGES = ("ep-bench", "numpy", "scipy", "scikit-learn", "numba")
# Sent as source code, so that a worker without the package can still reply.
_VERSIONS = f"""{{name: __import__('importlib.metadata').metadata.version(name) for name in {_PACKAGES!r}}}"""


class PayloadPlugin(WorkerPlugin):  # type: ignore[misc]
    """Sends the payload of a run to every worker, and stops work there that the run no longer needs."""

    def __init__(self, payload: Payload) -> None:
        self.name = payload.run
        self._payload = payload

    def setup(self, worker: Any) -> None:  # noqa: ARG002 dask's signature
        """Unpack the payload on a worker."""
        supervisor.unpack(self._payload)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """End the worker processes of the run and delete its payload."""
        supervisor.end_run(self._payload.run)

    def transition(self, key: str, start: str, finish: str, **more: Any) -> None:  # noqa: ARG002
        """Kill the worker process of a cell whose result is no longer awaited."""
        if start in {"executing", "long-running"} and finish == "released":
            supervisor.abandon(str(key))


class Backend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's dask backend. joblib would run the cells itself if the cluster has a single worker."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of threads of the cluster, at least 2."""
        return max(2, int(super().effective_n_jobs(n_jobs)))


def run_cell_on_worker(job: AnyJob, run: str) -> Record:
    """Run a job in the supervisor of this dask worker."""
    record = supervisor.run(job, run, tag=str(get_worker().get_current_task()))
    if record.row["reason"] == supervisor.ABANDONED:
        raise AbandonedError(job.cell.key)
    return record


def run_jobs(
    jobs: Sequence[AnyJob], n_jobs: int, scheduler: str | None, wanted: Callable[[AnyJob], bool]
) -> Generator[Record, None, None]:
    """Yield the record of every job; see ``pool.run_jobs``.

    If a worker or the scheduler is lost, joblib ends the whole call. Cells without a record are then sent again. A cell
    that is in flight at too many losses becomes a failed record.
    """
    waiting = {job.cell.key: job for job in jobs}
    losses: dict[str, int] = {}
    while waiting:
        sent: list[str] = []
        try:
            with (
                connection(list(waiting.values()), n_jobs, scheduler) as (backend, run, threads),
                contextlib.closing(_records(_sent(waiting, sent, wanted), backend, run, max(n_jobs, threads))) as found,
            ):
                for record in found:
                    del waiting[record.key]
                    yield record
        except LOSSES as loss:
            yield from _count_losses(waiting, sent, losses, str(loss))


def _records(jobs: Iterator[AnyJob], backend: Backend, run: str, threads: int) -> Generator[Record, None, None]:
    with warnings.catch_warnings(), parallel_config(backend=backend):
        warnings.filterwarnings("ignore", module="joblib")  # joblib warns when a pool is closed with jobs left
        parallel = Parallel(
            n_jobs=threads, return_as="generator_unordered", batch_size=1, max_nbytes=None,
            pre_dispatch=max(_AHEAD * threads, _MINIMUM_AHEAD),
        )  # fmt: skip
        with ignoring_interrupts():
            records: Generator[Record, None, None] = parallel(delayed(run_cell_on_worker)(job, run) for job in jobs)
        with contextlib.closing(records):
            yield from records


def _sent(waiting: dict[str, AnyJob], sent: list[str], wanted: Callable[[AnyJob], bool]) -> Iterator[AnyJob]:
    for key, job in list(waiting.items()):
        if wanted(job):
            sent.append(key)
            yield job
        else:
            del waiting[key]


def _count_losses(waiting: dict[str, AnyJob], sent: list[str], losses: dict[str, int], death: str) -> Iterator[Record]:
    """Count the losses of cells that were in flight; yield failed records for cells with too many."""
    for key in sent:
        if key not in waiting:
            continue
        losses[key] = losses.get(key, 0) + 1
        if losses[key] >= _LOSSES_ALLOWED:
            record = blank_record(waiting.pop(key))
            fail(record, "failed", f"{LOST} {losses[key]} times: {death.splitlines()[0] if death else ''}")
            yield record


@contextlib.contextmanager
def connection(jobs: Sequence[AnyJob], n_jobs: int, scheduler: str | None) -> Iterator[tuple[Backend, str, int]]:
    """Connect to a scheduler, or start a local cluster of ``n_jobs`` workers.

    Yields joblib's backend, the name of the run on the cluster, and the current number of threads. Raises UserError if
    the scheduler does not answer or a worker has another version of ep-bench.
    """
    for name in ("distributed", "distributed.client", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the run itself reports losses
    with _client(n_jobs, scheduler) as client:
        _wait_for_workers(client)
        _compare_versions(client)
        payload = pack(f"ep-bench-{uuid.uuid4().hex[:12]}", jobs)
        client.register_plugin(PayloadPlugin(payload))
        try:
            yield Backend(client=client), payload.run, sum(client.nthreads().values())
        finally:
            if client.status == "running":  # the scheduler may be gone
                with contextlib.suppress(Exception):  # or a worker may be leaving
                    client.unregister_worker_plugin(payload.run)


@contextlib.contextmanager
def _client(n_jobs: int, scheduler: str | None) -> Iterator[Any]:
    if scheduler is None:
        resource_tracker.ensure_running()  # first, because starting it would unblock the signal
        with ignoring_interrupts():
            cluster = LocalCluster(
                n_workers=n_jobs, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            )
        with cluster, Client(cluster) as client:
            try:
                yield client
            except BaseException:
                _kill_workers(cluster)
                raise
        return
    if scheduler.endswith(".json") and not Path(scheduler).is_file():
        raise UserError("no such file", where="--scheduler", found=scheduler, allowed="an address, or a scheduler file")
    where = {"scheduler_file": scheduler} if scheduler.endswith(".json") else {"address": scheduler}
    try:
        client = Client(**where, timeout=_CONNECT_TIMEOUT, name=f"ep-bench-{os.getpid()}")
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"the scheduler does not answer: {error}; finished cells are kept, and the next run continues from there",
            where="--scheduler", found=scheduler,
        ) from error  # fmt: skip
    with contextlib.closing(client):
        yield client


def _kill_workers(cluster: Any) -> None:
    """Kill the workers of a local cluster, which would otherwise finish their cells first."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with contextlib.suppress(OSError, TypeError):  # it has exited or has not started yet
            os.kill(nanny.pid, signal.SIGKILL)


def _wait_for_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_MESSAGE_DELAY)
    except TimeoutError:
        print_line(f"{client.scheduler.address} has no workers yet; waiting for the first one", sys.stderr)
        client.wait_for_workers(1)


def _compare_versions(client: Any) -> None:
    """Raise UserError for workers that cannot run cells, and warn if versions of libraries differ."""
    local = {name: importlib.metadata.version(name) for name in _PACKAGES}
    for worker, found in client.run(eval, _VERSIONS, on_error="return").items():
        if isinstance(found, OSError):  # the worker has just ended
            continue
        if isinstance(found, BaseException):
            raise UserError(
                f"the worker {worker} has no ep-bench, or a dependency is missing ({found})",
                where="--scheduler", allowed=f"workers with ep-bench {local['ep-bench']} installed",
            )  # fmt: skip
        if found["ep-bench"] != local["ep-bench"]:
            raise UserError(
                f"the worker {worker} has another version of ep-bench",
                where="--scheduler", found=found["ep-bench"], allowed=local["ep-bench"],
            )  # fmt: skip
        others = [f"{name} {found[name]}, here {local[name]}" for name in _PACKAGES if found[name] != local[name]]
        if others:
            print_line(f"warning: worker {worker} has {'; '.join(others)}; scores may differ", sys.stderr)
