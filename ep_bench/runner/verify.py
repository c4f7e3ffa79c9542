"""Stored cells computed again and compared with their rows. Nothing in the results folders is written.

With the same processor, BLAS kernel and libraries, all scores must be equal: those of exact methods bit for bit, others
up to rounding. Elsewhere the scores of exact and stable methods are compared one by one. Other optimisers may end in
another optimum and a chain takes another way, so that only the means over the splits of these methods are compared, and
the median difference of their cells.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench import adapters, methods
from ep_bench.errors import INSTALL_EXTRA, UserError
from ep_bench.results import store
from ep_bench.results.provenance import same_arithmetic
from ep_bench.results.selection import matches, require_matches, selection
from ep_bench.runner.jobs import AnyJob, Job
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.recompute import seconds_of, stored_job
from ep_bench.types import MEASURED_COLUMNS, SCORE_COLUMNS, UNCONVERGED, Equality

RELATIVE = 1e-6  # largest relative difference of equal scores of a method whose results are exact
# Number of hidden layers from which an exact method, too, is compared by means on another processor: such
# networks amplify rounding errors, sometimes without limit. With four layers of PBP on split 9 of energy, relative
# changes of 1e-15 of the inputs change the RMSE from 1.95 to 1.86 in four of eight fits; in others, by 1e-5 at most.
LAYERS = 3
# Largest difference of a score of a stable method on another processor, in standard deviations over the splits. The
# largest that benchmarks/other_processor.py measures is 2e-5.
STABLE = 1e-3
# Options with which a stable method is not: another processor changes log-likelihoods of factorial variational Bayes by
# up to 0.006 of these standard deviations, that of black-box alpha on split 9 of boston by 0.05, and those of networks
# whose noise depends on the input by 0.9, with another ``exp`` of the C library. With three starts, a Gaussian process
# on split 12 of yacht then ends in another maximum of the evidence: 0.6. Hundreds of parallel sweeps of EP for networks
# end at another fixed point on fold 1 of boston: 1.
UNSTABLE = (
    ("gp_t", "inference", "fvb"), ("bb_alpha", "alpha", 1.0), ("vi", "noise", "heteroscedastic"), ("gp", "starts", 3),
    ("ep_nn", "updates", "parallel"),
)  # fmt: skip
# Methods whose fits may end in another optimum on another processor, by more than the limits below: with another
# ``exp``, the error of LA-full on a gap of yacht moves by 2 standard deviations over the splits. Networks with a noise
# output, or a variational last layer, stop early, at an epoch that rounding errors change. Long fits of ivon amplify
# rounding errors: on elevators, the log-likelihood of one moves by 1.4 nats.
UNCOMPARABLE = ("laplace", "mve", "vbll", "ivon")
# Options with which rounding errors change a fit by up to 0.4 standard deviations: Adam is unstable with this step.
CHAOTIC = (("ensemble", "learning_rate", 0.1),)
STANDARD_ERRORS = 0.2  # largest difference of equal means of other methods, in standard errors over the splits
# Largest difference of the one cell that is excepted, in standard deviations over the splits: a single fit that ends in
# another optimum is no error. benchmarks/other_processor.py measures such differences; the largest was about 1.
ONE_CELL = 1.5
# Largest median over the cells of a method, in the same unit, if there are at least FEWEST: most end in one optimum.
MEDIAN, FEWEST = 0.3, 4
MAIN = ("rmse", "error_rate", "ll")  # scores whose means are compared
COMPARED = tuple(column for column in SCORE_COLUMNS if column not in MEASURED_COLUMNS)
_OVERHEAD = 1.0  # seconds of a cell in addition to the stored time


class Difference(NamedTuple):
    """A score that is not equal to the stored one."""

    method: str
    dataset: str
    split: int | None  # None for the mean over all splits
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
    changed: dict[tuple[str, str], list[tuple[StoredCell, store.Row]]] = field(default_factory=dict)

    def add(self, differences: Sequence[Difference]) -> None:
        """Count a cell and its differences."""
        self.differences += differences
        self.different += bool(differences)
        self.equal += not differences

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

    @property
    def place(self) -> tuple[str, str, int]:
        """Method, data set and split."""
        return self.cell["method"], self.cell["dataset"], self.cell["split"]

    def splits(self) -> list[store.Row]:
        """Return the rows of all splits and seeds of this method and data set."""
        place = (self.row["method"], self.row["dataset"])
        return [r for r in self.study.all_rows if (r["method"], r["dataset"]) == place and r["status"] == "ok"]


@dataclass(frozen=True)
class Sample:
    """Which cells are verified: ``cells`` per folder (None for all), with the seed of the random choice."""

    seed: int
    cells: int | None
    select: Sequence[str] = ()
    files: bool = False  # whether classes in files of the results folders are imported
    longest: float = math.inf  # seconds: if finite, all cells with a shorter stored time have the same probability


def verify(
    studies: Sequence[store.StudyResults], sample: Sample, *, jobs: int = 1, budget: float = math.inf
) -> list[Verification]:
    """Compute a sample of the stored cells of each study again, and compare the rows.

    ``budget`` is in seconds for all studies together: a cell is not started if its stored time exceeds what is left.
    """
    outcomes = [Verification(str(study.folder)) for study in studies]
    if sample.select:
        require_matches(selection(sample.select), (cell for study in studies for cell in _finished_cells(study)))
    chance = random.Random(sample.seed)
    chosen = [
        each
        for study, outcome in zip(studies, outcomes, strict=True)
        for each in _choose(study, outcome, sample, chance)
    ]
    if math.isfinite(budget):
        chosen = _cheap_first(chosen, chance)
    started = time.monotonic()

    def affordable(job: AnyJob) -> bool:
        return time.monotonic() - started + (job.estimate or 0.0) + _OVERHEAD <= budget

    ready, untried = _ready(chosen, files=sample.files)
    for record in run_jobs(ready, n_jobs=jobs, wanted=affordable):
        for stored in untried.pop(record.key):
            _compare(stored, record.row)
    for outcome in outcomes:
        _judge_means(outcome)
    for stored in (each for found in untried.values() for each in found):
        stored.outcome.untried += 1
    return outcomes


def _finished_cells(study: store.StudyResults) -> Iterator[Mapping[str, Any]]:
    """Yield the cells that ended ok."""
    rows = {row["cell"] for row in study.all_rows if row["status"] == "ok"}
    return (cell for cell in store.lock_cells(study.lock) if cell["cell"] in rows)


def _choose(
    study: store.StudyResults, outcome: Verification, sample: Sample, chance: random.Random
) -> list[StoredCell]:
    """Return random cells of a study; without ``longest``, the probability decreases with the stored time."""
    rows = {row["cell"]: row for row in study.all_rows if row["status"] == "ok"}
    wanted = selection(sample.select)
    cells = {cell["cell"]: cell for cell in _finished_cells(study) if matches(cell, wanted)}
    found = [StoredCell(study, cell, rows[key], outcome) for key, cell in cells.items()]
    if math.isfinite(sample.longest):
        short = [each for each in found if seconds_of(each.row) <= sample.longest]
        return chance.sample(short, min(len(short), sample.cells or len(short)))
    return _cheap_first(found, chance)[: sample.cells]


def _cheap_first(cells: list[StoredCell], chance: random.Random) -> list[StoredCell]:
    """Return cells in a random order, in which cheap cells tend to come first (Efraimidis and Spirakis 2006)."""
    drawn = {id(cell): chance.expovariate(1.0) * (1.0 + seconds_of(cell.row)) for cell in cells}
    return sorted(cells, key=lambda cell: drawn[id(cell)])


def _ready(cells: Sequence[StoredCell], *, files: bool) -> tuple[list[Job], dict[str, list[StoredCell]]]:
    """Return the jobs that can be computed here, and their stored cells by hash: several folders may have a cell.

    The reasons why others cannot be computed are added to their outcome.
    """
    jobs: dict[str, Job] = {}
    stored: dict[str, list[StoredCell]] = {}
    for each in cells:
        try:
            job = stored_job(each.study, each.cell, each.row, files=files)
        except UserError as error:
            each.outcome.impossible.append(str(error))
        else:
            jobs.setdefault(job.cell.key, job)
            stored.setdefault(job.cell.key, []).append(each)
    return list(jobs.values()), stored


def _compare(stored: StoredCell, now: store.Row) -> None:
    """Compare a cell that was computed again; those that only a mean can judge are collected in their outcome."""
    outcome = stored.outcome
    outcome.seconds += seconds_of(now)
    if f"{INSTALL_EXTRA}[" in str(now.get("reason")):
        outcome.impossible.append(str(now["reason"]))
    elif now["status"] != "ok":
        failure = f"{now['status']}: {now.get('reason', '')}"
        outcome.add([Difference(*stored.place, "status", "ok", failure, 0.0)])
    elif all(now.get(column) == stored.row[column] for column in COMPARED if column in stored.row):
        outcome.identical += 1
    elif _is_same_arithmetic(stored) or (_equality(stored) == "exact" and _layers(stored.cell["factors"]) < LAYERS):
        outcome.add(_rounding_differences(stored, now))
    elif any(str(row.get("reason")).startswith(UNCONVERGED) for row in (stored.row, now)):
        outcome.impossible.append("the fit has not converged, so that it depends on the rounding of another processor")
    elif stored.cell["factors"]["method"] in UNCOMPARABLE or _has_option(stored, CHAOTIC):
        outcome.impossible.append("its fits may end in another optimum on another processor")
    elif _is_stable(stored):
        outcome.add(_small_differences(stored, now))
    else:
        outcome.changed.setdefault((stored.cell["method"], stored.cell["dataset"]), []).append((stored, now))


def _rounding_differences(stored: StoredCell, now: store.Row) -> list[Difference]:
    """Return the scores that are not equal up to rounding; those of exact methods must be identical here."""
    exact = _equality(stored) == "exact"
    relative = 0.0 if exact and _is_same_arithmetic(stored) else RELATIVE
    found = []
    for column in (column for column in COMPARED if column in stored.row):
        before, after = stored.row[column], now.get(column, math.nan)
        if before != after and not abs(after - before) <= relative * abs(before):
            found.append(Difference(*stored.place, column, before, after, relative * abs(before)))
    return found


def _layers(factors: Mapping[str, Any]) -> int:
    return len(factors.get("options", {}).get("hidden") or ())


def _has_option(stored: StoredCell, options: Sequence[tuple[str, str, Any]]) -> bool:
    method, chosen = stored.cell["factors"]["method"], stored.cell["factors"].get("options", {})
    return any(method == use and chosen.get(name) == value for use, name, value in options)


def _is_stable(stored: StoredCell) -> bool:
    """Return whether scores do not depend on rounding errors; a search may end in another trial because of them."""
    factors = stored.cell["factors"]
    if _has_option(stored, UNSTABLE):
        return False
    return _equality(stored) == "stable" and _layers(factors) <= 1 and "tune" not in factors


def _small_differences(stored: StoredCell, now: store.Row) -> list[Difference]:
    """Return the main scores that differ by more than a small part of their spread over the splits."""
    found = []
    for column in (column for column in MAIN if column in stored.row):
        before, after = stored.row[column], now.get(column, math.nan)
        allowed = max(STABLE * _spread(stored, column) + RELATIVE * abs(before), _one_label([stored.row], column))
        if not abs(after - before) <= allowed:
            found.append(Difference(*stored.place, column, before, after, allowed))
    return found


def _spread(stored: StoredCell, column: str) -> float:
    """Return the standard deviation of a score over the splits."""
    rows = stored.splits()
    return _standard_error(rows, column) * math.sqrt(len(rows))


def _judge_medians(outcome: Verification) -> set[str]:
    """Return the methods whose median difference is above its limit; all their cells are different."""
    by_method: dict[str, list[tuple[float, StoredCell]]] = {}
    for stored, now in (pair for changed in outcome.changed.values() for pair in changed):
        shifts = [
            abs(now.get(column, math.nan) - stored.row[column]) / spread
            for column in MAIN
            if column in stored.row and (spread := _spread(stored, column)) > 0.0
        ]
        by_method.setdefault(stored.cell["factors"]["method"], []).append((max(shifts, default=0.0), stored))
    different = set()
    for use, found in by_method.items():
        median = statistics.median(shift for shift, _ in found)
        if len(found) >= FEWEST and not median <= MEDIAN:
            column = f"median difference of {len(found)} cells, standard deviations"
            outcome.differences.append(Difference(use, "all", None, column, 0.0, median, MEDIAN))
            different.add(use)
    return different


def _judge_means(outcome: Verification) -> None:
    """Compare the means over all splits before and after the cells that were computed again replace the stored ones."""
    different = _judge_medians(outcome)
    for changed in outcome.changed.values():
        found = list(_mean_differences(changed))
        outcome.differences += found
        if found or changed[0][0].cell["factors"]["method"] in different:
            outcome.different += len(changed)
        else:
            outcome.equal += len(changed)
    outcome.changed.clear()


def _mean_differences(changed: Sequence[tuple[StoredCell, store.Row]]) -> Iterator[Difference]:
    first = changed[0][0]
    rows = first.splits()
    for column in (column for column in MAIN if column in first.row):
        error, n = _standard_error(rows, column), len(rows)
        allowed = max(STANDARD_ERRORS * error, _one_label(rows, column), RELATIVE * abs(first.row[column]))
        shifts = [now.get(column, math.nan) - stored.row[column] for stored, now in changed]
        shift, largest = sum(shifts) / n, max(shifts, key=abs)
        one_cell = ONE_CELL * error * math.sqrt(n) if n > 1 else 0.0
        others = shift - largest / n
        if not (abs(shift) <= allowed or (abs(largest) <= one_cell and abs(others) <= allowed)):
            before = statistics.fmean(row[column] for row in rows)
            yield Difference(first.cell["method"], first.cell["dataset"], None, column, before, before + shift, allowed)


def _is_same_arithmetic(stored: StoredCell) -> bool:
    origin = stored.study.origin(stored.row)
    return origin is not None and same_arithmetic(origin.environment)


def _equality(stored: StoredCell) -> Equality:
    use = stored.cell["factors"]["method"]
    return equality(use, stored.study.folder) if adapters.names_a_file(use, {}) else equality(use)


def equality(use: str, base: Path | None = None) -> Equality:
    """Return how the results of a method are compared; a class, its file relative to ``base``, may state it."""
    if not adapters.is_target(use):
        return methods.get(use).equality
    declared: Equality = getattr(adapters.resolve(use, base or Path.cwd()), "equality", "optimised")
    return declared


def _one_label(rows: Sequence[store.Row], column: str) -> float:
    """Return by how much a mean over splits changes at most if one test point gets another label."""
    if column != "error_rate":
        return 0.0
    return (1.0 + RELATIVE) / (len(rows) * min(int(row["n_test"]) for row in rows))


def _standard_error(rows: Sequence[store.Row], column: str) -> float:
    """Return the standard error of a mean over splits; that over the test points if there is a single split."""
    if len(rows) > 1:
        return float(statistics.pstdev(row[column] for row in rows) / math.sqrt(len(rows)))
    (row,) = rows
    n = row["n_test"]
    if column == "error_rate":
        return float(math.sqrt(row[column] * (1.0 - row[column]) / n))
    if column == "ll":
        return float(row.get("ll_std", 0.0) / math.sqrt(n))
    return float(row.get("se_std", 0.0) / (2.0 * row[column] * math.sqrt(n))) if row[column] else 0.0
