"""Predictions that are quantiles at some levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ep_bench.predictions.mixture import real_array, require_probability
from ep_bench.types import Array

# Levels requested from a method that predicts quantiles: 100 equidistant levels for the CRPS, the median, and the ends
# of the central 50, 90 and 95 % intervals.
ASKED_LEVELS: tuple[float, ...] = tuple(sorted({(2 * i + 1) / 200 for i in range(100)} | {0.05, 0.25, 0.5, 0.75, 0.95}))
_SAME = 1e-9  # levels that differ by less are equal


class QuantilePrediction:
    """Quantiles of N observations at Q levels.

    Quantiles of models that are fitted separately per level may cross. ``values`` holds the quantiles of each
    observation in ascending order, which never raises the pinball loss and makes all widths non-negative. ``given``
    holds them unchanged, for the conformance check of their order.

    Parameters
    ----------
    levels : array-like of shape (Q,)
        Ascending, strictly between 0 and 1.
    values : array-like of shape (Q, N)
        The quantiles of each level.
    points : array-like of shape (N,), optional
        The method's own means.

    Raises
    ------
    ValueError
        The shapes do not match, or the levels are not strictly ascending in (0, 1).
    """

    def __init__(self, levels: ArrayLike, values: ArrayLike, points: ArrayLike | None = None) -> None:
        self.levels: Array = np.asarray(levels, dtype=np.float64)
        self.given: Array = real_array(values, "quantiles")
        self.points: Array | None = None if points is None else real_array(points, "means")
        if self.levels.ndim != 1 or not len(self.levels) or self.given.shape[:1] != self.levels.shape:
            shapes = f"{self.levels.shape}, {self.given.shape}"
            raise ValueError(f"the shapes of levels (Q,) and values (Q, N) do not match: {shapes}")
        if self.given.ndim != 2 or (self.points is not None and self.points.shape != self.given.shape[1:]):
            shape = None if self.points is None else self.points.shape
            raise ValueError(f"the shapes of values (Q, N) and points (N,) do not match: {self.given.shape}, {shape}")
        if not (self.levels[0] > 0.0 and self.levels[-1] < 1.0 and np.all(np.diff(self.levels) > 0.0)):
            raise ValueError(f"levels must ascend strictly between 0 and 1, found {self.levels}")
        self.values: Array = _ascending(self.given)

    def __len__(self) -> int:
        return int(self.given.shape[1])

    def rescale(self, shift: float, scale: float) -> QuantilePrediction:
        """Return the quantiles of ``shift + scale * y``. Raises ValueError unless the scale is positive."""
        if not scale > 0.0:
            raise ValueError(f"the scale must be positive, found {scale}")
        points = None if self.points is None else shift + scale * self.points
        return QuantilePrediction(self.levels, shift + scale * self.given, points)

    def mean(self) -> Array:
        """Return the method's own means (N,), else its medians. Raises ValueError if it has neither."""
        if self.points is not None:
            return self.points
        if not self.answers(0.5):
            raise ValueError(f"no means and no medians: the levels are {_short(self.levels)}")
        return self.quantile(0.5)

    def answers(self, p: float) -> bool:
        """Return whether ``quantile(p)`` is available."""
        return self._neighbours(p) is not None

    def quantile(self, p: float) -> Array:
        """Return the quantiles (N,) at p: those of a level, or a linear interpolation between two close levels.

        Two levels are close if they differ by at most min(p, 1 - p) / 2. For a Gaussian the interpolation error is then
        below 0.015 standard deviations. Raises ValueError for any other p.
        """
        require_probability(p)
        found = self._neighbours(p)
        if found is None:
            raise ValueError(f"no quantile at {p:g}: the levels are {_short(self.levels)}")
        left, right = found
        if left == right:
            return np.asarray(self.values[left])
        weight = (p - self.levels[left]) / (self.levels[right] - self.levels[left])
        return np.asarray((1.0 - weight) * self.values[left] + weight * self.values[right])

    def pit(self, y: ArrayLike) -> Array:
        """Return the probabilities (N,) below the targets y (N,), interpolated linearly between the levels.

        Beyond the outermost quantiles it is the middle of the remaining probability; in a run of equal quantiles, that
        of the run.
        """
        targets = np.asarray(y, dtype=np.float64)
        ends = self._below(targets, self.values < targets), self._below(targets, self.values <= targets)
        return np.asarray(0.5 * (ends[0] + ends[1]))

    def _below(self, y: Array, is_below: NDArray[np.bool_]) -> Array:
        """Return the interpolated probabilities (N,) between the last quantile below y and the next one."""
        count, columns = is_below.sum(axis=0), np.arange(len(self))
        right = np.clip(count, 1, max(1, len(self.levels) - 1)) if len(self.levels) > 1 else np.zeros_like(count)
        left = np.maximum(right - 1, 0)
        low, high = self.values[left, columns], self.values[right, columns]
        part = np.divide(y - low, high - low, out=np.zeros(len(self)), where=high > low)
        inside = self.levels[left] + np.clip(part, 0.0, 1.0) * (self.levels[right] - self.levels[left])
        tails = [0.5 * self.levels[0], 0.5 * (1.0 + self.levels[-1])]
        return np.select([count == 0, count == len(self.levels)], tails, inside)

    def _neighbours(self, p: float) -> tuple[int, int] | None:
        """Return the indices of the levels around p: one index twice if p is a level, None if they are not close."""
        nearest = int(np.argmin(np.abs(self.levels - p)))
        if abs(self.levels[nearest] - p) <= _SAME:
            return nearest, nearest
        right = int(np.searchsorted(self.levels, p))
        if right in {0, len(self.levels)}:
            return None
        are_close = self.levels[right] - self.levels[right - 1] <= min(p, 1.0 - p) / 2.0 + _SAME
        return (right - 1, right) if are_close else None


def _ascending(quantiles: Array) -> Array:
    """Return quantiles (Q, N) in ascending order per observation; an observation with a nan is left unchanged."""
    crossed = (np.diff(quantiles, axis=0) < 0.0).any(axis=0) & ~np.isnan(quantiles).any(axis=0)
    return np.where(crossed, np.sort(quantiles, axis=0), quantiles) if crossed.any() else quantiles


def _short(levels: Array) -> str:
    return ", ".join(f"{level:g}" for level in levels[:8]) + (", ..." if len(levels) > 8 else "")
