"""Standardisation of inputs and target with the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ep_bench.types import Array

# The square of a smaller one has less than full precision, or is 0.
_SMALLEST_SPREAD = float(np.sqrt(np.finfo(np.float64).tiny))


class Scaling(NamedTuple):
    """Shift and scale from original to standardised units."""

    shift: Array  # (d,)
    scale: Array  # (d,)
    offset: Array  # (d,) values of constant columns after standardisation, else 0
    allow_nan: bool = False  # whether values may be missing, which remain so

    @classmethod
    def of(cls, X: Array, constants: Mapping[int, float] | None = None, *, allow_nan: bool = False) -> Scaling:
        """Return the scaling of the columns of X (n, d) to mean 0 and standard deviation 1 (ddof 0).

        A constant column, with max == min, becomes 0 or the value in ``constants``; rounding can make its standard
        deviation positive. With ``allow_nan``, these are those of the values that are not missing. Raises ValueError
        for an index in ``constants`` that is not a column, and for a column with missing values, or whose spread is too
        large or too small.
        """
        if allow_nan and np.isnan(X).any():
            return cls._of_columns(X)
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
            too_small = ~constant & (np.ptp(X, axis=0) < _SMALLEST_SPREAD)
            bad = ~np.isfinite(shift + scale) | too_small
        _refuse(bad, X)
        return cls(shift, scale, offset, allow_nan)

    @classmethod
    def _of_columns(cls, X: Array) -> Scaling:
        """Return the scaling of columns with missing values; those without any value are not scaled."""
        known = [column[~np.isnan(column)] for column in X.T]
        each = [cls.of(column[:, None]) if len(column) else cls.none(1) for column in known]
        shift, scale, offset = (np.concatenate(parts) for parts in zip(*(one[:3] for one in each), strict=True))
        return cls(shift, scale, offset, allow_nan=True)

    @classmethod
    def none(cls, d: int, *, allow_nan: bool = False) -> Scaling:
        """Return the identity scaling of d columns."""
        return cls(np.zeros(d), np.ones(d), np.zeros(d), allow_nan)

    def apply(self, X: Array) -> Array:
        """Return X (n, d) in standardised units, C-contiguous. Raises ValueError if a value overflows or is missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.subtract(X, self.shift, order="C")
            out /= self.scale
        out += self.offset
        _refuse(~(np.isfinite(out) | np.isnan(X) if self.allow_nan else np.isfinite(out)).all(axis=0), X)
        return out


def standardisation(
    X: Array,
    y: Array,
    constants: Mapping[int, float] | None = None,
    *,
    active: bool = True,
    allow_nan: bool = False,
) -> tuple[Scaling, Scaling]:
    """Return the scalings of inputs X (n, d) and target y (n,), which are identities unless ``active``.

    Raises ValueError if inputs or targets are too large or too small for double precision, or missing; with
    ``allow_nan`` inputs may be.
    """
    if not active:
        return Scaling.none(X.shape[1], allow_nan=allow_nan), Scaling.none(1)
    return Scaling.of(X, constants, allow_nan=allow_nan), Scaling.of(y[:, None])


def _refuse(bad: Any, X: Array) -> None:
    """Raise ValueError for the first column of X (n, d) that cannot be standardised, by the mask ``bad`` (d,)."""
    if bad.any():
        column = int(np.argmax(bad))
        name = f"input {column}" if X.shape[1] > 1 else "the values"
        if missing := int(np.isnan(X[:, column]).sum()):
            raise ValueError(f"{name}: missing values (NaN) at {missing} of {len(X)} points; the method takes none")
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = f"up to {np.abs(X[:, column]).max():g}, range {np.ptp(X[:, column]):g}"
        raise ValueError(f"{name}: cannot be standardised in double precision ({numbers}); multiply by a constant")
