"""Differences of methods over test data points, with intervals by Bayesian bootstrap (Rubin 1981).

Points have Dirichlet weights with all parameters 1, the same for all methods, as in the comparisons of Jylanki,
Vanhatalo and Vehtari (2011, section 6.2). Splits on which one of the two methods is known not to have converged are
left out; if fewer than half are left, the difference is over all splits and ``settled`` is false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ep_bench.report.merge import MergedStudies
from ep_bench.results import row_scores
from ep_bench.results.row_scores import Scores
from ep_bench.types import Array

DRAWS = 2000
CENTRAL = 0.95  # probability of the intervals
LOW = 0.01  # of the percentile of log densities
HIGHER_IS_BETTER = {"ll", "ll-low"}
POINT_STATES = {"better": (1,), "not worse": (0, 1), "no different": (0,)}  # signs with which a relation holds
SIGN_WORDS = {1: "better", 0: "open", -1: "worse"}
SUMMED = ("ll", "ae", "square", "ll-square")  # what is averaged over points


class PointDifference(NamedTuple):
    """The advantage of a method over another, positive if the first is better, and its interval."""

    mean: float
    low: float
    high: float
    settled: bool

    @property
    def sign(self) -> int:
        """Return who is better, 0 if the interval contains 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


class PointDraws:
    """Draws of the Bayesian bootstrap for the methods on one data set.

    Weights are the same exponential draws for all methods, and sums are kept by split, so that every set of splits has
    its own normalised weights.
    """

    def __init__(self, scores: Mapping[str, Mapping[int, Scores]]) -> None:
        self.scores = scores  # by method and split
        self.splits = sorted({split for of_method in scores.values() for split in of_method})
        rng = np.random.default_rng(0)
        self.weights: dict[int, Array] = {}  # (DRAWS + 1, n), the first all 1
        self.sums: dict[int, dict[tuple[str, str], Array]] = {}  # (DRAWS + 1,) by method and column
        for split in self.splits:
            columns = {(m, name): values for m, found in scores.items() if split in found
                       for name, values in _summed(found[split]).items()}  # fmt: skip
            points = len(next(iter(columns.values())))
            drawn = np.vstack([np.ones(points), rng.standard_exponential((DRAWS, points))])
            self.weights[split] = drawn
            self.sums[split] = {key: drawn @ values for key, values in columns.items()}

    def difference(
        self, first: str, second: str, metric: str, unsettled: Mapping[str, Collection[int]]
    ) -> PointDifference | None:
        """Return the advantage of the first method, None if there are no common points."""
        both = [split for split in self.splits if split in self.scores[first] and split in self.scores[second]]
        settled = [split for split in both if not any(split in unsettled[method] for method in (first, second))]
        if not both:
            return None
        enough = 2 * len(settled) >= len(both)
        own, other = (self._drawn(method, metric, settled if enough else both) for method in (first, second))
        gaps = own - other if metric in HIGHER_IS_BETTER else other - own
        low, high = np.quantile(gaps[1:], [0.5 - 0.5 * CENTRAL, 0.5 + 0.5 * CENTRAL])
        return PointDifference(float(gaps[0]), float(low), float(high), enough)

    def _drawn(self, method: str, metric: str, splits: Sequence[int]) -> Array:
        """Return the statistic of a method (DRAWS + 1,), the one with equal weights first."""
        if metric == "ll-low":
            values = np.concatenate([np.asarray(self.scores[method][split]["ll"]) for split in splits])
            return _weighted_percentile(values, np.hstack([self.weights[split] for split in splits]))
        if metric == "ll-std":
            mean, square = (self._mean(method, name, splits) for name in ("ll", "ll-square"))
            return np.asarray(np.sqrt(square - mean**2))
        return self._mean(method, {"mae": "ae", "mse": "square"}.get(metric, metric), splits)

    def _mean(self, method: str, name: str, splits: Sequence[int]) -> Array:
        total = np.sum([self.weights[split].sum(axis=1) for split in splits], axis=0)
        return np.asarray(np.sum([self.sums[split][method, name] for split in splits], axis=0) / total)


class PointCells:
    """The stored scores of test points of merged studies; ``unsettled(method, dataset)`` are unconverged splits."""

    def __init__(self, merged: MergedStudies, unsettled: Callable[[str, str], Collection[int]]) -> None:
        self.merged, self.unsettled = merged, unsettled
        self.by_cell = {key: row for study in merged.studies for key, row in row_scores.read(study.folder).items()}
        self.drawn: dict[str, PointDraws] = {}

    def difference(self, first: str, second: str, dataset: str, metric: str) -> PointDifference | None:
        """Return the advantage of a method on a data set, None without stored scores; an empty name has none."""
        draws = self._draws(dataset)
        if not {first, second} <= draws.scores.keys():
            return None
        return draws.difference(first, second, metric, {one: self.unsettled(one, dataset) for one in (first, second)})

    def best(self, methods: Sequence[str], dataset: str, metric: str) -> str:
        """Return the method with the best mean over the test points of a data set."""
        best = methods[0]
        for other in methods[1:]:
            gap = self.difference(other, best, dataset, metric)
            best = other if gap and gap.mean > 0.0 else best
        return best

    def _draws(self, dataset: str) -> PointDraws:
        if dataset not in self.drawn:
            kept = {method: self._kept(method, dataset) for method in self.merged.methods}
            self.drawn[dataset] = PointDraws({method: found for method, found in kept.items() if found})
        return self.drawn[dataset]

    def _kept(self, method: str, dataset: str) -> dict[int, Scores]:
        cells = self.merged.cells.get((method, dataset), {})
        return {split: self.by_cell[key] for split, key in cells.items()
                if {"ll", "ae"} <= self.by_cell.get(key, {}).keys()}  # fmt: skip


def _summed(scores: Scores) -> dict[str, Array]:
    """Return the columns ``SUMMED`` (n,) of the test points of a cell."""
    ll, ae = np.asarray(scores["ll"]), np.asarray(scores["ae"])
    return dict(zip(SUMMED, (ll, ae, ae**2, ll**2), strict=True))


def _weighted_percentile(values: Array, weights: Array) -> Array:
    """Return the percentile LOW of values (n,) under each of the weights (S, n)."""
    order = np.argsort(values)
    reached = np.cumsum(weights[:, order], axis=1)
    places = (reached < LOW * reached[:, -1:]).sum(axis=1)
    return np.asarray(values[order][places])


def exceptions_of(dataset: str, gaps: Mapping[tuple[str, str], PointDifference | None], relation: str) -> Iterator[str]:
    """Yield the pairs of a data set without the claimed relation, by what they have instead."""
    sides = [sorted({pair[place] for pair in gaps}) for place in (0, 1)]
    for sign, word in SIGN_WORDS.items():
        pairs = [pair for pair, gap in gaps.items() if gap and gap.sign == sign not in POINT_STATES[relation]]
        varied = [[name for name, side in zip(pair, sides, strict=True) if len(side) > 1] or pair for pair in pairs]
        if pairs:
            yield f"{dataset} {word}: {', '.join(' / '.join(names) for names in varied)}"


def data_sets_with(signs: Sequence[Sequence[int | None]], relation: str, *, wanted: bool) -> int:
    """Return the number of data sets on which a relation holds for all pairs, or else is refuted for one."""
    good = POINT_STATES[relation]
    if wanted:
        return sum(all(state in good for state in states) for states in signs)
    bad = {-1, 1} - set(good) if relation == "no different" else {-1}
    return sum(any(state in bad for state in states) for states in signs)
