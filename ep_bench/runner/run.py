"""Run the unfinished cells of a study and store each one when it is finished."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from ep_bench import data
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner.cell_locks import CellLocks
from ep_bench.runner.jobs import AnyJob, BasePlan
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.progress import Progress
from ep_bench.types import Record

_OVERHEAD = 0.01  # seconds per cell in addition to fit and prediction
_EXPORT_INTERVAL = 30.0  # seconds between two updates of results.csv
_POLL_INTERVAL = 1.0  # seconds between two checks of the cells of other runs


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: pool, backend, and handling of failures."""

    jobs: int = 1
    backend: str = "local"
    scheduler: str | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    quiet: bool = False
    stored_only: bool = False  # run no cell


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: number of selected cells per status."""

    statuses: Counter[str]
    ran: int
    stopped: bool = False  # by --fail-fast
    taken: Counter[str] = field(default_factory=Counter)  # number of cells by the folder that they were taken over from

    @property
    def complete(self) -> bool:
        return set(self.statuses) <= {"ok"}


def run_plan(plan: BasePlan, options: RunOptions) -> RunOutcome:
    """Run the unfinished cells of a plan and store them.

    Cells locked by another live run are left to it, and this run waits until they are finished. Raises UserError if a
    data set is missing or the folder is not writable.
    """
    jobs: list[AnyJob] = []
    if not options.stored_only:
        jobs = plan.to_run(retry_failed=options.retry_failed)
        _refuse_missing_data(plan.absent(retry_failed=options.retry_failed))
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        plan.begin(jobs)
    except OSError as error:
        raise UserError(f"the results folder is not writable: {error.strerror}", where=str(plan.folder)) from error
    taken = plan.take_over(failed=options.stored_only)
    try:
        with PeriodicExport(plan):
            ran, stopped = _run(jobs, plan, options)
    except BaseException:
        with contextlib.suppress(OSError, UserError):  # keep the original error
            plan.save(with_curves=False)
        raise
    plan.save()
    return RunOutcome(plan.statuses(), ran, stopped, taken)


class PeriodicExport:
    """Writes ``results.csv`` while cells are running, if a cell has finished since the last time."""

    def __init__(self, plan: BasePlan, interval: float = _EXPORT_INTERVAL) -> None:
        self._plan, self._interval = plan, interval
        self._written = store.stamps(plan.folder)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="export of results", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._interval):
            stamps = store.stamps(self._plan.folder)
            if stamps != self._written:
                with contextlib.suppress(OSError, UserError):  # the run reports them at its end
                    self._plan.save(with_curves=False)
                    self._written = stamps


def _run(jobs: list[AnyJob], plan: BasePlan, options: RunOptions) -> tuple[int, bool]:
    """Run jobs; return the number of finished cells, and whether the run stopped at a failure."""
    ran = 0
    if not jobs:
        return ran, False
    n_jobs = min(options.jobs, len(jobs))
    known = None if options.scheduler else n_jobs  # a cluster may grow
    estimated = any(job.estimate is not None for job in jobs)
    shown = Progress(
        _work(jobs), known, estimated=estimated, quiet=options.quiet, unit=plan.unit, seeds=plan.study.seeds > 1
    )
    with shown as progress, CellLocks(plan.folder) as locks:
        own_cells = LockedCells(plan, locks, progress)
        waiting = jobs
        while waiting:
            records = run_jobs(
                waiting, n_jobs=n_jobs, backend=options.backend, scheduler=options.scheduler, wanted=own_cells.wanted
            )
            with contextlib.closing(records):
                for record in records:
                    own_cells.store(record)
                    ran += 1
                    if options.fail_fast and record.row["status"] != "ok":
                        return ran, True
            waiting = own_cells.left()
    return ran, False


def _work(jobs: list[AnyJob]) -> dict[str, float]:
    """Return the estimated time of each cell in seconds by its hash; equal numbers without any estimate."""
    known = [job.estimate for job in jobs if job.estimate is not None]
    mean = statistics.fmean(known) if known else 1.0
    return {job.cell.key: (mean if job.estimate is None else job.estimate) + _OVERHEAD for job in jobs}


class LockedCells:
    """The cells of this run: those that no other live run has locked, and those that other runs leave unfinished."""

    def __init__(self, plan: BasePlan, locks: CellLocks, progress: Progress) -> None:
        self._plan, self._folder, self._stamps, self._finished = plan, plan.folder, plan.stamps, plan.finished
        self._locks, self._progress = locks, progress
        self._elsewhere: dict[str, AnyJob] = {}

    def wanted(self, job: AnyJob) -> bool:
        """Lock a cell; return False if another run has locked it, or finished it since the plan was made."""
        key = job.cell.key
        with self._explain_write_errors():
            is_free = self._locks.take(key)
        if not is_free:
            self._elsewhere[key] = job
            return False
        if not self._is_finished(key):
            self._progress.started(job)
            return True
        self._locks.release(key)
        return False

    def store(self, record: Record) -> None:
        """Store a record, then release its cell. Raises UserError if it cannot be written."""
        with self._explain_write_errors():
            store.write_record(self._folder, record)
        self._finished.add(record)
        self._locks.release(record.key)
        self._progress.finished(record)
        self._plan.check(record)

    def left(self) -> list[AnyJob]:
        """Wait for the cells of other runs; return early with cells that such a run has left unfinished."""
        announced = False
        while self._elsewhere:
            with self._explain_write_errors():
                free = [job for key, job in self._elsewhere.items() if self._locks.take(key)]
            for job in free:
                del self._elsewhere[job.cell.key]
            unfinished = [job for job in free if self.wanted(job)]
            if unfinished:
                return unfinished
            if self._elsewhere and not announced:
                announced = True
                count = f"{len(self._elsewhere)} {self._plan.unit}"
                self._progress.message(f"{count} are running in another run; waiting for them")
            if self._elsewhere:
                time.sleep(_POLL_INTERVAL)
        return []

    @contextlib.contextmanager
    def _explain_write_errors(self) -> Iterator[None]:
        """Explain write failures, such as a full disk."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{error.strerror}; every stored cell is kept, and the next `ep-bench run` continues from there",
                where=error.filename or str(self._folder),
            ) from error

    def _is_finished(self, key: str) -> bool:
        record = store.record_since(self._folder, key, self._stamps.get(key))
        if record is not None:
            self._finished.add(record)
            self._progress.finished(record, " (another run)")
        return record is not None


def _refuse_missing_data(absent: list[str]) -> None:
    if absent:
        raise UserError(
            f"no data file found for {', '.join(absent)}; run `ep-bench data fetch {' '.join(absent)}`, or set "
            f"EP_BENCH_DATA to a folder that has them ({data.card(absent[0]).path})",
            where="data",
        )
