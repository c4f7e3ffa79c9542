"""Mixtures of Gaussians, and points without a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.types import Array

_BLOCK = 2**21  # means of the components that one calculation uses at once, which bounds the memory
_NEWTON_STEPS = 20  # at most, for a quantile; five are usual
_NEWTON_STOP = 1e-8  # last step, in standard deviations of the narrowest component; the error is about its square


class Predictive:
    """Predictive distribution of N observations, noise included: one weighted mixture of S Gaussians per observation.

    EP and Gaussian processes have S = 1. Samplers have one component per draw, quadrature over the noise one per node.
    Weights may differ between observations, as those of a mixture density network do.

    Parameters
    ----------
    weights : array-like of shape (S,) or (S, N)
        Non-negative, with sum 1 over the components.
    means : array-like of shape (S, N)
        Means of the components.
    variances : array-like of shape (S, N)
        Variances of the components, in the squared unit of the means.
    beyond : float
        Variance that is added to that of the mixture, in the same unit, if the mixture approximates a distribution with
        heavier tails; inf if that distribution has no variance, such as a Student-t with 2 degrees of freedom.

    Raises
    ------
    ValueError
        The shapes do not match, the weights do not sum to 1, or a variance is negative.
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike, beyond: float = 0.0) -> None:
        self.beyond = beyond
        self.weights: Array = np.atleast_1d(real_array(weights, "weights"))
        self.means: Array = np.atleast_2d(real_array(means, "means"))
        self.variances: Array = np.atleast_2d(real_array(variances, "variances"))
        if self.means.shape != self.variances.shape or self.weights.shape not in (
            self.means.shape[:1],
            self.means.shape,
        ):
            raise ValueError(
                f"the shapes of weights (S,) or (S, N), means (S, N) and variances (S, N) do not match: "
                f"{self.weights.shape}, {self.means.shape}, {self.variances.shape}"
            )
        sums = np.atleast_1d(self.weights.sum(axis=0))
        if not (np.all(self.weights >= 0.0) and np.all(np.abs(sums - 1.0) <= 1e-8)):  # so that NaN is refused
            raise ValueError(
                f"weights must be non-negative and sum to 1, found a sum of {sums[np.abs(sums - 1.0).argmax()]:g}"
            )
        if np.any(self.variances < 0.0):
            raise ValueError(f"variances must be non-negative, found {self.variances.min():g}")

    @classmethod
    def gaussian(cls, mean: ArrayLike, variance: ArrayLike) -> Predictive:
        """Return one Gaussian per observation, from means (N,) and variances (N,)."""
        return cls(np.ones(1), real_array(mean, "means")[None, :], real_array(variance, "variances")[None, :])

    @classmethod
    def equal_mixture(cls, means: Array, variance: float | Array) -> Predictive:
        """Return a mixture of S Gaussians of equal weight per observation, from means (S, N).

        ``variance`` is a number, or one variance per component, (S,).
        """
        variances = np.broadcast_to(np.reshape(variance, (-1, 1)), means.shape)
        return cls(np.full(len(means), 1.0 / len(means)), means, variances)

    def rescale(self, shift: float, scale: float) -> Predictive:
        """Return the distribution of ``shift + scale * y``."""
        variances = np.broadcast_to(scale**2 * self._distinct_variances, self.means.shape)
        return Predictive(self.weights, shift + scale * self.means, variances, scale**2 * self.beyond)

    def mean(self) -> Array:
        """Return the means (N,)."""
        return self._average(self.means)

    def variance(self) -> Array:
        """Return the variances (N,), noise included; inf if they do not exist."""
        return self._by_blocks(Predictive._mixture_variance) + self.beyond

    def std(self) -> Array:
        """Return the standard deviations (N,), noise included; inf if they do not exist."""
        return np.asarray(np.sqrt(self.variance()))

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the observations y (N,)."""
        return self._by_blocks(Predictive._logpdf, y)

    def logpdf_gaussian(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the Gaussians with the same means and variances."""
        return Predictive.gaussian(self.mean(), self.variance()).logpdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probabilities (N,) of an observation at or below y (N,)."""
        return self._by_blocks(Predictive._cdf, y)

    def quantile(self, p: float) -> Array:
        """Return the quantiles (N,) at probability p. Raises ValueError unless 0 < p < 1."""
        require_probability(p)
        return self._by_blocks(lambda block: block._quantile(p))  # noqa: SLF001 - a block is a mixture of this class

    def sample(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Return draws (size, N)."""
        n = self.means.shape[1]
        columns = np.arange(n)
        if self.weights.ndim == 1:
            component = rng.choice(len(self.weights), p=self.weights, size=(size, n))
        else:
            below = np.cumsum(self.weights, axis=0)[:-1, None, :]
            component = (rng.random((size, n)) >= below).sum(axis=0)
        noise = rng.standard_normal((size, n))
        stds = np.broadcast_to(self._stds, self.means.shape)
        return self.means[component, columns] + stds[component, columns] * noise

    def _by_blocks(self, compute: Callable[..., Array], y: ArrayLike | None = None) -> Array:
        """Return ``compute(block)`` or ``compute(block, y)`` (N,), for blocks of observations with their y (N,)."""
        targets = () if y is None else (np.asarray(y, dtype=np.float64),)
        n, size = self.means.shape[1], max(1, _BLOCK // len(self.weights))
        if n <= size:
            return compute(self, *targets)
        parts = []
        for start in range(0, n, size):
            rows = slice(start, start + size)
            weights = self.weights if self.weights.ndim == 1 else self.weights[:, rows]
            block = Predictive(weights, self.means[:, rows], self.variances[:, rows])
            parts.append(compute(block, *(np.broadcast_to(target, n)[rows] for target in targets)))
        return np.concatenate(parts)

    def _mixture_variance(self) -> Array:
        return self._average(self.variances + (self.means - self.mean()) ** 2)

    def _average(self, values: Array) -> Array:
        """Return the averages (N,) of values (S, N) over the components."""
        return np.asarray(self.weights @ values if self.weights.ndim == 1 else (self.weights * values).sum(axis=0))

    @property
    def weight_columns(self) -> Array:
        """The weights as (S, 1) or (S, N)."""
        return self.weights[:, None] if self.weights.ndim == 1 else self.weights

    def _logpdf(self, y: Array) -> Array:
        from scipy.special import logsumexp

        parts = self._component_logpdf(y)
        return np.asarray(parts[0] if len(parts) == 1 else logsumexp(parts, axis=0, b=self.weight_columns))

    def _cdf(self, y: Array) -> Array:
        from scipy.special import ndtr

        return self._average(ndtr(self._standardised(y)))

    def _standardised(self, y: Array) -> Array:
        """Return gaps between y (N,) and means in standard deviations (S, N); inf at a mean without variance."""
        gaps = y - self.means
        if self._stds.all():
            return np.asarray(gaps / self._stds)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((self._stds == 0.0) & (gaps == 0.0), np.inf, gaps / self._stds)

    def _quantile(self, p: float) -> Array:
        from scipy.special import ndtri

        points = self.means + self._stds * ndtri(p)
        return (
            np.asarray(points[0])
            if len(points) == 1
            else self._newton_quantile(p, points.min(axis=0), points.max(axis=0))
        )

    def _newton_quantile(self, p: float, low: Array, high: Array) -> Array:
        """Return the quantiles (N,) at p in the brackets ``low`` to ``high`` (N,), by Newton's method.

        Each step narrows the brackets. A step that would leave its bracket goes to the middle. If the steps do not
        suffice, as between components that are far apart, the brackets are bisected.
        """
        from scipy.special import ndtri

        centre, narrowest = self.mean(), self._stds.min(axis=0)
        spread = np.sqrt(self._mixture_variance())
        x = np.clip(centre + spread * ndtri(p), low, high)
        for _ in range(_NEWTON_STEPS):
            above = self._cdf(x) - p
            low, high = np.where(above < 0.0, x, low), np.where(above < 0.0, high, x)
            with np.errstate(all="ignore"):
                step = above / self._density(x)
            small = np.abs(step) <= _NEWTON_STOP * narrowest
            x = np.where(small | ((low <= x - step) & (x - step <= high)), x - step, 0.5 * (low + high))
            if small.all():
                return np.asarray(x)
        return bisect_quantile(self._cdf, p, low, high)

    def _density(self, x: Array) -> Array:
        """Return the densities (N,) at x (N,)."""
        z = (x - self.means) / self._stds
        return self._average(np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * self._stds))

    @property
    def _distinct_variances(self) -> Array:
        """The variances, as (S, 1) if those of a component are stored once, else (S, N)."""
        return self.variances if self.variances.strides[1] else self.variances[:, :1]

    @cached_property
    def _stds(self) -> Array:
        """The standard deviations, (S, 1) or (S, N)."""
        return np.asarray(np.sqrt(self._distinct_variances))

    def _component_logpdf(self, y: Array) -> Array:
        gaps = y - self.means
        with np.errstate(divide="ignore", invalid="ignore"):  # a variance so small that it is 0
            logpdf = -0.5 * (gaps**2 / self._distinct_variances + np.log(2.0 * np.pi * self._distinct_variances))
        return np.where(self._distinct_variances == 0.0, np.where(gaps == 0.0, np.inf, -np.inf), logpdf)


def bisect_quantile(cdf: Callable[[Array], Array], p: float, low: Array, high: Array) -> Array:
    """Return the quantiles (N,) at p by bisection of the brackets ``low`` to ``high`` (N,), to rounding error."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = cdf(middle) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high))):
            break
    return np.asarray(0.5 * (low + high))


def require_probability(p: float) -> None:
    """Raise ValueError unless p can be the probability of a quantile."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"the probability of a quantile must be strictly between 0 and 1, found {p}")


class PointPrediction(NamedTuple):
    """Prediction without density or standard deviation; it has no log-likelihood."""

    values: Array  # (N,)

    def mean(self) -> Array:
        """Return the predicted values (N,)."""
        return self.values


def real_array(values: ArrayLike, what: str) -> Array:
    """Return values as an array of doubles.

    Raises ValueError for complex numbers and for masked values, whose imaginary part or mask would be lost.
    """
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(f"{what}: {masked} of {values.size} values are masked")
    if np.iscomplexobj(values):
        raise ValueError(f"{what}: complex numbers; real numbers are required")
    return np.asarray(values, dtype=np.float64)
