"""Standardisation of inputs and target with the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ep_bench.types import Array

_TINY = float(np.finfo(np.float64).tiny)  # the smallest normal double
_SMALLEST_SPREAD = float(np.sqrt(_TINY))  # the square of a smaller one has less than full precision, or is 0


class Scaling(NamedTuple):
    """Shift and scale from original to standardised units."""

    shift: Array  # (d,)
    scale: Array  # (d,)
    offset: Array  # (d,) values of constant columns after standardisation, else 0

    @classmethod
    def of(cls, X: Array, constants: Mapping[int, float] | None = None) -> Scaling:
        """Return the scaling of the columns of X (n, d) to mean 0 and standard deviation 1 (ddof 0).

        A constant column, with max == min, becomes 0 or the value in ``constants``; rounding can make its standard
        deviation positive. Raises ValueError for an index in ``constants`` that is not a column, and for a column whose
        spread is too large or too small.
        """
        constant = X.max(axis=0) == X.min(axis=0)
        offset = np.zeros(X.shape[1])
        for column, value in (constants or {}).items():
            if not 0 <= column < X.shape[1]:
                raise ValueError(f"constant_inputs names input {column}; the inputs are 0 to {X.shape[1] - 1}")
            if constant[column]:
                offset[column] = value
        with np.errstate(over="ignore", invalid="ignore"):
            shift = np.where(constant, X[0], X.mean(axis=0))
            scale = np.where(constant, 1.0, X.std(axis=0))
            _require_finite(shift + scale, X)
        _require_precision(X)
        return cls(shift, scale, offset)

    @classmethod
    def none(cls, d: int) -> Scaling:
        """Return the identity scaling of d columns."""
        return cls(np.zeros(d), np.ones(d), np.zeros(d))

    def apply(self, X: Array) -> Array:
        """Return X (n, d) in standardised units, C-contiguous. Raises ValueError if a value overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.subtract(X, self.shift, order="C")
            out /= self.scale
        out += self.offset
        _require_finite(out, X)
        return out


def standardisation(
    X: Array, y: Array, constants: Mapping[int, float] | None = None, *, active: bool = True
) -> tuple[Scaling, Scaling]:
    """Return the scalings of inputs X (n, d) and target y (n,), which are identities unless ``active``.

    Raises ValueError if a value or its square overflows, or if inputs or targets are too small for double precision.
    """
    if not active:
        return Scaling.none(X.shape[1]), Scaling.none(1)
    largest, spread = np.abs(y).max(), np.ptp(y)
    if 0.0 < largest < _TINY or 0.0 < spread < _SMALLEST_SPREAD:
        raise _too_small("the targets are", "them", largest, spread)
    return Scaling.of(X, constants), Scaling.of(y[:, None])


def _require_finite(found: Array, X: Array) -> None:
    """Raise ValueError that names the first column of X (n, d) for which ``found`` (..., d) is not finite."""
    if not np.isfinite(found).all():
        column = int(np.argmin(np.isfinite(np.atleast_2d(found)).all(axis=0)))
        name = f"input {column}" if X.shape[1] > 1 else "the values"
        largest = np.abs(X[:, column]).max()
        raise ValueError(f"{name}: too large to be standardised (up to {largest:g}); divide by a constant")


def _require_precision(X: Array) -> None:
    """Raise ValueError that names the first column of X (n, d) whose values differ, but too little."""
    spread = np.ptp(X, axis=0)
    small = (spread > 0.0) & (spread < _SMALLEST_SPREAD)
    if small.any():
        column = int(np.argmax(small))
        raise _too_small(f"input {column} is", "it", np.abs(X[:, column]).max(), spread[column])


def _too_small(what: str, pronoun: str, largest: float, spread: float) -> ValueError:
    return ValueError(
        f"{what} too small for double precision: up to {largest:g}, range {spread:g}; multiply {pronoun} by a constant"
    )
