"""Output of ``verify``."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from ep_bench.cli.output.text import Columns, Item, indented
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner.recompute import experiment_differences, experiment_seconds
from ep_bench.runner.verify import Difference, Sample, Verification, verify

_HEAD = ("folder", "tried", "bit for bit", "equal", "different", "not comparable", "no time left", "seconds")
_DIFFERENCES = (
    "folder", "method", "data set", "split", "scores", "largest", "stored", "now", "difference", "allowed"
)  # fmt: skip
_EXPERIMENTS = 1 / 3  # fraction of a budget for experiments, which are computed as a whole
_SHOWN = 40  # maximum number of cells in the table


def verify_folders(
    studies: Sequence[store.StudyResults], sample: Sample, *, jobs: int, budget: float
) -> tuple[list[Item], bool | None]:
    """Verify results folders; return what to print, and whether all is equal (None if nothing was compared)."""
    started = time.monotonic()
    grids = [study for study in studies if not study.lock.get("experiment")]
    single = [study for study in studies if study.lock.get("experiment") and not sample.select]
    random.Random(sample.seed).shuffle(single)
    outcomes = [_experiment(each, jobs, _EXPERIMENTS * budget - (time.monotonic() - started)) for each in single]
    outcomes += verify(grids, sample, jobs=jobs, budget=budget - (time.monotonic() - started))
    outcomes.sort(key=lambda outcome: outcome.folder)
    lines: list[Item] = [Columns([_HEAD, *map(_row, outcomes)], drop=["seconds", "no time left", "not comparable"])]
    lines += [line for outcome in outcomes for line in _reasons(outcome)]
    found = [(outcome.folder, *each) for outcome in outcomes for each in _worst(outcome.differences)]
    if found:
        rows = [_difference(*each) for each in found[:_SHOWN]]
        lines += ["", Columns([_DIFFERENCES, *rows], drop=["folder", "scores", "stored", "now"])]
        lines += [f"... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    tried, different = sum(outcome.tried for outcome in outcomes), sum(outcome.different for outcome in outcomes)
    if not tried:
        more = "increase the budget" if any(outcome.untried for outcome in outcomes) else "see the reasons above"
        lines.append(f"nothing was compared: {more}")
    lines.append(f"{tried} results computed again, {different} different; seed {sample.seed}")
    return lines, None if not tried else not found


def _experiment(study: store.StudyResults, jobs: int, left: float) -> Verification:
    """Verify an experiment if its stored time is known and at most ``left`` seconds, or if there is no limit."""
    outcome = Verification(str(study.folder))
    expected = experiment_seconds(study)
    if math.isfinite(left) and (expected is None or expected > left):
        outcome.untried = 1
        return outcome
    started = time.monotonic()
    try:
        found = experiment_differences(study, jobs)
    except UserError as error:
        outcome.impossible.append(str(error))
        return outcome
    outcome.seconds = time.monotonic() - started
    name = str(study.lock["experiment"])
    outcome.differences = [
        Difference(name, "", 0, place, stored, now, allowed) for place, stored, now, allowed in found
    ]
    outcome.different, outcome.equal = int(bool(found)), int(not found)
    return outcome


def _row(outcome: Verification) -> tuple[str, ...]:
    counts = (
        outcome.tried, outcome.identical, outcome.equal, outcome.different, len(outcome.impossible), outcome.untried
    )  # fmt: skip
    return (outcome.folder, *map(str, counts), f"{outcome.seconds:.1f}")


def _reasons(outcome: Verification) -> Iterator[Item]:
    for reason, count in Counter(outcome.impossible).items():
        yield indented(f"{outcome.folder}: {count} not comparable: {reason}")


def _worst(differences: Sequence[Difference]) -> list[tuple[Difference, int]]:
    """Return the difference of each cell that exceeds its limit most, and the number of differing scores."""
    cells: dict[tuple[str, str, int | None], list[Difference]] = {}
    for each in differences:
        cells.setdefault((each.method, each.dataset, each.split), []).append(each)
    return [(max(each, key=_excess), len(each)) for each in cells.values()]


def _excess(found: Difference) -> float:
    """Return how far a difference exceeds its limit, relative to the stored value."""
    gap = _gap(found)
    return math.inf if gap is None else abs(gap) / max(found.allowed, 1e-9 * abs(float(found.stored)), 1e-300)


def _gap(found: Difference) -> float | None:
    """Return the difference of two numbers, None if one of them is no number."""
    try:
        return float(found.now) - float(found.stored)
    except ValueError:
        return None


def _difference(folder: str, found: Difference, scores: int) -> tuple[str, ...]:
    gap = _gap(found)
    split = "mean" if found.split is None else str(found.split)
    values = (f"{value:.10g}" if isinstance(value, float) else value for value in (found.stored, found.now))
    return (
        folder, found.method, found.dataset, split if found.dataset else "", str(scores), found.column, *values,
        "" if gap is None else f"{gap:+.2g}", f"{found.allowed:.2g}",
    )  # fmt: skip
