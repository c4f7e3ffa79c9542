"""The paired t-test of two methods on the splits of one data set, with the variance that fits the splits.

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

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ep_bench.report.ranks import ALPHA, holm
from ep_bench.types import Array

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

    def p(self, differences: Array) -> float:
        """Return the two-sided p-value of score differences (J,) on common splits."""
        return t_test_p(differences, 0.0 if self.independent else self.ratio)


def t_test_p(differences: Array, ratio: float) -> float:
    """Return the two-sided p-value of differences (J,) with variance (1 / J + ratio) s^2, NaN for fewer than two."""
    J = len(differences)
    if J < 2:
        return math.nan
    spread = float(np.var(differences, ddof=1))
    mean = float(np.mean(differences))
    if spread <= (1e-15 * np.max(np.abs(differences))) ** 2:
        return 1.0 if mean == 0.0 else 0.0
    t = mean / math.sqrt((1.0 / J + ratio) * spread)
    return float(2.0 * stats.t.sf(abs(t), J - 1))


def compare_with_best(
    losses: Array, complete: NDArray[np.bool_], test: PairedTest
) -> tuple[int, Array, NDArray[np.bool_]]:
    """Return the best of M methods on one data set, p-values (M,) against it, and which others are equal to it (M,).

    The best has the lowest mean of the complete methods; without any it is -1. It is compared with each other complete
    method, and the p-values have Holm's correction. A method is equal to the best if the test does not find it worse.
    With one split there is no test. A t-test is used because the smallest two-sided p of Wilcoxon's test with 5 splits
    is 1/16: it could never find a difference.

    Parameters
    ----------
    losses : (J, M) array, lower is better, NaN for missing cells
    complete : (M,) array, whether a method has a score on every split
    """
    p = np.full(losses.shape[1], math.nan)
    if not complete.any():
        return -1, p, np.zeros(losses.shape[1], dtype=bool)
    full = np.flatnonzero(complete)
    best = int(full[np.argmin(np.mean(losses[:, full], axis=0))])
    for j in full[full != best]:
        p[j] = test.p(losses[:, j] - losses[:, best])
    tested = ~np.isnan(p)
    p[tested] = holm(p[tested])
    return best, p, tested & ~(p < ALPHA)
