"""A joblib pool of supervisors: cells are sent one by one, the longest first, and return as they finish."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from ep_bench.processes.child_process import deaf_to_interrupts
from ep_bench.runner import supervisor
from ep_bench.runner.jobs import Job
from ep_bench.runner.records import LOST, blank_record, fail
from ep_bench.types import Record, UserError

BACKENDS = ("loky", "dask")
_AHEAD = 2  # cells out for each worker: one waits, so that none idles between two
_AHEAD_CLUSTER = 64  # cells out on a cluster at least: more workers may join
_LOSSES_ALLOWED = 10  # pools that a cell may see die before it is blamed; each death is the machine's doing


def run_jobs(
    jobs: Sequence[Job],
    *,
    n_jobs: int,
    backend: str = "loky",
    scheduler: str | None = None,
    wanted: Callable[[Job], bool] = lambda _: True,
) -> Generator[Record, None, None]:
    """Yield the record of every job as it finishes; ``wanted`` is asked just before one is sent.

    The loss of a pool worker (not of a worker process, which its supervisor replaces) ends joblib's whole call; the
    cells that had not come back are sent to a new pool, those in flight counted, so that one that kills its worker
    every time ends as a failed record. Closing the iterator ends all processes.
    """
    if backend not in BACKENDS:
        raise UserError("unknown backend", where="--backend", found=backend, allowed=BACKENDS, name=backend)
    deaths = _pool_deaths(backend)
    waiting = {job.cell.key: job for job in jobs}
    losses: dict[str, int] = {}
    try:
        while waiting:
            sent: list[str] = []
            try:
                with (
                    _pool(backend, list(waiting.values()), n_jobs, scheduler) as run,
                    contextlib.closing(run(_noting(waiting, sent, wanted))) as records,
                ):
                    for record in records:
                        del waiting[record.key]
                        yield record
            except deaths as death:
                yield from _count_losses(waiting, sent, losses, str(death))
    finally:
        _end_workers(backend, n_jobs)


def _noting(waiting: dict[str, Job], sent: list[str], wanted: Callable[[Job], bool]) -> Iterator[Job]:
    for key, job in list(waiting.items()):
        if wanted(job):
            sent.append(key)
            yield job
        else:
            del waiting[key]


def _count_losses(waiting: dict[str, Job], sent: list[str], losses: dict[str, int], death: str) -> Iterator[Record]:
    """Note which cells were in flight when a pool died; give up on those that were so too often."""
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
    backend: str, jobs: Sequence[Job], n_jobs: int, scheduler: str | None
) -> Iterator[Callable[[Iterator[Job]], Generator[Record, None, None]]]:
    from joblib import Parallel, delayed, parallel_config

    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="joblib")  # it finds a pool dropped with work left worth a word
        call, ahead = delayed(supervisor.run), _AHEAD * n_jobs
        argument: int | str = os.getpid()
        joblib_backend: Any = backend
        if backend == "dask":
            cluster = _cluster()
            joblib_backend, argument, threads = stack.enter_context(cluster.connection(jobs, n_jobs, scheduler))
            call, ahead = delayed(cluster.run_cell_there), max(_AHEAD * max(n_jobs, threads), _AHEAD_CLUSTER)
        stack.enter_context(parallel_config(backend=joblib_backend))
        parallel = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=ahead, max_nbytes=None
        )

        def start(wanted: Iterator[Job]) -> Generator[Record, None, None]:
            with deaf_to_interrupts():
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
    """Return the exceptions that tell of a lost worker or scheduler."""
    if backend == "dask":
        return _cluster().LOSSES  # type: ignore[no-any-return]
    from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    return (TerminatedWorkerError, BrokenProcessPool)


def _end_workers(backend: str, n_jobs: int) -> None:
    if backend == "loky" and n_jobs > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(max_workers=n_jobs, timeout=300).shutdown(wait=True, kill_workers=True)
    supervisor.close()
