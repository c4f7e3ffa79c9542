"""Standardisation: shifts and scales of inputs and target, from training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ep_bench.types import Array


class Scaling(NamedTuple):
    """Shift and scale to standardised units, from training rows."""

    shift: Array  # (d,)
    scale: Array  # (d,)
    offset: Array  # (d,) what a constant input becomes

    @classmethod
    def of(cls, X: Array, constants: Mapping[int, float] | None = None) -> Scaling:
        """Return the scaling of columns to mean 0 and deviation 1 (ddof 0).

        A constant column is found by max == min, since rounding can give it a deviation above 0; it becomes 0, or
        what ``constants`` says of its index.
        """
        constant = X.max(axis=0) == X.min(axis=0)
        offset = np.zeros(X.shape[1])
        for column, value in (constants or {}).items():
            if not 0 <= column < X.shape[1]:
                raise ValueError(f"constant_inputs names input {column}; the inputs are 0 to {X.shape[1] - 1}")
            if constant[column]:
                offset[column] = value
        shift = np.where(constant, X[0], X.mean(axis=0))
        scale = np.where(constant, 1.0, X.std(axis=0))
        return cls(shift, np.where(scale > 0.0, scale, 1.0), offset)

    @classmethod
    def none(cls, d: int) -> Scaling:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(d), np.ones(d), np.zeros(d))

    def apply(self, X: Array) -> Array:
        """Return the rows (n, d) in standardised units, row-contiguous."""
        out = np.subtract(X, self.shift, order="C")
        out /= self.scale
        out += self.offset
        return out


def standardisation(
    X: Array, y: Array, constants: Mapping[int, float] | None = None, *, active: bool = True
) -> tuple[Scaling, Scaling]:
    """Return the scalings of inputs (n, d) and target (n,); both change nothing where not ``active``."""
    if not active:
        return Scaling.none(X.shape[1]), Scaling.none(1)
    return Scaling.of(X, constants), Scaling.of(y[:, None])
