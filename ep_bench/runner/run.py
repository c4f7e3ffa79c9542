"""Run what a study lacks, keeping every finished cell."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ep_bench import data, store
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.progress import Progress
from ep_bench.types import UserError

_OVERHEAD = 0.01  # seconds that a cell takes beside its fit and prediction


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
class Outcome:
    """Where a study stands after a run: cells by status, over the cells that were asked for."""

    statuses: Counter[str]
    ran: int
    stopped: bool = False  # by --fail-fast

    @property
    def complete(self) -> bool:
        return set(self.statuses) <= {"ok"}


def run_plan(plan: Plan, whole: Plan, options: RunOptions) -> Outcome:
    """Run the cells of ``plan`` that are not finished; ``whole`` is the study's plan before any selection.

    Raises UserError where a data set is missing or the folder cannot be written.
    """
    jobs = plan.to_run(retry_failed=options.retry_failed)
    _refuse_missing_data(plan)
    store.sweep(plan.folder)
    _write_lock(whole, ran=bool(jobs))
    ran, stopped = 0, False
    try:
        ran, stopped = _run(jobs, plan.folder, options)
    finally:
        store.export(plan.folder)
    rows = store.known_rows(plan.folder)
    found = (rows.get(planned.job.cell.key) for planned in plan.cells)
    return Outcome(Counter(row["status"] if row else "missing" for row in found), ran, stopped)


def _run(jobs: list[Job], folder: Path, options: RunOptions) -> tuple[int, bool]:
    if not jobs:
        return 0, False
    known = [job.estimate for job in jobs if job.estimate is not None]
    usual = statistics.fmean(known) if known else 1.0
    work = {job.cell.key: (usual if job.estimate is None else job.estimate) + _OVERHEAD for job in jobs}
    n_jobs = min(options.jobs, len(jobs))
    records = run_jobs(jobs, n_jobs=n_jobs, backend=options.backend, scheduler=options.scheduler)
    with Progress(work, n_jobs, quiet=options.quiet) as progress:
        try:
            for count, record in enumerate(records, start=1):
                store.write_record(folder, record)
                progress.finished(record)
                if options.fail_fast and record.row["status"] != "ok":
                    return count, True
        finally:
            records.close()
    return len(jobs), False


def _write_lock(whole: Plan, *, ran: bool) -> None:
    """Write the plan; where nothing is run, the environment of the earlier run stays in it."""
    lock = whole.lock()
    before = store.read_lock(whole.folder)
    if before is not None and not ran:
        lock["environment"] = before.get("environment", lock["environment"])
    try:
        store.write_lock(whole.folder, lock)
    except OSError as error:
        raise UserError(f"the results folder cannot be written: {error.strerror}", where=str(whole.folder)) from error


def _refuse_missing_data(plan: Plan) -> None:
    absent = plan.absent()
    if absent:
        raise UserError(
            f"not on this machine: {', '.join(absent)}; `ep-bench data fetch {' '.join(absent)}` gets them, or "
            f"EP_BENCH_DATA names a folder that has them ({data.card(absent[0]).path})",
            where="data",
        )
