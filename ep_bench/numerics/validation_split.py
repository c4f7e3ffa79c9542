"""Random split of training data into a part to fit and a validation part."""

from __future__ import annotations

from typing import Any

import numpy as np


def hold_out(n: int, fraction: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the indices of the data points to fit, and of round(fraction * n) points for validation.

    Each part has at least one point. A single point (n = 1) is in both parts.
    """
    order = rng.permutation(n)
    size = min(max(round(fraction * n), 1), n - 1)
    return (order[size:], order[:size]) if size else (order, order)
