"""Rows held back from a fit, to judge it by."""

from __future__ import annotations

from typing import Any

import numpy as np


def hold_out(n: int, fraction: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the indices of the rows to fit and of those held back, round(fraction * n), at least one of each.

    A single row stands on both sides.
    """
    order = rng.permutation(n)
    held = min(max(round(fraction * n), 1), n - 1)
    return (order[held:], order[:held]) if held else (order, order)
