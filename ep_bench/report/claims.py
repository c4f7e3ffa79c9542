"""Verdicts on the claims of the papers (``published/claims.yaml``), from merged studies.

A method is better than another on a data set if the paired test finds it better; if the test finds neither better, or
splits are missing, the data set is open. A claim on a number of data sets holds if enough are decided in its favour. It
does not hold if too few remain. Claims on test points use the interval of the difference over the points
(``point_differences``) instead of the paired test over the splits. Average ranks over the data sets differ if their
difference is above the critical difference of Nemenyi's test. Ratios of times are geometric means over the common
splits of the ratio of CPU times (tuning, fit and prediction), with the 95 % t-interval of the mean log ratio. The time
of a fit that has not converged is a lower limit of the time that it needs: the lower end of the interval is the lower
one of those over all splits and over those on which the second method may have converged, the upper end the upper one
of those over all splits and over those on which the first may have. A claim is not decided if its methods are there,
but data sets or splits are missing or differences are within their error. A comparison with splits that have not
converged decides nothing about data sets won, and such splits of any method nothing about ranks. The reason names these
methods. Numbers of an experiment are compared with their intervals as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ep_bench.experiments.figures import measures
from ep_bench.published.claims import (
    ABOUT,
    EITHER,
    FAILS,
    HOLDS,
    OPEN,
    AverageRank,
    CellClaim,
    Claim,
    DatasetsWon,
    Finding,
    FractionConverged,
    Measured,
    PointsWon,
    TimeRatio,
)
from ep_bench.report import significance
from ep_bench.report.claim_cells import ClaimCells
from ep_bench.report.merge import MergedStudies
from ep_bench.report.point_differences import PointDifference, data_sets_with, exceptions_of
from ep_bench.report.scores import BY_NAME
from ep_bench.report.summary import DATASETS, Ranking, no_nemenyi
from ep_bench.results.spreadsheets import csv_text
from ep_bench.types import Array

CLAIM_VERDICTS = (FAILS, OPEN, HOLDS)  # worst first
CLAIM_COLUMNS = ("source", "place", "claim", "statistic", "threshold", "found", "verdict", "reason")
FEW_SPLITS = "fewer than two common splits"


def claim_verdicts(merged: MergedStudies, claims: Iterable[Claim], *, sort: bool = True) -> list[dict[str, Any]]:
    """Return one row per claim whose methods or study are there, with ``CLAIM_COLUMNS``, worst first if sorted."""
    cells = ClaimCells(merged)
    rows = []
    for claim in claims:
        finding = _measured(merged, claim) if isinstance(claim, Measured) else _of_cells(cells, claim)
        if finding is not None:
            row = {key: getattr(claim, key, "") for key in CLAIM_COLUMNS[:5]}
            rows.append({**row, **finding._asdict()})
    return sorted(rows, key=lambda row: CLAIM_VERDICTS.index(row["verdict"])) if sort else rows


def _measured(merged: MergedStudies, claim: Measured) -> Finding | None:
    """Return what the experiment of a claim shows, None if it is not among the studies."""
    studies = [study for study in merged.studies if study.lock.get("study") == claim.study]
    return claim.finding(measures(studies[0])) if studies else None


def _of_cells(cells: ClaimCells, claim: CellClaim) -> Finding | None:
    """Return what the cells show of a claim, None if a method or all data sets are missing."""
    labels = {name: cells.label(name, claim.datasets) for name in claim.methods}
    datasets = {one: cells.dataset(one, labels.values()) for one in claim.datasets}
    if not all(labels.values()) or not any(datasets.values()):
        return None
    finding = _finding(cells, claim, labels, list(datasets.values()))
    if isinstance(claim, FractionConverged):
        return finding
    return _with_unconverged(finding, cells.unconverged(labels.values(), datasets.values()))


def claims_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the content of claims.csv."""
    return csv_text(CLAIM_COLUMNS, rows)


def _finding(cells: ClaimCells, claim: CellClaim, labels: dict[str, str], datasets: Sequence[str]) -> Finding:
    if isinstance(claim, PointsWon):
        named = dict(zip((one.name for one in claim.datasets), datasets, strict=True))
        return _points_won(cells, labels, named, claim)
    if isinstance(claim, DatasetsWon):
        first, second = ([labels[name] for name in names] for names in (claim.first, claim.second))
        return _datasets_won(cells, first, second, datasets, claim)
    if isinstance(claim, AverageRank):
        return _average_rank(cells, claim, labels, datasets)
    if isinstance(claim, TimeRatio):
        return _time_ratio(cells, (labels[claim.first], labels[claim.second]), datasets, claim)
    return _fraction_converged(cells, list(labels.values()), datasets, claim)


def _with_unconverged(finding: Finding, methods: Sequence[str]) -> Finding:
    """Return a finding whose reason names the methods with splits that have not converged."""
    if not methods:
        return finding
    text = f"some splits have not converged: {', '.join(methods)}"
    return finding._replace(reason="; ".join(filter(None, [finding.reason, text])))


def _sets(number: int) -> str:
    return f"{number} data set{'s' * (number != 1)}"


def _datasets_won(
    cells: ClaimCells, first: Sequence[str], second: Sequence[str], datasets: Sequence[str], claim: DatasetsWon
) -> Finding:
    """Count the data sets on which each of the first methods is better than each of the second ones."""
    pairs = list(product(first, second))
    duels = [[cells.duel(*pair, dataset, claim.metric, claim.behind) for pair in pairs] for dataset in datasets]
    won = sum(all(duel.decided == 1 for duel in on) for on in duels)
    lost = sum(any(duel.decided == -1 for duel in on) for on in duels)
    whole = [on for on in duels if not any(duel.missing for duel in on)]
    ahead, missing = sum(all(duel.advantage > 0.0 for duel in on) for on in whole), len(duels) - len(whole)
    complete = f"{len(whole)} complete data set{'s' * (len(whole) != 1)}" if missing else str(len(duels))
    found = f"{ahead} of {complete} by means; by the paired test {won} won, {lost} lost"
    if len(duels) == len(first) == len(second) == 1 and not math.isnan(duels[0][0].advantage):
        found = f"mean advantage {duels[0][0].advantage - claim.behind:.3g}; by the paired test {won} won, {lost} lost"
    found += f"; claimed: at least {claim.threshold}"
    found += f", less than {claim.behind:g} behind" * (claim.behind > 0.0)
    reasons = [f"splits are missing on {missing} of {_sets(len(duels))}"] * bool(missing)
    single = sum(any(duel.common == 1 for duel in on) for on in whole)
    reasons += [f"a single split has no paired test ({_sets(single)})"] * bool(single)
    reasons += ["the other differences are within their error"] * (won + lost + missing + single < len(duels))
    if sum(all(duel.sure == 1 for duel in on) for on in duels) >= claim.threshold:
        return Finding(found, HOLDS)
    lost_surely = sum(any(duel.sure == -1 for duel in on) for on in duels)
    verdict = FAILS if len(duels) - lost_surely < claim.threshold else OPEN
    return Finding(found, verdict, "; ".join(reasons) if verdict == OPEN else "")


def _average_rank(cells: ClaimCells, claim: AverageRank, labels: dict[str, str], datasets: Sequence[str]) -> Finding:
    """Compare average ranks over the data sets, among all methods of the claim, with the critical difference."""
    methods = list(labels.values())
    whole = [d for d in datasets if d and all(cells.is_whole(m, d, claim.metric) for m in methods)]
    means = [[cells.column(m, d, claim.metric).mean() for m in methods] for d in whole]
    ranking = Ranking(BY_NAME[claim.metric], DATASETS, tuple(whole), pd.DataFrame(means, columns=methods))
    if reason := no_nemenyi(ranking):
        return Finding("", OPEN, reason)
    rank = ranking.mean_ranks.__getitem__
    first, second = (
        [min((labels[one] for one in entry.split(EITHER)), key=rank) for entry in side]
        for side in (claim.first, claim.second)
    )
    last, best = max(first, key=rank), min(second, key=rank)
    found = (
        f"average ranks among {len(methods)} methods: {last} {rank(last):.2f}, {best} {rank(best):.2f} (critical "
        f"difference {ranking.cd:.2f}); claimed: {last} lower"
    )
    gap, missing = rank(best) - rank(last), len(datasets) - len(whole)
    reasons = [f"splits are missing on {missing} of {_sets(len(datasets))}"] * bool(missing)
    reasons += ["the difference is below the critical difference"] * (abs(gap) <= ranking.cd)
    if reasons or cells.unconverged(methods, whole):
        return Finding(found, OPEN, "; ".join(reasons))
    return Finding(found, HOLDS if gap > 0.0 else FAILS)


def _time_ratio(cells: ClaimCells, methods: tuple[str, str], datasets: Sequence[str], claim: TimeRatio) -> Finding:
    """Compare the geometric mean of the ratios of times on each data set with the threshold."""
    means: list[float] = []  # of the log ratio
    limits: list[tuple[float, float]] = []  # its lower and upper limit
    stopped: set[str] = set()  # methods with fits that have not converged, or nearly
    for dataset in datasets:
        pair = cells.seconds(methods, dataset)
        if len(pair) < 2 or not (pair.to_numpy(dtype=float) > 0.0).all():
            continue
        logs = np.log(pair.to_numpy(dtype=float)) @ [1.0, -1.0]
        means.append(float(logs.mean()))
        early = [cells.unconverged_splits(method, dataset) for method in methods]
        stopped |= {method for method, splits in zip(methods, early, strict=True) if splits}
        first, second = (~pair.index.isin(list(splits)) for splits in early)
        whole = _interval(logs)
        limits.append((min(_interval(logs[second])[0], whole[0]), max(_interval(logs[first])[1], whole[1])))
    if not limits:
        return Finding("", OPEN, FEW_SPLITS)
    ratios = np.exp(means).tolist()
    span = f"{min(ratios):.3g}" if len(ratios) == 1 else f"{min(ratios):.3g} to {max(ratios):.3g}"
    found = (
        f"{' / '.join(methods)} {span} on {len(ratios)} of {_sets(len(datasets))} (CPU times); "
        f"claimed: {claim.limit} {claim.threshold:g}"
    )
    above = [_above(claim, low, high) for low, high in limits]
    if any(high < 0.0 for _, high in above):
        return Finding(found, FAILS)
    if len(limits) < len(datasets):
        few = len(datasets) - len(limits)
        return Finding(found, OPEN, f"{FEW_SPLITS} on {few} of {_sets(len(datasets))}")
    decided = all(low >= 0.0 for low, _ in above)
    fits = f", or open at one end because of unconverged fits of {' and '.join(sorted(stopped))}" if stopped else ""
    why = f"a ratio is within its error{fits}"
    return Finding(found, HOLDS) if decided else Finding(found, OPEN, why)


def _above(claim: TimeRatio, low: float, high: float) -> tuple[float, float]:
    """Return the interval of what is to be positive: a log ratio (low, high) on the claimed side of its threshold."""
    middle = math.log(claim.threshold)
    if claim.limit == "at least":
        return low - middle, high - middle
    if claim.limit == "at most":
        return middle - high, middle - low
    room = math.log(ABOUT)  # the distance from the threshold is to be below
    ends = abs(low - middle), abs(high - middle)
    return room - max(ends), room - (0.0 if low <= middle <= high else min(ends))


def _interval(logs: Array) -> tuple[float, float]:
    """Return the 95 % t-interval of the mean of values on splits, unlimited for fewer than two."""
    if len(logs) < 2:
        return -math.inf, math.inf
    quantile = float(stats.t.isf(0.5 * significance.ALPHA, len(logs) - 1))
    error = quantile * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    return float(logs.mean()) - error, float(logs.mean()) + error


def _fraction_converged(
    cells: ClaimCells, methods: Sequence[str], datasets: Sequence[str], claim: FractionConverged
) -> Finding:
    """Compare the number of cells that ended ok and converged with the threshold."""
    groups = [(m, d) for m in methods for d in datasets if d]
    planned = sum(cells.merged.planned[group] for group in groups)
    missing = planned - sum(cells.finished(*group) for group in groups)
    good = sum(cells.ended_ok(*one) - len(cells.unconverged_splits(*one)) for one in groups if cells.finished(*one))
    found = f"{good} of {planned - missing} converged; {planned} planned; claimed: {claim.limit} {claim.threshold:.0%}"
    limit = claim.threshold * planned
    certain, refuted = good >= limit, good + missing < limit
    if claim.limit == "at most":
        certain, refuted = good + missing <= limit, good > limit
    if all(datasets) and certain:
        return Finding(found, HOLDS)
    if refuted:
        return Finding(found, FAILS)
    reasons = [f"{missing} cells are missing"] * bool(missing) + ["data sets are missing"] * (not all(datasets))
    return Finding(found, OPEN, "; ".join(reasons))


def _points_won(cells: ClaimCells, labels: dict[str, str], datasets: dict[str, str], claim: PointsWon) -> Finding:
    """Count the data sets on which all pairs of methods have the claimed relation over their test points."""
    known: list[PointDifference] = []
    exceptions: list[str] = []
    signs = []
    for name, dataset in datasets.items():
        first, second = (
            [cells.points.best([labels[one] for one in entry.split(EITHER)], dataset, claim.metric) for entry in side]
            for side in (claim.first, claim.second)
        )
        gaps = {(a, b): cells.points.difference(a, b, dataset, claim.metric) for a, b in product(first, second)}
        known += [gap for gap in gaps.values() if gap]
        signs.append([None if gap is None or not gap.settled else gap.sign for gap in gaps.values()])
        exceptions += exceptions_of(name, gaps, claim.relation)
    right, wrong = (data_sets_with(signs, claim.relation, wanted=wanted) for wanted in (True, False))
    found = f"{claim.relation} on {right} of {_sets(len(datasets))}; claimed: at least {claim.threshold}"
    if len(known) == 1:
        found = f"advantage {known[0].mean:.3g} ({known[0].low:.3g} to {known[0].high:.3g})"
    elif exceptions:
        found += f"; {'; '.join(exceptions)}"
    if right >= claim.threshold:
        return Finding(found, HOLDS)
    verdict = FAILS if len(datasets) - wrong < claim.threshold else OPEN
    unknown = sum(any(state is None for state in states) for states in signs)
    reasons = [f"no settled scores of test points on {unknown} of {_sets(len(datasets))}"] * bool(unknown)
    reasons += ["differences are within their error"] * (unknown + right + wrong < len(datasets))
    return Finding(found, verdict, "; ".join(reasons) if verdict == OPEN else "")
