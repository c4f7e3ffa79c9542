"""Rank statistics over several data sets.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ep_bench.types import Array

ALPHA = 0.05
_MAX_PERMUTED = 13  # differences up to which SciPy permutes signs if there are ties or zeros


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of k methods on N blocks, and Iman and Davenport's F statistic.

    ``chi2`` has no correction for ties, as in Demsar (2006); ``chi2_ties`` has one (NaN if only average ranks are
    known). Undefined statistics (one method, one block, only ties) are NaN. F is infinite if all blocks agree.
    """

    k: int
    n: int
    chi2: float
    p: float
    F: float
    df: tuple[int, int]
    p_iman_davenport: float
    chi2_ties: float
    p_ties: float

    @property
    def p_decisive(self) -> float:
        """Return the p-value that decides about further tests: corrected for ties if possible; NaN without a test."""
        return self.p if math.isnan(self.p_ties) else self.p_ties


def block_ranks(scores: Array, *, higher_is_better: bool) -> Array:
    """Return the ranks (N, k) within each block of scores (N, k), 1 the best, with average ranks for ties."""
    signed = -scores if higher_is_better else scores
    return np.asarray(stats.rankdata(signed, axis=1, method="average")).reshape(scores.shape)


def friedman_of_ranks(average_ranks: Array, n: int) -> Friedman:
    """Return the test from average ranks (k,) over n blocks (Demsar 2006, chi2_F and F_F).

    chi2 = 12 N / (k (k + 1)) [sum_j R_j^2 - k (k + 1)^2 / 4], F = (N - 1) chi2 / (N (k - 1) - chi2).
    """
    k = len(average_ranks)
    nan = math.nan
    if k < 2 or n < 2:
        return Friedman(k, n, nan, nan, nan, (max(k - 1, 0), 0), nan, nan, nan)
    chi2 = 12.0 * n / (k * (k + 1)) * (float(np.sum(np.square(average_ranks))) - k * (k + 1) ** 2 / 4.0)
    chi2 = max(chi2, 0.0)  # rounding errors if all ranks are equal
    df = (k - 1, (k - 1) * (n - 1))
    rest = n * (k - 1) - chi2
    F = (n - 1) * chi2 / rest if rest > 1e-9 * n * k else math.inf
    return Friedman(k, n, chi2, float(stats.chi2.sf(chi2, k - 1)), F, df, float(stats.f.sf(F, *df)), nan, nan)


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
    return Friedman(k, n, plain.chi2, plain.p, plain.F, plain.df, plain.p_iman_davenport, chi2, p)


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
        differences = (values[:, first] - values[:, second]).T
    differences[np.isnan(differences)] = 0.0  # of two infinite values: logs of two errors of 0
    sizes = np.sort(np.abs(differences), axis=1)
    clean = (sizes[:, 0] > 0.0) & np.all(sizes[:, 1:] > sizes[:, :-1], axis=1)  # zeros and ties change SciPy's method
    p = np.empty(len(differences))
    if clean.any():
        p[clean] = stats.wilcoxon(differences[clean], axis=1, zero_method="zsplit").pvalue
    for pair in np.flatnonzero(~clean):
        found = differences[pair]
        exact = len(found) <= _MAX_PERMUTED
        p[pair] = _permutation_p(found) if exact else stats.wilcoxon(found, zero_method="zsplit").pvalue
    table = np.eye(values.shape[1])
    table[first, second] = table[second, first] = holm(p)
    return pd.DataFrame(table, index=scores.columns, columns=scores.columns)


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
    """Return Holm's step-down adjustment of p-values (m,)."""
    order = np.argsort(p)
    steps = (len(p) - np.arange(len(p))) * p[order]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def smallest_wilcoxon_p(k: int, n: int) -> float:
    """Return the smallest p-value of any pair among k methods on n blocks after Holm's correction.

    The smallest two-sided p-value of a signed-rank test is 2^(1 - n), if all n differences have the same sign. Holm's
    correction multiplies the smallest p-value by the number of pairs.
    """
    return min(1.0, k * (k - 1) / 2.0 * 2.0 ** (1 - n))


def cliques(p: Array, alpha: float = ALPHA) -> list[tuple[int, int]]:
    """Return the groups of methods that a diagram joins by bars, each as first and last index.

    The rule is that of aeon's ``plot_critical_difference``. ``p`` (k, k) has the methods in the order of their average
    ranks. The group of a method reaches up to the first worse method that differs from it. Groups of one method and
    groups inside another group are omitted.
    """
    found: list[tuple[int, int]] = []
    for first in range(len(p)):
        differing = np.flatnonzero(p[first, first + 1 :] < alpha)
        last = first + int(differing[0]) if len(differing) else len(p) - 1
        if last > first and not any(last <= end for _, end in found):
            found.append((first, last))
    return found
