"""Predictive distributions with a density that is not a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.predictions.mixture import Predictive, bisect_quantile, real_array, require_probability
from ep_bench.types import Array


class DensityPrediction:
    """Predictive distribution of N observations with a density that is not a mixture of Gaussians; noise included.

    Parameters
    ----------
    logpdf, cdf : callable
        Functions of points (N,), one per observation, to (N,).
    mean, variance : array-like of shape (N,)
        Moments; a variance of nan, which does not exist, becomes inf.
    quantile : callable, optional
        Function of a probability in (0, 1) to (N,); if None, the cdf is inverted by bisection.
    broadcasts : bool
        Whether ``cdf`` also maps K points per observation, (K, N), to (K, N).

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
        self._mean: Array = real_array(mean, "means")
        self._variance: Array = real_array(variance, "variances")
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


def _shaped(values: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    array = real_array(values, what)
    if array.shape != shape:
        raise ValueError(f"the {what} has shape {array.shape}, expected {shape}")
    return array
