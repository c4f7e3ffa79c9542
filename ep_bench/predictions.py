"""Predictions of all kinds: mixtures of Gaussians, other densities, quantiles, points and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ep_bench.types import Array, PointPrediction, Predictive, bisect_quantile, require_probability

# Levels requested from a method that predicts quantiles: 100 equidistant levels for the CRPS, the median, and the ends
# of the central 50, 90 and 95 % intervals.
ASKED_LEVELS: tuple[float, ...] = tuple(sorted({(2 * i + 1) / 200 for i in range(100)} | {0.05, 0.25, 0.5, 0.75, 0.95}))
_SAME = 1e-9  # levels that differ by less are equal
_SUM = 1e-5  # tolerance for the sum of the probabilities of one observation


class DensityPrediction:
    """Predictive distribution of N observations with a density that is not a mixture of Gaussians; noise included.

    Parameters
    ----------
    logpdf, cdf : functions of points (N,), one per observation, to (N,)
    mean, variance : (N,) arrays; a variance of nan, which does not exist, becomes inf
    quantile : function of a probability in (0, 1) to (N,); if None, the cdf is inverted by bisection
    broadcasts : whether ``cdf`` also maps K points per observation, (K, N), to (K, N)

    Raises
    ------
    ValueError
        The shapes do not match, or a variance is negative.
    """

    def __init__(
        self,
        *,
        logpdf: Callable[[Array], ArrayLike],
        cdf: Callable[[Array], ArrayLike],
        mean: ArrayLike,
        variance: ArrayLike,
        quantile: Callable[[float], ArrayLike] | None = None,
        broadcasts: bool = False,
    ) -> None:
        self._logpdf, self._cdf, self._quantile, self.broadcasts = logpdf, cdf, quantile, broadcasts
        self._mean: Array = np.asarray(mean, dtype=np.float64)
        self._variance: Array = np.asarray(variance, dtype=np.float64)
        if self._mean.ndim != 1 or self._mean.shape != self._variance.shape:
            raise ValueError(f"mean and variance must both be (N,), found {self._mean.shape}, {self._variance.shape}")
        self._variance = np.where(np.isnan(self._variance), np.inf, self._variance)
        if np.any(self._variance < 0.0):
            raise ValueError(f"variances must be non-negative, found {self._variance.min():g}")

    def __len__(self) -> int:
        return len(self._mean)

    def rescale(self, shift: float, scale: float) -> DensityPrediction:
        """Return the distribution of ``shift + scale * y``. Raises ValueError unless the scale is positive."""
        if not scale > 0.0:
            raise ValueError(f"the scale must be positive, found {scale}")
        return DensityPrediction(
            logpdf=lambda y: self.logpdf((y - shift) / scale) - np.log(scale),
            cdf=lambda y: self.cdf((y - shift) / scale),
            mean=shift + scale * self._mean,
            variance=scale**2 * self._variance,
            quantile=lambda p: shift + scale * self.quantile(p),
            broadcasts=self.broadcasts,
        )

    def mean(self) -> Array:
        """Return the means (N,)."""
        return self._mean

    def variance(self) -> Array:
        """Return the variances (N,), noise included; inf if they do not exist."""
        return self._variance

    def std(self) -> Array:
        """Return the standard deviations (N,), noise included; inf if they do not exist."""
        return np.asarray(np.sqrt(self._variance))

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the observations y (N,)."""
        points = np.asarray(y, dtype=np.float64)
        return _shaped(self._logpdf(points), points.shape, "log density")

    def logpdf_gaussian(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the Gaussians with the same means and variances."""
        return Predictive.gaussian(self._mean, self._variance).logpdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probabilities of an observation at or below y, (N,) or (K, N), in the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        if points.ndim == 2 and not self.broadcasts:
            return np.stack([self.cdf(row) for row in points])
        return _shaped(self._cdf(points), points.shape, "distribution function")

    def quantile(self, p: float) -> Array:
        """Return the quantiles (N,) at probability p. Raises ValueError unless 0 < p < 1."""
        require_probability(p)
        if self._quantile is not None:
            return _shaped(self._quantile(p), self._mean.shape, "quantile")
        return bisect_quantile(self.cdf, p, *self._bracket(p))

    def _bracket(self, p: float) -> tuple[Array, Array]:
        """Return points (N,) below and above the quantile; steps away from the mean are doubled until they reach it."""
        centre = np.where(np.isfinite(self._mean), self._mean, 0.0)
        std = self.std()
        first_step = np.where(np.isfinite(std) & (std > 0.0), std, 1.0)
        ends = []
        for sign in (-1.0, 1.0):
            step = first_step.copy()
            outside = np.zeros(len(self), dtype=bool)
            while not outside.all():
                end = centre + sign * step
                if not np.isfinite(end).all():
                    raise ValueError(f"no quantile at {p:g}: the distribution function does not reach it")
                outside = self.cdf(end) < p if sign < 0.0 else self.cdf(end) >= p
                with np.errstate(over="ignore"):
                    step[~outside] *= 2.0
            ends.append(end)
        return ends[0], ends[1]


class QuantilePrediction:
    """Quantiles of N observations at Q levels.

    Quantiles of models that are fitted separately per level may cross. ``values`` holds the quantiles of each
    observation in ascending order, which never raises the pinball loss and makes all widths non-negative. ``given``
    holds them unchanged, for the conformance check of their order.

    Parameters
    ----------
    levels : (Q,) array, ascending, strictly between 0 and 1
    values : (Q, N) array, the quantiles of each level
    points : (N,) array of the method's own means, or None

    Raises
    ------
    ValueError
        The shapes do not match, or the levels are not strictly ascending in (0, 1).
    """

    def __init__(self, levels: ArrayLike, values: ArrayLike, points: ArrayLike | None = None) -> None:
        self.levels: Array = np.asarray(levels, dtype=np.float64)
        self.given: Array = np.asarray(values, dtype=np.float64)
        self.points: Array | None = None if points is None else np.asarray(points, dtype=np.float64)
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


class _Classes:
    """The labels (C,) of classes with the indices 0 to C - 1."""

    def __init__(self, classes: ArrayLike) -> None:
        self.classes: NDArray[Any] = np.asarray(classes)
        self._index_of = {label: index for index, label in enumerate(self.classes.tolist())}
        if self.classes.ndim != 1 or len(self._index_of) != len(self.classes):
            raise ValueError(f"classes must be unique labels (C,), found {_listed(self.classes.ravel())}")

    def indices(self, y: ArrayLike) -> NDArray[np.int64]:
        """Return the class indices (N,) of labels (N,). Raises ValueError for an unknown label."""
        labels = np.asarray(y).tolist()
        unknown = next((label for label in labels if label not in self._index_of), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is none of the classes {_listed(self.classes)}")
        return np.array([self._index_of[label] for label in labels], dtype=np.int64)


class ClassProbabilities(_Classes):
    """Probabilities of C classes for N observations.

    Parameters
    ----------
    probabilities : (N, C) array, non-negative; the sum of each row is 1 up to 1e-5, and each row is divided by its sum
    classes : (C,) labels of any type; by default the indices 0 to C - 1

    Raises
    ------
    ValueError
        The shapes do not match, a label occurs twice, or a row holds no probabilities.
    """

    def __init__(self, probabilities: ArrayLike, classes: ArrayLike | None = None) -> None:
        table = np.asarray(probabilities, dtype=np.float64)
        if table.ndim != 2 or not table.shape[1]:
            raise ValueError(f"probabilities must have the shape (N, C), found {table.shape}")
        super().__init__(np.arange(table.shape[1]) if classes is None else classes)
        if len(self.classes) != table.shape[1]:
            raise ValueError(f"{table.shape[1]} columns of probabilities for {len(self.classes)} classes")
        if not np.isfinite(table).all():
            row = int(np.argmin(np.isfinite(table).all(axis=1)))
            raise ValueError(f"probabilities must be finite, found {_listed(table[row])} in row {row}")
        if (table < 0.0).any():
            raise ValueError(f"probabilities must be non-negative, found {table.min():g}")
        sums = table.sum(axis=1, keepdims=True)
        off = np.abs(sums - 1.0)
        if (off > _SUM).any():
            row = int(np.argmax(off))
            raise ValueError(f"the probabilities of a row must sum to 1, found {sums[row, 0]:g} in row {row}")
        self.probabilities: Array = table / sums

    def __len__(self) -> int:
        return len(self.probabilities)

    def mode(self) -> NDArray[Any]:
        """Return the labels (N,) of the most probable classes, the first one in a tie."""
        return np.asarray(self.classes[np.argmax(self.probabilities, axis=1)])

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log probabilities (N,) of the labels y (N,); -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probabilities[np.arange(len(self)), self.indices(y)]))

    def sample(self, rng: np.random.Generator, size: int = 1) -> NDArray[Any]:
        """Return drawn labels (size, N)."""
        above = rng.random((size, len(self), 1)) >= np.cumsum(self.probabilities, axis=1)[:, :-1]
        return np.asarray(self.classes[above.sum(axis=2)])


class ClassLabels(_Classes):
    """Predicted classes without probabilities; they have no log-likelihood.

    Parameters
    ----------
    values : (N,) class indices
    classes : (C,) labels
    """

    def __init__(self, values: ArrayLike, classes: ArrayLike) -> None:
        super().__init__(classes)
        self.values: NDArray[np.int64] = np.asarray(values, dtype=np.int64)

    def mode(self) -> NDArray[Any]:
        """Return the labels (N,) of the predicted classes."""
        return np.asarray(self.classes[self.values])


Classification = ClassProbabilities | ClassLabels
Prediction = Predictive | DensityPrediction | QuantilePrediction | PointPrediction
AnyPrediction = Prediction | Classification


def missing_density(prediction: AnyPrediction) -> str:
    """Return why a prediction has no log-likelihood, for the column ``reason``; empty if it has one."""
    if isinstance(prediction, ClassLabels):
        return "no log-likelihood: the method gives classes without probabilities"
    if isinstance(prediction, QuantilePrediction):
        return "no log-likelihood: the method gives quantiles only"
    if isinstance(prediction, PointPrediction):
        return "no log-likelihood: the method gives points only"
    return ""


def _ascending(quantiles: Array) -> Array:
    """Return quantiles (Q, N) in ascending order per observation; an observation with a nan is left unchanged."""
    crossed = (np.diff(quantiles, axis=0) < 0.0).any(axis=0) & ~np.isnan(quantiles).any(axis=0)
    return np.where(crossed, np.sort(quantiles, axis=0), quantiles) if crossed.any() else quantiles


def _shaped(values: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"the {what} has shape {array.shape}, expected {shape}")
    return array


def _listed(labels: NDArray[Any]) -> str:
    return ", ".join(map(str, labels[:8].tolist())) + (", ..." if len(labels) > 8 else "")


def _short(levels: Array) -> str:
    return ", ".join(f"{level:g}" for level in levels[:8]) + (", ..." if len(levels) > 8 else "")
