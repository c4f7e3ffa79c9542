"""Tests of score differences: over several data sets, and between two methods on the splits of one data set.

Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7.

=========  ===========================================================
symbol     meaning
=========  ===========================================================
N          blocks: data sets, or data sets times splits
k          methods
R_j        average rank of method j, 1 the best
q_alpha    studentised range with infinite degrees of freedom / sqrt(2)
CD         critical difference of two average ranks
=========  ===========================================================

=========  ==============================================================
symbol     meaning
=========  ==============================================================
J          splits
s^2        variance of the score differences over the splits, ddof 1
r          n_test / n_train of overlapping splits, 0 of independent draws
=========  ==============================================================

The variance of the mean difference is (1 / J + r) s^2, with J - 1 degrees of freedom.

Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52: training sets of resampled splits
of one data set have most data points in common, and the plain test (r = 0) rejects too often. Splits that are different
data sets from one distribution are independent, and the plain test is the right one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ep_bench.types import Array

ALPHA = 0.05
FEWEST_BLOCKS = 5  # fewer blocks say too little about average ranks
ROUNDING = 1e-12  # relative difference of equal scores, such as means whose sums have another order
_MAX_PERMUTED = 13  # differences up to which SciPy permutes signs if there are ties or zeros


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of k methods on N blocks.

    ``chi2`` has no correction for ties, as in Demsar (2006); ``chi2_ties`` has one (NaN if only average ranks are
    known). Undefined statistics (one method, one block, only ties) are NaN.
    """

    k: int
    n: int
    chi2: float
    p: float
    chi2_ties: float
    p_ties: float

    @property
    def p_decisive(self) -> float:
        """Return the p-value that decides about further tests: corrected for ties if possible; NaN without a test."""
        return self.p if math.isnan(self.p_ties) else self.p_ties


def block_ranks(scores: Array, *, higher_is_better: bool) -> Array:
    """Return the ranks (N, k) within each block of scores (N, k), 1 the best; scores equal up to rounding tie."""
    signed = -scores if higher_is_better else scores
    order = np.argsort(signed, axis=1, kind="stable")
    ascending = np.take_along_axis(signed, order, axis=1)
    rises = np.diff(ascending, axis=1) > ROUNDING * np.abs(ascending[:, 1:])
    ranks = np.arange(1.0, scores.shape[1] + 1.0) + np.zeros(scores.shape)
    tied = ~rises.all(axis=1)
    if tied.any():
        ranks[tied] = stats.rankdata(np.cumsum(np.pad(rises[tied], ((0, 0), (1, 0))), axis=1), axis=1)
    found = np.empty(scores.shape)
    np.put_along_axis(found, order, ranks, axis=1)
    return found


def friedman_of_ranks(average_ranks: Array, n: int) -> Friedman:
    """Return the test from average ranks (k,) over n blocks (Demsar 2006, chi2_F).

    chi2 = 12 N / (k (k + 1)) [sum_j R_j^2 - k (k + 1)^2 / 4].
    """
    k = len(average_ranks)
    nan = math.nan
    if k < 2 or n < 2:
        return Friedman(k, n, nan, nan, nan, nan)
    chi2 = 12.0 * n / (k * (k + 1)) * (float(np.sum(np.square(average_ranks))) - k * (k + 1) ** 2 / 4.0)
    chi2 = max(chi2, 0.0)  # rounding errors if all ranks are equal
    return Friedman(k, n, chi2, float(stats.chi2.sf(chi2, k - 1)), nan, nan)


def friedman(ranks: Array) -> Friedman:
    """Return the test from block ranks (N, k), with and without correction for ties (SciPy's formula)."""
    n, k = ranks.shape
    plain = friedman_of_ranks(ranks.mean(axis=0), n)
    if k < 2 or n < 2:
        return plain
    sizes = [np.unique(block, return_counts=True)[1] for block in ranks]
    ties = sum(float(np.sum(size**3 - size)) for size in sizes)
    scale = 1.0 - ties / (n * k * (k * k - 1))
    chi2 = plain.chi2 / scale if scale > 1e-12 else math.nan
    p = float(stats.chi2.sf(chi2, k - 1))
    return Friedman(k, n, plain.chi2, plain.p, chi2, p)


def nemenyi_q(k: int, alpha: float = ALPHA) -> float:
    """Return q_alpha of the two-tailed Nemenyi test of k methods (Demsar, table 5a)."""
    return float(stats.studentized_range.isf(alpha, k, np.inf)) / math.sqrt(2.0)


def critical_difference(q: float, k: int, n: int) -> float:
    """Return CD = q sqrt(k (k + 1) / (6 N)) in average ranks over n blocks."""
    return q * math.sqrt(k * (k + 1) / (6.0 * n))


def nemenyi_p(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return p-values (k, k) of Nemenyi's test from block ranks (N, k) with named columns."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    p = posthoc_nemenyi_friedman(ranks.to_numpy())
    return pd.DataFrame(p.to_numpy(), index=ranks.columns, columns=ranks.columns)


def wilcoxon_p(scores: pd.DataFrame) -> pd.DataFrame:
    """Return p-values (k, k) of Wilcoxon's signed-rank tests between the columns of scores (N, k), Holm-corrected.

    Zero differences are split evenly between the two rank sums (Demsar 2006). The values equal those of
    ``scikit_posthocs.posthoc_wilcoxon``. That function makes one call per pair, which takes 0.2 s for 16 methods, and
    0.3 s per pair with ties or zeros among 13 differences; here all pairs take 5 ms.
    """
    values = scores.to_numpy(dtype=float)
    first, second = np.triu_indices(values.shape[1], 1)
    with np.errstate(invalid="ignore"):
        p = signed_rank_p((values[:, first] - values[:, second]).T)
    table = np.eye(values.shape[1])
    table[first, second] = table[second, first] = holm(p)
    return pd.DataFrame(table, index=scores.columns, columns=scores.columns)


def signed_rank_p(differences: Array) -> Array:
    """Return the p-values (m,) of Wilcoxon's signed-rank tests of differences (m, N), without correction.

    NaN is a difference of 0: that of the logarithms of two errors of 0.
    """
    differences = np.where(np.isnan(differences), 0.0, differences)
    sizes = np.sort(np.abs(differences), axis=1)
    clean = (sizes[:, 0] > 0.0) & np.all(sizes[:, 1:] > sizes[:, :-1], axis=1)  # zeros and ties change SciPy's method
    p = np.empty(len(differences))
    if clean.any():
        p[clean] = stats.wilcoxon(differences[clean], axis=1, zero_method="zsplit").pvalue
    for pair in np.flatnonzero(~clean):
        found = differences[pair]
        exact = len(found) <= _MAX_PERMUTED
        p[pair] = _permutation_p(found) if exact else stats.wilcoxon(found, zero_method="zsplit").pvalue
    return p


def _permutation_p(differences: Array) -> float:
    """Return the p-value of the signed-rank test of differences (N,) with ties or zeros, over all 2^N choices of signs.

    The sums of the positive ranks are counted rank by rank. Ranks are doubled, because those of ties may be halves.
    """
    ranks = np.rint(2.0 * stats.rankdata(np.abs(differences))).astype(int)[differences != 0.0]
    counts = np.zeros(ranks.sum() + 1)
    counts[0] = 1.0
    for rank in ranks:
        counts[rank:] += counts[: len(counts) - rank].copy()
    observed = ranks[differences[differences != 0.0] > 0.0].sum()
    smaller_tail = min(counts[: observed + 1].sum(), counts[observed:].sum())
    return min(1.0, 2.0 * float(smaller_tail / counts.sum()))


def holm(p: Array) -> Array:
    """Return Holm's step-down adjustment of p-values (m,); NaN is no test and remains so."""
    order = np.argsort(p)  # NaN last
    steps = (np.count_nonzero(~np.isnan(p)) - np.arange(len(p))) * p[order]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def smallest_wilcoxon_p(k: int, n: int) -> float:
    """Return the smallest p-value of any pair among k methods on n blocks after Holm's correction.

    The smallest two-sided p-value of a signed-rank test is 2^(1 - n), if all n differences have the same sign. Holm's
    correction multiplies the smallest p-value by the number of pairs.
    """
    return min(1.0, k * (k - 1) / 2.0 * 2.0 ** (1 - n))


def cliques(p: Array) -> list[tuple[int, int]]:
    """Return the groups of methods that a diagram joins by bars, each as first and last index.

    The rule is that of aeon's ``plot_critical_difference``. ``p`` (k, k) has the methods in the order of their average
    ranks. The group of a method reaches up to the first worse method that differs from it. Groups of one method and
    groups inside another group are omitted.
    """
    found: list[tuple[int, int]] = []
    for first in range(len(p)):
        differing = np.flatnonzero(p[first, first + 1 :] < ALPHA)
        last = first + int(differing[0]) if len(differing) else len(p) - 1
        if last > first and not any(last <= end for _, end in found):
            found.append((first, last))
    return found


RESAMPLED = "corrected resampled t-test (Nadeau and Bengio 2003)"
PLAIN = "paired t-test"


@dataclass(frozen=True)
class PairedTest:
    """The test of one data set.

    Attributes
    ----------
    independent : whether the splits are independent draws, without common data points
    ratio : n_test / n_train, used only if they are not
    """

    independent: bool
    ratio: float

    @property
    def name(self) -> str:
        """Return the name of the test."""
        return PLAIN if self.independent else RESAMPLED

    def p(self, differences: Array) -> Array:
        """Return the two-sided p-values (...) of score differences (J, ...) on common splits."""
        return t_test_p(differences, 0.0 if self.independent else self.ratio)


def split_ratios(rows: pd.DataFrame) -> dict[str, float]:
    """Return n_test / n_train of each data set, averaged over its cells."""
    ratio = rows["n_test"].astype(float) / rows["n_train"].astype(float)
    means = ratio.groupby(rows["dataset"]).mean().fillna(0.0)
    return {str(name): float(value) for name, value in means.items()}


def standard_error(differences: Array, ratio: float) -> Array:
    """Return the standard errors (...) of the means of differences (J, ...): variance (1 / J + ratio) s^2.

    They are 0 for equal differences, up to rounding, and NaN for fewer than two.
    """
    J = len(differences)
    if J < 2:
        return np.full(differences.shape[1:], math.nan)
    spread = np.std(differences, axis=0, ddof=1)
    equal = spread <= 1e-15 * np.max(np.abs(differences), axis=0)
    return np.where(equal, 0.0, math.sqrt(1.0 / J + ratio) * spread)


def t_p(mean: Array, error: Array, freedom: Array | int) -> Array:
    """Return the two-sided p-values of means with standard errors; of an error of 0, 1 for a mean of 0 and 0 else."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2.0 * stats.t.sf(np.abs(mean / error), freedom)
    return np.where((error == 0.0) & (mean == 0.0), 1.0, p)


def t_test_p(differences: Array, ratio: float) -> Array:
    """Return the two-sided p-values (...) of differences (J, ...), NaN for fewer than two."""
    return t_p(np.mean(differences, axis=0), standard_error(differences, ratio), max(len(differences) - 1, 1))


def compare_with_best(
    losses: Array, complete: NDArray[np.bool_], test: PairedTest
) -> tuple[int, Array, NDArray[np.bool_]]:
    """Return the best of M methods on one data set, p-values (M,) against it, and which others are equal to it (M,).

    The best has the lowest mean of the complete methods, the first of equal ones; without any it is -1. It is compared
    with each other complete method, and the p-values have Holm's correction. A method is equal to the best if the test
    does not find it worse. With one split there is no test. A t-test is used because the smallest two-sided p of
    Wilcoxon's test with 5 splits is 1/16: it could never find a difference.

    Parameters
    ----------
    losses : (J, M) array, lower is better, NaN for missing cells
    complete : (M,) array, whether a method has a score on every split
    """
    p = np.full(losses.shape[1], math.nan)
    if not complete.any():
        return -1, p, np.zeros(losses.shape[1], dtype=bool)
    full = np.flatnonzero(complete)
    best = int(full[np.argmin(block_ranks(np.mean(losses[:, full], axis=0)[None], higher_is_better=False))])
    for j in full[full != best]:
        p[j] = test.p(losses[:, j] - losses[:, best])
    p = holm(p)
    return best, p, ~np.isnan(p) & ~(p < ALPHA)


# Methods and data sets that are compared

CANDIDATES = 4096  # intersections of the methods' data sets that are tried


class CompleteSubset(NamedTuple):
    """Indices of data sets and methods, both ascending; empty if fewer than two methods have a data set in common."""

    datasets: tuple[int, ...]
    methods: tuple[int, ...]


def largest_complete_subset(whole: NDArray[np.bool_]) -> CompleteSubset:
    """Return the largest complete subset of the entries (D, M), with at least two methods."""
    sets = [sum(1 << i for i in np.flatnonzero(column).tolist()) for column in whole.T]
    best, key = CompleteSubset((), ()), (0, 0)
    for common in _intersections(sorted(set(sets))):
        methods = tuple(j for j, own in enumerate(sets) if common and own & common == common)
        size = common.bit_count()
        if len(methods) > 1 and (size * len(methods), size) > key:
            key = (size * len(methods), size)
            best = CompleteSubset(tuple(i for i in range(len(whole)) if common >> i & 1), methods)
    return best


def _intersections(sets: list[int]) -> list[int]:
    """Return the intersections of sets (bit masks) in ascending order.

    Beyond ``CANDIDATES`` of them, only the sets themselves are added.
    """
    found: set[int] = set()
    for one in sets:
        found |= {one} | {one & other for other in sorted(found)[: max(0, CANDIDATES - len(found))]}
    return sorted(found)
