"""A joblib pool of supervisors. Cells are sent one by one, the longest first, and return in order of completion."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from ep_bench.errors import UserError
from ep_bench.processes.tree import end_with_process, ignoring_interrupts
from ep_bench.runner.jobs import LOST, AnyJob, blank_record, fail
from ep_bench.types import Record

BACKENDS = ("loky", "dask")
_AHEAD = 2  # cells dispatched per worker: one runs, one waits
_AHEAD_CLUSTER = 64  # minimum number of cells dispatched to a cluster, because more workers may join
_threads: set[int] = set()  # those with a run of several jobs; joblib has one pool per process, which a run ends
_LOSSES_ALLOWED = 10  # lost pools after which a cell that was in flight each time is given up


def run_jobs(
    jobs: Sequence[AnyJob],
    *,
    n_jobs: int,
    backend: str = "loky",
    scheduler: str | None = None,
    wanted: Callable[[AnyJob], bool] = lambda _: True,
) -> Generator[Record, None, None]:
    """Yield the record of every job in order of completion; ``wanted`` is called just before a job is sent.

    If a pool worker is lost, joblib ends the whole call. (A lost worker process is replaced by its supervisor.) Cells
    without a record are then sent to a new pool. A cell that is in flight at too many losses becomes a failed record.
    Closing the iterator ends all processes.
    """
    if backend not in BACKENDS:
        raise UserError("unknown backend", where="--backend", found=backend, allowed=BACKENDS, name=backend)
    from ep_bench.runner import supervisor  # loads scikit-learn, which a run without a missing cell does not need

    deaths = _pool_deaths(backend)
    thread = threading.get_ident()
    if backend == "loky" and n_jobs > 1:
        if _threads - {thread}:
            problem = "another run with several jobs is active in this process"
            raise UserError(problem, allowed="one run with several jobs at a time, jobs=1, or another process")
        _threads.add(thread)
    waiting = {job.cell.key: job for job in jobs}
    losses: dict[str, int] = {}
    try:
        while waiting:
            sent: list[str] = []
            try:
                with (
                    _pool(backend, list(waiting.values()), n_jobs, scheduler) as run,
                    contextlib.closing(run(_dispatched(waiting, sent, wanted))) as records,
                ):
                    for record in records:
                        del waiting[record.key]
                        yield record
            except deaths as death:
                yield from _count_losses(waiting, sent, losses, str(death))
    finally:
        _threads.discard(thread)
        if backend == "loky" and n_jobs > 1:
            _end_workers()
        supervisor.close()


def _dispatched(waiting: dict[str, AnyJob], sent: list[str], wanted: Callable[[AnyJob], bool]) -> Iterator[AnyJob]:
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
def _pool(
    backend: str, jobs: Sequence[AnyJob], n_jobs: int, scheduler: str | None
) -> Iterator[Callable[[Iterator[AnyJob]], Generator[Record, None, None]]]:
    from joblib import Parallel, delayed, parallel_config

    from ep_bench.runner import supervisor

    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="joblib")  # joblib warns when a pool is closed with jobs left
        call, ahead = delayed(supervisor.run), _AHEAD * n_jobs
        argument: int | str = os.getpid()
        joblib_backend: Any = backend
        # A worker that is starting when the run is killed must end before its first cell.
        options: dict[str, Any] = {"initializer": end_with_process, "initargs": (os.getpid(),)}
        if backend == "dask":
            cluster = _cluster()
            joblib_backend, argument, threads = stack.enter_context(cluster.connection(jobs, n_jobs, scheduler))
            options = {}
            call, ahead = delayed(cluster.run_cell_on_worker), max(_AHEAD * max(n_jobs, threads), _AHEAD_CLUSTER)
        stack.enter_context(parallel_config(backend=joblib_backend, **options))
        parallel = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=ahead, max_nbytes=None
        )

        def start(wanted: Iterator[AnyJob]) -> Generator[Record, None, None]:
            with ignoring_interrupts():
                records: Generator[Record, None, None] = parallel(call(job, argument) for job in wanted)
            return records

        yield start


def _cluster() -> Any:
    try:
        from ep_bench.runner import cluster
    except ModuleNotFoundError as error:
        raise UserError("the dask backend is not installed", allowed="pip install 'ep-bench[dask]'") from error
    return cluster


def _pool_deaths(backend: str) -> tuple[type[BaseException], ...]:
    """Return the exceptions that report a lost worker or scheduler."""
    if backend == "dask":
        return _cluster().LOSSES  # type: ignore[no-any-return]
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    return (TerminatedWorkerError, BrokenProcessPool)


def _end_workers() -> None:
    """Kill the processes that joblib keeps after a parallel call in this process."""
    reusable = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(reusable, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=True)
