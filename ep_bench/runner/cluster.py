"""A dask.distributed cluster as the pool: the connection, what its workers must have, what travels to them once.

Imported only where the backend is dask, since it needs the extra ``[dask]``. A worker is a supervisor as a joblib
worker is: the cell runs in a worker process below it. Data sets and method files travel once to each worker, also to
those that join later, in a plugin that the scheduler hands out; cells name them. Workers that share the results folder
do not use it: records come back to the run.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, get_worker
from distributed.comm import CommClosedError
from joblib._dask import DaskDistributedBackend

from ep_bench.processes.child_process import deaf_to_interrupts
from ep_bench.runner import supervisor
from ep_bench.runner.jobs import Job
from ep_bench.runner.payload import Payload, pack
from ep_bench.types import Record, UserError


class AbandonedError(Exception):
    """A cell whose worker process was killed since nobody waited for it. Whoever sees this does, and sends it again."""


# Of a cell's worker, more often than dask allows, or of the scheduler.
LOSSES = (KilledWorker, CommClosedError, CancelledError, AbandonedError)
_ANSWER = "10s"  # patience with a scheduler that does not answer
_FIRST = 10.0  # seconds after which a wait for the first worker is told
_PACKAGES = ("ep-bench", "numpy", "scipy", "scikit-learn", "numba")
# By value: a worker that lacks the package can still answer.
_VERSIONS = f"""{{name: __import__('importlib.metadata').metadata.version(name) for name in {_PACKAGES!r}}}"""


class PayloadPlugin(WorkerPlugin):  # type: ignore[misc]
    """Brings a run's payload to every worker, and ends on it what the run no longer wants."""

    def __init__(self, payload: Payload) -> None:
        self.name = payload.run
        self._payload = payload

    def setup(self, worker: Any) -> None:  # noqa: ARG002 dask's signature
        """Take the payload in, on a worker that was there or has joined."""
        supervisor.take_in(self._payload)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """End the run's worker processes and forget its payload."""
        supervisor.end_run(self._payload.run)

    def transition(self, key: str, start: str, finish: str, **more: Any) -> None:  # noqa: ARG002
        """Kill the worker process of a cell that nobody waits for any more: its run was killed, or lost this worker."""
        if start in {"executing", "long-running"} and finish == "released":
            supervisor.abandon(str(key))


class Backend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's backend, but for one thing: joblib runs the cells itself where it finds a single worker."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the threads of the cluster, two at least."""
        return max(2, int(super().effective_n_jobs(n_jobs)))


def run_cell_there(job: Job, run: str) -> Record:
    """Run a job in this dask worker's supervisor."""
    record = supervisor.run(job, payload=run, tag=str(get_worker().get_current_task()))
    if record.row["reason"] == supervisor.ABANDONED:
        raise AbandonedError(job.cell.key)
    return record


@contextlib.contextmanager
def connection(jobs: Sequence[Job], n_jobs: int, scheduler: str | None) -> Iterator[tuple[Backend, str, int]]:
    """Connect to a scheduler, or start a cluster of ``n_jobs`` workers here.

    Yields joblib's backend, the run's name on the cluster and how many threads there are now. Raises UserError where
    no scheduler answers or a worker has another version of ep-bench.
    """
    for name in ("distributed", "distributed.client", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of losses is said by the run
    with _client(n_jobs, scheduler) as client:
        _wait_for_workers(client)
        _compare_versions(client)
        payload = pack(f"ep-bench-{uuid.uuid4().hex[:12]}", jobs)
        client.register_plugin(PayloadPlugin(payload))
        try:
            yield Backend(client=client), payload.run, sum(client.nthreads().values())
        finally:
            if client.status == "running":  # a scheduler that is gone has nothing to forget
                with contextlib.suppress(Exception):  # nor has a worker that is just going
                    client.unregister_worker_plugin(payload.run)


@contextlib.contextmanager
def _client(n_jobs: int, scheduler: str | None) -> Iterator[Any]:
    if scheduler is None:
        resource_tracker.ensure_running()  # before: when it starts it lifts the block
        with deaf_to_interrupts():
            cluster = LocalCluster(
                n_workers=n_jobs, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            )
        with cluster, Client(cluster) as client:
            try:
                yield client
            except BaseException:
                _end_at_once(cluster)
                raise
        return
    if scheduler.endswith(".json") and not Path(scheduler).is_file():
        raise UserError(
            "no such file", where="--scheduler", found=scheduler, allowed="an address, or a scheduler's file"
        )
    where = {"scheduler_file": scheduler} if scheduler.endswith(".json") else {"address": scheduler}
    try:
        client = Client(**where, timeout=_ANSWER, name=f"ep-bench-{os.getpid()}")
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"no scheduler answers: {error}; what is finished is kept, and the next run goes on from there",
            where="--scheduler", found=scheduler,
        ) from error  # fmt: skip
    with contextlib.closing(client):
        yield client


def _end_at_once(cluster: Any) -> None:
    """Kill the workers of a cluster of ours, which would otherwise wait seconds for the cells that they run."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with contextlib.suppress(OSError, TypeError):  # it has ended, or not yet started
            os.kill(nanny.pid, signal.SIGKILL)


def _wait_for_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_FIRST)
    except TimeoutError:
        print(f"{client.scheduler.address} has no workers yet; waiting for the first", file=sys.stderr, flush=True)
        client.wait_for_workers(1)


def _compare_versions(client: Any) -> None:
    """Refuse workers that cannot run our cells; say which libraries differ, since numbers may then differ too."""
    own = {name: importlib.metadata.version(name) for name in _PACKAGES}
    for worker, found in client.run(eval, _VERSIONS, on_error="return").items():
        if isinstance(found, BaseException):
            raise UserError(
                f"the worker {worker} lacks ep-bench or what it rests on ({found})",
                where="--scheduler", allowed=f"workers with ep-bench {own['ep-bench']} installed",
            )  # fmt: skip
        if found["ep-bench"] != own["ep-bench"]:
            raise UserError(
                f"the worker {worker} has another version of ep-bench",
                where="--scheduler", found=found["ep-bench"], allowed=own["ep-bench"],
            )  # fmt: skip
        others = [f"{name} {found[name]}, here {own[name]}" for name in _PACKAGES if found[name] != own[name]]
        if others:
            print(f"warning: the worker {worker} has {'; '.join(others)}: scores may differ", file=sys.stderr)
