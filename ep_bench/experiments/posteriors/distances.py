"""Distances of approximate predictions from those of a reference posterior, one value per test input.

The noise variance is known, so the posterior of the output f of the network is compared first, without noise. The unit
is its standard deviation under the reference.

- ``mean_error``: absolute difference of the means of f.
- ``std_ratio``: standard deviation of f, divided by the reference's.
- ``wasserstein_1``, ``wasserstein_2``: of f. The integrals of |F^-1 - G^-1| and of its square over the probability use
  the means of both quantile functions over ``INTERVALS`` of equal probability: sorted draws, or a Gaussian's.
- ``total_variation``, ``kl``: of an observation, noise included: half the integral of |q - p|, and that of
  p log(p / q), with the density p of the reference. Many draws are replaced by the means of ``COMPONENTS`` intervals.
- ``pair_kl``: the same Kullback-Leibler divergence, of the observations at an input and at its nearest other one. Its
  expectation is a mean over observations drawn from one half of the reference, with the density p of the other half.

A prediction with one Gaussian per input has no joint distribution: its pairs are independent given the noise.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices

INTERVALS = 2000
TAIL, SPACING = 9.0, 0.2  # grid of densities: standard deviations of the narrowest component
POINTS = (400, 4000)  # minimum and maximum number of its points
COMPONENTS = 1000  # at most, of a density; a divisor of INTERVALS
JOINT = 1000  # draws at most of the density of pairs
OBSERVATIONS = 100  # pairs drawn from the reference per input
NAMES = ("mean_error", "std_ratio", "wasserstein_1", "wasserstein_2", "total_variation", "kl", "pair_kl")


def compare(method: Predictive, reference: Array, noise_variance: float, partners: Indices) -> dict[str, Array]:
    """Return the distances by name, (N,) each.

    Parameters
    ----------
    method : prediction of observations, noise included
    reference : (S, N) draws of f from the reference posterior, chain by chain
    noise_variance : known noise variance, in the squared unit of ``reference``
    partners : (N,) index of the nearest other input (``nearest``)
    """
    function, drawn = without_noise(method, noise_variance), Predictive.equal_mixture(reference, 0.0)
    unit = drawn.std()
    gap = (interval_means(function) - interval_means(drawn)) / unit
    observed = Predictive.equal_mixture(reference, noise_variance)
    total_variation, kl = density_distances(_condensed(method), _condensed(observed))
    pairs = pair_kl(method, reference, noise_variance, partners)
    values = (
        np.abs(function.mean() - drawn.mean()) / unit, function.std() / unit, np.abs(gap).mean(axis=0),
        np.sqrt((gap**2).mean(axis=0)), total_variation, kl, pairs,
    )  # fmt: skip
    return dict(zip(NAMES, values, strict=True))


def without_noise(method: Predictive, noise_variance: float) -> Predictive:
    """Return the distribution of f: a single Gaussian with less variance, or the means of a mixture as draws."""
    if len(method.weights) == 1:
        return Predictive.gaussian(method.means[0], np.maximum(method.variances[0] - noise_variance, 0.0))
    return Predictive(method.weights, method.means, np.zeros_like(method.means))


def interval_means(marginals: Predictive) -> Array:
    """Return the means (INTERVALS, N) of the quantile functions over intervals of equal probability."""
    levels = np.linspace(0.0, 1.0, INTERVALS + 1)
    if len(marginals.weights) == 1:
        standard = -INTERVALS * np.diff(norm.pdf(norm.ppf(levels)))
        return np.asarray(marginals.means + np.sqrt(marginals.variances) * standard[:, None])
    columns = []
    for values in marginals.means.T:
        order = np.argsort(values)
        below = np.append(0.0, np.cumsum(marginals.weights[order]))
        integral = np.append(0.0, np.cumsum((marginals.weights * values)[order]))
        columns.append(INTERVALS * np.diff(np.interp(levels * below[-1], below, integral)))
    return np.array(columns).T


def density_distances(method: Predictive, reference: Predictive) -> tuple[Array, Array]:
    """Return total variation and Kullback-Leibler divergence (N,) from the reference, by the trapezoidal rule."""
    both = (method, reference)
    narrowest = min(float(np.sqrt(one.variances).min()) for one in both)
    low = np.min([(one.means - TAIL * np.sqrt(one.variances)).min(axis=0) for one in both], axis=0)
    high = np.max([(one.means + TAIL * np.sqrt(one.variances)).max(axis=0) for one in both], axis=0)
    points = int(np.clip(np.max(high - low) / (SPACING * narrowest), *POINTS))
    grid = low + np.linspace(0.0, 1.0, points)[:, None] * (high - low)
    q, p = (np.array([one.logpdf(at) for at in grid]) for one in both)
    width = (high - low) / (points - 1)
    return 0.5 * width * np.abs(np.exp(q) - np.exp(p)).sum(axis=0), width * (np.exp(p) * (p - q)).sum(axis=0)


def pair_kl(method: Predictive, reference: Array, noise_variance: float, partners: Indices) -> Array:
    """Return the divergence (N,) of pairs of observations from those of ``reference`` (S, N), draws of f."""
    first, second = np.array_split(reference, 2)
    y = second[_thinned(len(second), OBSERVATIONS)]
    y = y + np.sqrt(noise_variance) * np.random.default_rng(0).standard_normal(y.shape)
    p, q = Predictive.equal_mixture(first[_thinned(len(first), JOINT)], noise_variance), method
    if len(q.weights) > JOINT:
        kept = _thinned(len(q.weights), JOINT)
        q = Predictive(q.weights[kept] / q.weights[kept].sum(), q.means[kept], q.variances[kept])
    return np.asarray((_pair_density(p, y, partners) - _pair_density(q, y, partners)).mean(axis=0))


def _pair_density(prediction: Predictive, y: Array, partners: Indices) -> Array:
    """Return the log densities (R, N) of observations y (R, N) at each input and at its partner."""
    precision = 1.0 / prediction.variances
    constant = np.log(prediction.weights)[:, None] + 0.5 * np.log(precision / (2.0 * np.pi))
    constant = constant + 0.5 * np.log(precision / (2.0 * np.pi))[:, partners]
    rows = []
    for row in y:
        half = 0.5 * precision * (row - prediction.means) ** 2
        rows.append(logsumexp(constant - half - half[:, partners], axis=0))
    return np.array(rows)


def nearest(X: Array) -> Indices:
    """Return the index (N,) of the nearest other input of X (N, d), N > 1."""
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    return np.asarray(distance.argmin(axis=1))


def _thinned(size: int, count: int) -> Indices:
    """Return at most ``count`` evenly spaced indices of ``size`` draws."""
    return np.linspace(0, size - 1, min(count, size)).round().astype(np.int64)


def _condensed(prediction: Predictive) -> Predictive:
    """Return mixtures with the same marginals and at most COMPONENTS components, of the mean variance."""
    if len(prediction.weights) <= COMPONENTS:
        return prediction
    means = (
        interval_means(without_noise(prediction, 0.0)).reshape(COMPONENTS, -1, prediction.means.shape[1]).mean(axis=1)
    )
    variances = np.broadcast_to(prediction.weights @ prediction.variances, means.shape)
    return Predictive(np.full(COMPONENTS, 1.0 / COMPONENTS), means, variances)
