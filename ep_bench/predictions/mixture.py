"""Mixtures of Gaussians, and points without a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.types import Array

_NEWTON_STEPS = 20  # at most, for a quantile; five are usual
_NEWTON_STOP = 1e-8  # last step, in standard deviations of the narrowest component; the error is about its square


class Predictive:
    """Predictive distribution of N observations, noise included: one weighted mixture of S Gaussians per observation.

    EP and Gaussian processes have S = 1. Samplers have one component per draw, quadrature over the noise one per node.

    Parameters
    ----------
    weights : (S,) array, non-negative, with sum 1
    means : (S, N) array
    variances : (S, N) array, in the squared unit of the means
    beyond : variance that is added to that of the mixture, in the same unit, if the mixture approximates a distribution
        with heavier tails; inf if that distribution has no variance, such as a Student-t with 2 degrees of freedom

    Raises
    ------
    ValueError
        The shapes do not match, the weights do not sum to 1, or a variance is negative.
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike, beyond: float = 0.0) -> None:
        self.beyond = beyond
        self.weights: Array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        self.means: Array = np.atleast_2d(np.asarray(means, dtype=np.float64))
        self.variances: Array = np.atleast_2d(np.asarray(variances, dtype=np.float64))
        if self.means.shape != self.variances.shape or self.means.shape[0] != self.weights.size:
            raise ValueError(
                f"the shapes of weights (S,), means (S, N) and variances (S, N) do not match: "
                f"{self.weights.shape}, {self.means.shape}, {self.variances.shape}"
            )
        if np.any(self.weights < 0.0) or abs(self.weights.sum() - 1.0) > 1e-8:
            raise ValueError(f"weights must be non-negative and sum to 1, found a sum of {self.weights.sum():g}")
        if np.any(self.variances < 0.0):
            raise ValueError(f"variances must be non-negative, found {self.variances.min():g}")

    @classmethod
    def gaussian(cls, mean: ArrayLike, variance: ArrayLike) -> Predictive:
        """Return one Gaussian per observation, from means (N,) and variances (N,)."""
        return cls(np.ones(1), np.asarray(mean)[None, :], np.asarray(variance)[None, :])

    @classmethod
    def equal_mixture(cls, means: Array, variance: float | Array) -> Predictive:
        """Return a mixture of S Gaussians of equal weight per observation, from means (S, N).

        ``variance`` is a number, or one variance per component, (S,).
        """
        variances = np.broadcast_to(np.reshape(variance, (-1, 1)), means.shape).copy()
        return cls(np.full(len(means), 1.0 / len(means)), means, variances)

    def rescale(self, shift: float, scale: float) -> Predictive:
        """Return the distribution of ``shift + scale * y``."""
        return Predictive(self.weights, shift + scale * self.means, scale**2 * self.variances, scale**2 * self.beyond)

    def mean(self) -> Array:
        """Return the means (N,)."""
        return np.asarray(self.weights @ self.means)

    def variance(self) -> Array:
        """Return the variances (N,), noise included; inf if they do not exist."""
        spread = self.means - self.mean()
        return np.asarray(self.weights @ (self.variances + spread**2)) + self.beyond

    def std(self) -> Array:
        """Return the standard deviations (N,), noise included; inf if they do not exist."""
        return np.asarray(np.sqrt(self.variance()))

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the observations y (N,)."""
        from scipy.special import logsumexp

        parts = self._component_logpdf(np.asarray(y, dtype=np.float64))
        if len(self.weights) == 1:
            return np.asarray(parts[0])
        return np.asarray(logsumexp(parts, axis=0, b=self.weights[:, None]))

    def logpdf_gaussian(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the Gaussians with the same means and variances."""
        return Predictive.gaussian(self.mean(), self.variance()).logpdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probabilities (N,) of an observation at or below y (N,)."""
        from scipy.special import ndtr

        return np.asarray(self.weights @ ndtr((np.asarray(y, dtype=np.float64) - self.means) / self._stds))

    def quantile(self, p: float) -> Array:
        """Return the quantiles (N,) at probability p. Raises ValueError unless 0 < p < 1."""
        from scipy.special import ndtri

        require_probability(p)
        points = self.means + self._stds * ndtri(p)
        if len(self.weights) == 1:
            return np.asarray(points[0])
        return self._newton_quantile(p, points.min(axis=0), points.max(axis=0))

    def sample(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Return draws (size, N)."""
        n = self.means.shape[1]
        component = rng.choice(len(self.weights), p=self.weights, size=(size, n))
        columns = np.arange(n)
        noise = rng.standard_normal((size, n))
        return self.means[component, columns] + self._stds[component, columns] * noise

    def _newton_quantile(self, p: float, low: Array, high: Array) -> Array:
        """Return the quantiles (N,) at p in the brackets ``low`` to ``high`` (N,), by Newton's method.

        Each step narrows the brackets. A step that would leave its bracket goes to the middle. If the steps do not
        suffice, as between components that are far apart, the brackets are bisected.
        """
        from scipy.special import ndtri

        centre, narrowest = self.mean(), self._stds.min(axis=0)
        spread = np.sqrt(self.weights @ (self.variances + (self.means - centre) ** 2))
        x = np.clip(centre + spread * ndtri(p), low, high)
        for _ in range(_NEWTON_STEPS):
            above = self.cdf(x) - p
            low, high = np.where(above < 0.0, x, low), np.where(above < 0.0, high, x)
            with np.errstate(all="ignore"):
                step = above / self._density(x)
            small = np.abs(step) <= _NEWTON_STOP * narrowest
            x = np.where(small | ((low <= x - step) & (x - step <= high)), x - step, 0.5 * (low + high))
            if small.all():
                return np.asarray(x)
        return bisect_quantile(self.cdf, p, low, high)

    def _density(self, x: Array) -> Array:
        """Return the densities (N,) at x (N,)."""
        z = (x - self.means) / self._stds
        return np.asarray(self.weights @ (np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * self._stds)))

    @cached_property
    def _stds(self) -> Array:
        return np.asarray(np.sqrt(self.variances))

    def _component_logpdf(self, y: Array) -> Array:
        squares = (y - self.means) ** 2 / self.variances
        return np.asarray(-0.5 * (squares + np.log(2.0 * np.pi * self.variances)))


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
