"""The pool of a run: threads that supervise the cells of this machine, or the workers of a dask cluster.

A method is fitted in a child process of its supervisor, so that a thread per running cell is enough.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from ep_bench.errors import UserError
from ep_bench.runner.jobs import AnyJob
from ep_bench.types import Record

BACKENDS = ("local", "loky", "dask")  # the second is an older name of the first
_END_INTERVAL = 0.1  # seconds between two attempts to end the cells of a run


def run_jobs(
    jobs: Sequence[AnyJob],
    *,
    n_jobs: int,
    backend: str = "local",
    scheduler: str | None = None,
    wanted: Callable[[AnyJob], bool] = lambda _: True,
) -> Generator[Record, None, None]:
    """Yield the record of every job in order of completion; ``wanted`` is called just before a job is sent.

    Closing the iterator ends all processes.
    """
    if backend not in BACKENDS:
        raise UserError("unknown backend", where="--backend", found=backend, allowed=BACKENDS, name=backend)
    if backend == "dask":
        return _cluster().run_jobs(jobs, n_jobs, scheduler, wanted)  # type: ignore[no-any-return]
    return _run_here(filter(wanted, jobs), n_jobs)


def _run_here(jobs: Iterator[AnyJob], n_jobs: int) -> Generator[Record, None, None]:
    from threadpoolctl import threadpool_limits

    from ep_bench.runner import supervisor  # a run without a missing cell does not need it

    run = uuid.uuid4().hex
    # Threads of BLAS would compete with the supervisors, which score, and change rounding errors.
    with threadpool_limits(1), ThreadPoolExecutor(n_jobs, "supervisor") as threads:

        def started(count: int) -> set[Future[Record]]:
            return {threads.submit(supervisor.run, job, run) for job in islice(jobs, count)}

        running = started(n_jobs)
        try:
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    running |= started(1)
                    yield future.result()
        finally:
            while running:  # repeated, because a supervisor may be starting its processes
                supervisor.end_run(run)
                running = wait(running, _END_INTERVAL).not_done
            threads.shutdown()
            supervisor.close(run)


def _cluster() -> Any:
    try:
        from ep_bench.runner import cluster
    except ModuleNotFoundError as error:
        raise UserError("the dask backend is not installed", allowed="pip install 'ep-bench[dask]'") from error
    return cluster
