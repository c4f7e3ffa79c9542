"""Run the unfinished cells of a study and store each one when it is finished."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ep_bench import data
from ep_bench.errors import UserError
from ep_bench.results import curves, row_scores, store
from ep_bench.results.store import Row
from ep_bench.runner.claims import Claims
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.progress import Progress
from ep_bench.types import Record

_OVERHEAD = 0.01  # seconds per cell in addition to fit and prediction
_POLL_INTERVAL = 1.0  # seconds between two checks of the cells of other runs


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: pool, backend, and handling of failures."""

    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: number of selected cells per status."""

    statuses: Counter[str]
    ran: int
    stopped: bool = False  # by --fail-fast

    @property
    def complete(self) -> bool:
        return set(self.statuses) <= {"ok"}


def run_plan(plan: Plan, whole: Plan, options: RunOptions) -> RunOutcome:
    """Run the unfinished cells of ``plan``; ``whole`` is the plan of the study before selection.

    Cells claimed by another live run are left to it, and this run waits until they are finished. Raises UserError if a
    data set is missing or the folder is not writable.
    """
    jobs = plan.to_run(retry_failed=options.retry_failed)
    _refuse_missing_data(plan.absent(retry_failed=options.retry_failed))
    curves.read(plan.folder)  # raise an error for an unreadable file before the run, not after hours
    row_scores.read(plan.folder)
    store.remove_drafts(plan.folder)
    lock = _write_lock(whole, ran=bool(jobs))
    ran, stopped = 0, False
    try:
        ran, stopped = _run(jobs, plan, options)
    except BaseException:
        with contextlib.suppress(OSError, UserError):  # keep the original error
            store.export(plan.folder, plan.rows | _stored_by_others(plan))
        raise
    rows = store.known_rows(plan.folder)
    finished = store.export(plan.folder, rows)
    curves.update(plan.folder, finished)
    row_scores.update(plan.folder, lock, finished)
    found = (rows.get(planned.job.cell.key) for planned in plan.cells)
    return RunOutcome(Counter(row["status"] if row else "missing" for row in found), ran, stopped)


def _stored_by_others(plan: Plan) -> dict[str, Row]:
    """Return the rows of cell files that are not in the plan's rows: of other runs, or stored at the moment of a stop.

    Known files are not read again, so that the reaction to Ctrl-C is immediate.
    """
    unknown = store.stamps(plan.folder).keys() - plan.rows.keys()
    fresh = {key: store.record_since(plan.folder, key, None) for key in unknown}
    return {key: record.row for key, record in fresh.items() if record is not None}


def _run(jobs: list[Job], plan: Plan, options: RunOptions) -> tuple[int, bool]:
    """Run jobs; return the number of finished cells, and whether the run stopped at a failure."""
    ran = 0
    if not jobs:
        return ran, False
    n_jobs = min(options.jobs, len(jobs))
    known = None if options.scheduler else n_jobs  # a cluster may grow
    with Progress(_work(jobs), known, quiet=options.quiet) as progress, Claims(plan.folder) as claims:
        own_cells = ClaimedCells(plan, claims, progress)
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


def _work(jobs: list[Job]) -> dict[str, float]:
    """Return the estimated time of each cell in seconds, by its hash."""
    known = [job.estimate for job in jobs if job.estimate is not None]
    mean = statistics.fmean(known) if known else 1.0
    return {job.cell.key: (mean if job.estimate is None else job.estimate) + _OVERHEAD for job in jobs}


class ClaimedCells:
    """The cells of this run: those without a claim of another live run, and those that other runs leave unfinished."""

    def __init__(self, plan: Plan, claims: Claims, progress: Progress) -> None:
        self._folder, self._stamps, self._rows = plan.folder, plan.stamps, plan.rows
        self._claims, self._progress = claims, progress
        self._elsewhere: dict[str, Job] = {}

    def wanted(self, job: Job) -> bool:
        """Claim a cell; return False if another run has claimed it, or finished it since the plan was made."""
        key = job.cell.key
        with self._explain_write_errors():
            claimed = self._claims.take(key)
        if not claimed:
            self._elsewhere[key] = job
            return False
        if not self._is_finished(key):
            return True
        self._claims.release(key)
        return False

    def store(self, record: Record) -> None:
        """Store a record, then release its cell. Raises UserError if it cannot be written."""
        with self._explain_write_errors():
            store.write_record(self._folder, record)
        self._rows[record.key] = record.row
        self._claims.release(record.key)
        self._progress.finished(record)

    def left(self) -> list[Job]:
        """Wait for the cells of other runs; return early with cells that such a run has left unfinished."""
        announced = False
        while self._elsewhere:
            with self._explain_write_errors():
                free = [job for key, job in self._elsewhere.items() if self._claims.take(key)]
            for job in free:
                del self._elsewhere[job.cell.key]
            unfinished = [job for job in free if self.wanted(job)]
            if unfinished:
                return unfinished
            if self._elsewhere and not announced:
                announced = True
                self._progress.message(f"{len(self._elsewhere)} cells are running in another run; waiting for them")
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
            self._rows[key] = record.row
            self._progress.elsewhere(record)
        return record is not None


def _write_lock(whole: Plan, *, ran: bool) -> dict[str, Any]:
    """Write the plan to the lock file and return it; if nothing is run, the recorded environment does not change."""
    before = store.read_lock(whole.folder)
    lock = whole.lock(None if ran or before is None else before.get("environment"))
    try:
        store.write_lock(whole.folder, lock)
    except OSError as error:
        raise UserError(f"the results folder is not writable: {error.strerror}", where=str(whole.folder)) from error
    return lock


def _refuse_missing_data(absent: list[str]) -> None:
    if absent:
        raise UserError(
            f"no data file found for {', '.join(absent)}; run `ep-bench data fetch {' '.join(absent)}`, or set "
            f"EP_BENCH_DATA to a folder that has them ({data.card(absent[0]).path})",
            where="data",
        )
