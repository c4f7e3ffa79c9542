"""Targets of few different values, for which a log-likelihood has no upper bound.

A density can put ever narrower peaks on values that occur many times. Its log-likelihood then grows without limit.
"""

from __future__ import annotations

import numpy as np

from ep_bench.types import Array

REPEATS = 10  # mean number of data points per target value from which the values count as few


def few_values(y: Array) -> int | None:
    """Return the number of different values of targets y (n,) if they are few, else None."""
    values = len(np.unique(y))
    return values if REPEATS * values <= len(y) else None
