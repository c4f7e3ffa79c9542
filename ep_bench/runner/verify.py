"""Stored cells computed again and compared with their rows. Nothing in the results folders is written."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench import adapters, methods
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.results.provenance import same_arithmetic
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import matches, selection
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.stored_cells import seconds_of, stored_job
from ep_bench.types import MEASURED_COLUMNS, SCORE_COLUMNS, Equality

RELATIVE = 1e-6  # largest relative difference of equal scores of a method whose results are exact
STANDARD_ERRORS = 0.2  # largest difference of equal scores of other methods, in standard errors over the splits
MAIN = ("rmse", "error_rate", "ll")  # scores that are compared for methods that are not exact
COMPARED = tuple(column for column in SCORE_COLUMNS if column not in MEASURED_COLUMNS)
_OVERHEAD = 3.0  # seconds of a cell in addition to the stored time: a process starts, kernels are loaded


class Difference(NamedTuple):
    """A score that is not equal to the stored one."""

    method: str
    dataset: str
    split: int
    column: str
    stored: float | str
    now: float | str
    allowed: float  # largest absolute difference


@dataclass
class Verification:
    """The outcome for one results folder."""

    folder: str
    identical: int = 0  # bit for bit
    equal: int = 0  # within the tolerance
    differences: list[Difference] = field(default_factory=list)
    different: int = 0
    impossible: list[str] = field(default_factory=list)  # why cells cannot be compared here
    untried: int = 0  # cells of the sample for which the time was not sufficient
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """Number of cells that were computed and compared."""
        return self.identical + self.equal + self.different


@dataclass(frozen=True)
class StoredCell:
    """A finished cell of a results folder."""

    study: store.StudyResults
    cell: Mapping[str, Any]
    row: store.Row
    outcome: Verification


@dataclass(frozen=True)
class Sample:
    """Which cells are verified: ``cells`` per folder (None for all), with the seed of the random choice."""

    seed: int
    cells: int | None
    select: Sequence[str] = ()


def verify(
    studies: Sequence[store.StudyResults], sample: Sample, *, jobs: int = 1, budget: float = math.inf
) -> list[Verification]:
    """Compute a sample of the stored cells of each study again, and compare the rows.

    ``budget`` is in seconds for all studies together: a cell is not started if its stored time exceeds what is left.
    """
    outcomes = [Verification(str(study.folder)) for study in studies]
    chance = random.Random(sample.seed)
    chosen = [
        each
        for study, outcome in zip(studies, outcomes, strict=True)
        for each in _choose(study, outcome, sample, chance)
    ]
    if math.isfinite(budget):
        chosen = _cheap_first(chosen, chance)
    started = time.monotonic()

    def affordable(job: Job) -> bool:
        return time.monotonic() - started + (job.estimate or 0.0) + _OVERHEAD <= budget

    ready, untried = _ready(chosen)
    for record in run_jobs(ready, n_jobs=jobs, wanted=affordable):
        for stored in untried.pop(record.key):
            _compare(stored, record.row)
    for stored in (each for found in untried.values() for each in found):
        stored.outcome.untried += 1
    return outcomes


def _choose(
    study: store.StudyResults, outcome: Verification, sample: Sample, chance: random.Random
) -> list[StoredCell]:
    """Return random cells of a study; the probability of a cell decreases with its stored time."""
    rows = {row["cell"]: row for row in study.rows if row["status"] == "ok"}
    wanted = selection(sample.select)
    cells = {
        cell["cell"]: cell for cell in store.lock_cells(study.lock) if cell["cell"] in rows and matches(cell, wanted)
    }
    found = [StoredCell(study, cell, rows[key], outcome) for key, cell in cells.items()]
    return _cheap_first(found, chance)[: sample.cells]


def _cheap_first(cells: list[StoredCell], chance: random.Random) -> list[StoredCell]:
    """Return cells in a random order, in which cheap cells tend to come first (Efraimidis and Spirakis 2006)."""
    drawn = {id(cell): chance.expovariate(1.0) * (1.0 + seconds_of(cell.row)) for cell in cells}
    return sorted(cells, key=lambda cell: drawn[id(cell)])


def _ready(cells: Sequence[StoredCell]) -> tuple[list[Job], dict[str, list[StoredCell]]]:
    """Return the jobs that can be computed here, and their stored cells by hash: several folders may have a cell.

    The reasons why others cannot be computed are added to their outcome.
    """
    jobs: dict[str, Job] = {}
    stored: dict[str, list[StoredCell]] = {}
    for each in cells:
        try:
            job = stored_job(each.study, each.cell, each.row)
        except UserError as error:
            each.outcome.impossible.append(str(error))
        else:
            jobs.setdefault(job.cell.key, job)
            stored.setdefault(job.cell.key, []).append(each)
    return list(jobs.values()), stored


def _compare(stored: StoredCell, now: store.Row) -> None:
    outcome = stored.outcome
    outcome.seconds += seconds_of(now)
    found = _differences(stored, now, _tolerance(stored))
    outcome.differences += found
    if found:
        outcome.different += 1
    elif all(now.get(column) == stored.row[column] for column in COMPARED if column in stored.row):
        outcome.identical += 1
    else:
        outcome.equal += 1


def _differences(stored: StoredCell, now: store.Row, allowed: Callable[[str, float], float]) -> list[Difference]:
    place = (stored.cell["method"], stored.cell["dataset"], stored.cell["split"])
    if now["status"] != "ok":
        return [Difference(*place, "status", "ok", f"{now['status']}: {now.get('reason', '')}", 0.0)]
    found = []
    for column in (column for column in COMPARED if column in stored.row):
        before, after, limit = stored.row[column], now.get(column, math.nan), allowed(column, stored.row[column])
        if before != after and not abs(after - before) <= limit:
            found.append(Difference(*place, column, before, after, limit))
    return found


def _tolerance(stored: StoredCell) -> Callable[[str, float], float]:
    """Return a function of column and stored value: the largest absolute difference of equal values.

    Exact methods must agree bit for bit in the same environment. For other methods, all scores are compared in the same
    environment, and MAIN elsewhere.
    """
    origin = stored.study.origin(stored.row)
    same = origin is not None and same_arithmetic(origin.environment)
    if equality(stored.cell["factors"]["method"]) == "exact":
        return lambda _, value: 0.0 if same else RELATIVE * abs(value)
    errors = _standard_errors(stored, COMPARED if same else MAIN)
    return lambda column, value: (
        max(RELATIVE * abs(value), STANDARD_ERRORS * errors[column]) if column in errors else math.inf
    )


def equality(use: str) -> Equality:
    """Return how the results of a method are compared; a class may have an attribute ``equality``."""
    if not adapters.is_target(use):
        return methods.get(use).equality
    declared: Equality = getattr(adapters.resolve(use, Path.cwd()), "equality", "optimised")
    return declared


def _standard_errors(stored: StoredCell, columns: Sequence[str]) -> dict[str, float]:
    """Return the standard errors of the scores over the splits of the method and data set.

    With a single split, they are those over the test points, for MAIN only.
    """
    place = (stored.row["method"], stored.row["dataset"])
    rows = [row for row in stored.study.rows if (row["method"], row["dataset"]) == place and row["status"] == "ok"]
    if len(rows) == 1:
        return {column: error for column in MAIN if (error := _error_over_points(stored.row, column)) is not None}
    values = {column: [row[column] for row in rows if column in row] for column in columns if column in stored.row}
    return {column: statistics.pstdev(found) / math.sqrt(len(found)) for column, found in values.items()}


def _error_over_points(row: store.Row, column: str) -> float | None:
    """Return the standard error of a score over the test points of its split, None if the row does not have it."""
    n = row["n_test"]
    if column == "error_rate" and column in row:
        return math.sqrt(row[column] * (1.0 - row[column]) / n)
    if column == "ll" and "ll_std" in row:
        return float(row["ll_std"] / math.sqrt(n))
    if column == "rmse" and row.get("rmse") and "se_std" in row:  # from that of the mean squared error
        return float(row["se_std"] / (2.0 * row["rmse"] * math.sqrt(n)))
    return None
