"""Run what a study lacks, keeping every finished cell."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ep_bench import data
from ep_bench.results import curves, row_scores, store
from ep_bench.results.store import Row
from ep_bench.runner.claims import Claims
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.progress import Progress
from ep_bench.types import Record, UserError

_OVERHEAD = 0.01  # seconds that a cell takes beside its fit and prediction
_LOOK = 1.0  # seconds between looks at the cells of other runs


@dataclass(frozen=True)
class RunOptions:
    """How to run: pool, backend, and what to do about failures."""

    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class RunOutcome:
    """Where a study stands after a run: cells by status, over the cells that were asked for."""

    statuses: Counter[str]
    ran: int
    stopped: bool = False  # by --fail-fast

    @property
    def complete(self) -> bool:
        return set(self.statuses) <= {"ok"}


def run_plan(plan: Plan, whole: Plan, options: RunOptions) -> RunOutcome:
    """Run the cells of ``plan`` that are not finished; ``whole`` is the study's plan before any selection.

    Cells that another live run of the folder has claimed are left to it; this run returns when they are finished too.
    Raises UserError where a data set is missing or the folder cannot be written.
    """
    jobs = plan.to_run(retry_failed=options.retry_failed)
    _refuse_missing_data(plan.absent(retry_failed=options.retry_failed))
    curves.read(plan.folder)  # a file that cannot be read is refused before the hours of a run
    row_scores.read(plan.folder)
    store.sweep(plan.folder)
    lock = _write_lock(whole, ran=bool(jobs))
    ran, stopped = 0, False
    try:
        ran, stopped = _run(jobs, plan, options)
    except BaseException:
        with contextlib.suppress(OSError, UserError):  # what stopped the run is the news
            store.export(plan.folder, plan.rows | _stored_unnoted(plan))
        raise
    rows = store.known_rows(plan.folder)
    finished = store.export(plan.folder, rows)
    curves.update(plan.folder, finished)
    row_scores.update(plan.folder, lock, finished)
    found = (rows.get(planned.job.cell.key) for planned in plan.cells)
    return RunOutcome(Counter(row["status"] if row else "missing" for row in found), ran, stopped)


def _stored_unnoted(plan: Plan) -> dict[str, Row]:
    """Return the rows of cell files that the run does not know of: one that it was just noting, those of other runs.

    The others are not read again, for a Ctrl-C is answered at once.
    """
    unknown = store.stamps(plan.folder).keys() - plan.rows.keys()
    fresh = {key: store.record_since(plan.folder, key, None) for key in unknown}
    return {key: record.row for key, record in fresh.items() if record is not None}


def _run(jobs: list[Job], plan: Plan, options: RunOptions) -> tuple[int, bool]:
    """Return how many cells this run has run and whether it stopped at a failure."""
    ran = 0
    if not jobs:
        return ran, False
    n_jobs = min(options.jobs, len(jobs))
    known = None if options.scheduler else n_jobs  # a cluster may grow
    with Progress(_work(jobs), known, quiet=options.quiet) as progress, Claims(plan.folder) as claims:
        share = ClaimedCells(plan, claims, progress)
        waiting = jobs
        while waiting:
            records = run_jobs(
                waiting, n_jobs=n_jobs, backend=options.backend, scheduler=options.scheduler, wanted=share.wanted
            )
            with contextlib.closing(records):
                for record in records:
                    share.store(record)
                    ran += 1
                    if options.fail_fast and record.row["status"] != "ok":
                        return ran, True
            waiting = share.left()
    return ran, False


def _work(jobs: list[Job]) -> dict[str, float]:
    """Return the estimated seconds of each cell by its hash."""
    known = [job.estimate for job in jobs if job.estimate is not None]
    usual = statistics.fmean(known) if known else 1.0
    return {job.cell.key: (usual if job.estimate is None else job.estimate) + _OVERHEAD for job in jobs}


class ClaimedCells:
    """The cells that fall to this run: what no other live run has claimed, and what others leave unfinished."""

    def __init__(self, plan: Plan, claims: Claims, progress: Progress) -> None:
        self._folder, self._stamps, self._rows = plan.folder, plan.stamps, plan.rows
        self._claims, self._progress = claims, progress
        self._elsewhere: dict[str, Job] = {}

    def wanted(self, job: Job) -> bool:
        """Claim a cell. False where another run has it, or has finished it since the plan was made."""
        key = job.cell.key
        with self._disk():
            taken = self._claims.take(key)
        if not taken:
            self._elsewhere[key] = job
            return False
        if not self._is_finished(key):
            return True
        self._claims.release(key)
        return False

    def store(self, record: Record) -> None:
        """Keep a record, then let go of its cell. Raises UserError where the disk takes no more."""
        with self._disk():
            store.write_record(self._folder, record)
        self._rows[record.key] = record.row
        self._claims.release(record.key)
        self._progress.finished(record)

    def left(self) -> list[Job]:
        """Wait for the cells of other runs; return those that a run has left unfinished as soon as there are any."""
        announced = False
        while self._elsewhere:
            with self._disk():
                free = [job for key, job in self._elsewhere.items() if self._claims.take(key)]
            for job in free:
                del self._elsewhere[job.cell.key]
            unfinished = [job for job in free if self.wanted(job)]
            if unfinished:
                return unfinished
            if self._elsewhere and not announced:
                announced = True
                self._progress.say(f"{len(self._elsewhere)} cells are under way in another run; waiting for them")
            if self._elsewhere:
                time.sleep(_LOOK)
        return []

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        """Say of a disk that takes no more what that means."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{error.strerror}; every cell that was stored before is kept, and the next `ep-bench run` goes on "
                "from there",
                where=error.filename or str(self._folder),
            ) from error

    def _is_finished(self, key: str) -> bool:
        record = store.record_since(self._folder, key, self._stamps.get(key))
        if record is not None:
            self._rows[key] = record.row
            self._progress.elsewhere(record)
        return record is not None


def _write_lock(whole: Plan, *, ran: bool) -> dict[str, Any]:
    """Write the plan and return it; where nothing is run, the environment of the earlier run stays in it."""
    before = store.read_lock(whole.folder)
    lock = whole.lock(None if ran or before is None else before.get("environment"))
    try:
        store.write_lock(whole.folder, lock)
    except OSError as error:
        raise UserError(f"the results folder cannot be written: {error.strerror}", where=str(whole.folder)) from error
    return lock


def _refuse_missing_data(absent: list[str]) -> None:
    if absent:
        raise UserError(
            f"not on this machine: {', '.join(absent)}; `ep-bench data fetch {' '.join(absent)}` gets them, or "
            f"EP_BENCH_DATA names a folder that has them ({data.card(absent[0]).path})",
            where="data",
        )
