"""The largest complete subset of a score table: methods that have all planned splits on the same data sets.

Average ranks and losses are comparable only over data sets on which every ranked method is complete. The subset has
the largest number of entries, data sets times methods; with equal numbers, it has more data sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CANDIDATES = 4096  # intersections of the methods' data sets that are tried


class CompleteSubset(NamedTuple):
    """Indices of data sets and methods, both ascending; empty if fewer than two methods have a data set in common."""

    datasets: tuple[int, ...]
    methods: tuple[int, ...]


def largest(whole: NDArray[np.bool_]) -> CompleteSubset:
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
