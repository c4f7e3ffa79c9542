"""Conversion of values that a method returns to arrays of real numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.types import Array


def real_array(values: ArrayLike, what: str) -> Array:
    """Return values as an array of doubles.

    Raises ValueError for complex numbers and for masked values, whose imaginary part or mask would be lost.
    """
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(f"{what}: {masked} of {values.size} values are masked")
    if np.iscomplexobj(values):
        raise ValueError(f"{what}: complex numbers; real numbers are required")
    return np.asarray(values, dtype=np.float64)
