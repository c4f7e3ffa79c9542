"""Paired comparison of the scores of two acquisitions on the same repetitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.types import Array

ROUNDING = 1e-9  # largest difference of equal scores, relative to them


class PairedComparison(NamedTuple):
    """Mean difference, its standard error (ddof 0), and the p-value of Wilcoxon's signed-rank test.

    ``repetitions`` is the number of pairs, ``differing`` that of pairs whose scores are not equal up to rounding.
    """

    mean: float
    stderr: float
    p: float
    repetitions: int
    differing: int


def compare(first: Array, second: Array) -> PairedComparison:
    """Compare scores (R,) on the repetitions in which both are finite.

    Differences of at most ``ROUNDING`` of the scores are 0, and the test omits them. Without differences p is 1, and
    without pairs the numbers are NaN.
    """
    known = np.isfinite(first) & np.isfinite(second)
    differences = _differences(first[known], second[known])
    count = len(differences)
    if not count:
        return PairedComparison(np.nan, np.nan, np.nan, 0, 0)
    error = float(differences.std() / np.sqrt(count))
    changed = differences[differences != 0.0]
    return PairedComparison(float(differences.mean()), error, _p_value(changed), count, len(changed))


def _differences(first: Array, second: Array) -> Array:
    """Return the differences (R,), 0 where they are rounding errors."""
    differences = first - second
    return np.where(np.abs(differences) <= ROUNDING * np.maximum(np.abs(first), np.abs(second)), 0.0, differences)


def _p_value(differences: Array) -> float:
    """Return the p-value for differences (R,) that are not 0; 1 if there are none."""
    from scipy import stats

    return float(stats.wilcoxon(differences).pvalue) if len(differences) else 1.0
