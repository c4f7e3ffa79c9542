"""The continuous ranked probability score (CRPS), the integral of (F(x) - 1[x >= y])^2 over x.

That of a mixture of Gaussians has a closed form, a sum over pairs of components. If there are many, quadrature replaces
the sum. For other densities the score is integrated numerically, and for quantiles it is approximated by pinball
losses. The tests compare with the library scoringrules, which is not used here because it compiles for six seconds on
import.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ep_bench.predictions import ASKED_LEVELS, DensityPrediction, Predictive, QuantilePrediction
from ep_bench.types import Array

_CHUNK = 2**14  # approximate size of the largest temporary array of a CRPS; small enough for a processor's cache
_WIDEST = 0.05  # largest probability that one level may represent in the CRPS of quantiles

# The integral of the CRPS: panels between these quantiles and the target, halved until two quadrature rules agree.
_TAILS = tuple(8.0**-k for k in range(12, 0, -1))
PANELS = (*_TAILS, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, *(1.0 - tail for tail in reversed(_TAILS)))
_ORDER = 20  # order of the Clenshaw-Curtis rule; the second rule has half the order and uses every other node
_AGREEMENT = 1e-8  # largest difference of the two rules on a panel, relative to the whole integral
_MAX_HALVINGS = 60  # of one panel
_MAX_PANELS = 1024  # panels per data point on which the rules disagree
_MAX_ERROR = 1e-6  # bound on the error of the remaining panels, relative to the whole integral

# The CRPS of a mixture: all pairs of at most _FEW components; else pairs of the narrowest, and quadrature with equal
# steps for the rest. If that is more work, as with components of very different widths: steps that grow in the tails.
_FEW = 64
_STEP = 0.7  # distance of two nodes, in standard deviations of the narrowest component under quadrature
_TAIL = 7.0  # standard deviations beyond the outermost means
_PAIR = 2.0  # work of one pair, relative to one evaluation of the normal distribution function
_MANY_NODES = 500.0  # work per component, in the same unit, from which on growing steps are tried
_MOST_NODES = 2000  # of growing steps
_NEGLIGIBLE = 10.0  # standard deviations from which on the tail of a component is omitted there


def crps(prediction: Predictive | DensityPrediction | QuantilePrediction, y: Array) -> float:
    """Return the mean continuous ranked probability score, in the unit of the targets y (N,).

    For a mixture of Gaussians or another density it is the integral of (F(x) - 1[x >= y])^2 over x, with a relative
    error of at most 1e-6. It is nan if this error bound cannot be met, for example if F has very many jumps.

    For quantiles it is twice the mean pinball loss. The weight of a level is the probability that is closer to it than
    to any other level. If `is_dense`, the result is within 1 % of the integral for a Gaussian.
    """
    if isinstance(prediction, QuantilePrediction):
        return float(2.0 * (_level_weights(prediction.levels) @ _pinball(prediction, y)).mean())
    if isinstance(prediction, DensityPrediction):
        return float(integral(prediction, y).mean())
    return _of_mixture(prediction, y)


def is_dense(prediction: QuantilePrediction) -> bool:
    """Return whether quantiles have a CRPS: no level may represent a probability above 0.05."""
    return bool(_level_weights(prediction.levels).max() <= _WIDEST + 1e-9)


def _level_weights(levels: Array) -> Array:
    """Return the probabilities (Q,) that are closer to each level than to any other; their sum is 1."""
    return np.asarray(np.diff(np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [1.0]])))


def pinball(prediction: Predictive | DensityPrediction | QuantilePrediction, y: Array) -> float:
    """Return the mean pinball loss over levels and targets y (N,), in the unit of the targets.

    The levels are those of the quantiles, or ``ASKED_LEVELS`` of a density.
    """
    if not isinstance(prediction, QuantilePrediction):
        values = [prediction.quantile(level) for level in ASKED_LEVELS]
        prediction = QuantilePrediction(ASKED_LEVELS, np.stack(values))
    return float(_pinball(prediction, y).mean())


def _pinball(prediction: QuantilePrediction, y: Array) -> Array:
    """Return the pinball losses (Q, N)."""
    above = y - prediction.values
    return np.asarray(above * (prediction.levels[:, None] - (above < 0.0)))


def integral(prediction: DensityPrediction, y: Array) -> Array:
    """Return the CRPS (N,), integrated over panels between the quantiles of each data point.

    The tails beyond the outermost quantiles contribute less than 1e-21 of the distance of these quantiles. A panel is
    halved if the two rules disagree, which happens at a kink or jump of F. If too many panels remain, their error is
    bounded: F is non-decreasing, so the integrand is between its values at the ends of a panel. The result is nan if
    this bound exceeds ``_MAX_ERROR`` times the integral.
    """
    edges = np.sort(np.vstack([*(prediction.quantile(p) for p in PANELS), y]), axis=0)
    if not np.isfinite(edges).all():
        raise ValueError("a quantile or a target is not finite")
    left, right = edges[:-1], edges[1:]
    total = np.zeros(len(y))
    for halving in range(_MAX_HALVINGS + 1):
        value, check, bound = _panels(prediction, y, left, right)
        whole = total + value.sum(axis=0)
        disagree = np.abs(value - check) > _AGREEMENT * whole
        count = int(disagree.sum(axis=0).max())
        if not count or 2 * count > _MAX_PANELS or halving == _MAX_HALVINGS:
            break
        total += np.where(disagree, 0.0, value).sum(axis=0)
        left, right = _halved(left, right, disagree, count)
    error = np.where(disagree, bound, 0.0).sum(axis=0)
    return np.where(error <= _MAX_ERROR * whole, whole, np.nan)


def _halved(left: Array, right: Array, chosen: NDArray[np.bool_], count: int) -> tuple[Array, Array]:
    """Return the halves (2 K, N) of the chosen panels among (P, N), K = ``count``.

    A data point with fewer chosen panels gets panels of width 0.
    """
    order = np.argsort(~chosen, axis=0, kind="stable")[:count]
    right = np.take_along_axis(right, order, axis=0)
    left = np.where(np.take_along_axis(chosen, order, axis=0), np.take_along_axis(left, order, axis=0), right)
    middle = left + 0.5 * (right - left)
    return np.concatenate([left, middle]), np.concatenate([middle, right])


def _panels(prediction: DensityPrediction, y: Array, left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return the integrals (P, N) of (F(x) - 1[x >= y])^2 over panels from ``left`` to ``right`` (P, N).

    The first two arrays are the values of the two rules; the third bounds their error, since F is non-decreasing. The
    ends of a panel are nodes, so the rules also disagree if a kink is between an end and the next node.
    """
    nodes = np.cos(np.pi * np.arange(_ORDER + 1) / _ORDER)
    half = 0.5 * (right - left)
    middle = left + half
    step = max(1, _CHUNK // (len(nodes) * len(y)))
    results = []
    for start in range(0, len(left), step):
        rows = slice(start, start + step)
        x = middle[rows, None] + half[rows, None] * nodes[:, None]
        below = prediction.cdf(x.reshape(-1, len(y))).reshape(x.shape)
        squares = (below - (middle[rows, None] >= y)) ** 2
        fine = np.einsum("k,pkn->pn", _clenshaw_curtis(_ORDER), squares)
        coarse = np.einsum("k,pkn->pn", _clenshaw_curtis(_ORDER // 2), squares[:, ::2])
        bound = 2.0 * np.abs(squares[:, 0] - squares[:, -1])
        results.append(half[rows] * np.stack([fine, coarse, bound]))
    fines, coarses, bounds = np.concatenate(results, axis=1)
    return fines, coarses, bounds


@cache
def _clenshaw_curtis(n: int) -> Array:
    """Return the weights (n + 1,) of the Clenshaw-Curtis rule with nodes cos(pi j / n) on [-1, 1], n even.

    w_j = c_j / n (1 - sum_k b_k cos(2 pi j k / n) / (4 k^2 - 1)) for k = 1, ..., n / 2, where b_k = 2 except for
    b_{n/2} = 1, and c_j = 2 except for c_0 = c_n = 1.
    """
    k = np.arange(1, n // 2 + 1)
    b = np.where(k == n // 2, 1.0, 2.0)
    cosines = np.cos(2.0 * np.pi * np.outer(np.arange(n + 1), k) / n)
    ends = np.where(np.isin(np.arange(n + 1), (0, n)), 1.0, 2.0)
    return np.asarray(ends / n * (1.0 - cosines @ (b / (4.0 * k**2 - 1.0))))


def _of_mixture(prediction: Predictive, y: Array) -> float:
    """Return the mean CRPS of mixtures of Gaussians (Grimit et al. 2006): E|Y - y| - E|Y - Y'| / 2."""
    given, means, variances = prediction.weights, prediction.means, prediction.variances
    scores = np.empty(len(y))
    step = max(1, _CHUNK // len(given))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        to_components = _mean_distance(y[rows] - means[:, rows], variances[:, rows])
        weights = given[:, None] if given.ndim == 1 else given[:, rows]
        to_target = given @ to_components if given.ndim == 1 else (weights * to_components).sum(axis=0)
        scores[rows] = to_target - 0.5 * _distance_between(weights, means[:, rows], variances[:, rows])
    return float(scores.mean())


def _distance_between(weights: Array, means: Array, variances: Array) -> Array:
    """Return E|Y - Y'| (N,) of mixtures of Gaussians, weights (S, 1) or (S, N), means and variances (S, N).

    At most ``_FEW`` components are compared in pairs. Otherwise pairs with the k narrowest components of each data
    point are computed exactly, and quadrature with equal steps gives the rest; k minimises the total work. Quadrature
    with growing steps replaces both if they are much work, and if it converges.
    """
    if len(weights) <= _FEW:
        return _pairs(weights, means, variances, len(weights))
    order = np.argsort(variances, axis=0)
    full = np.broadcast_to(weights, means.shape)
    sorted_weights, means, variances = (np.take_along_axis(one, order, axis=0) for one in (full, means, variances))
    stds = np.sqrt(variances)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = (means - _TAIL * stds).min(axis=0)
        high = (means + _TAIL * stds).max(axis=0)
        nodes = np.append(np.ceil(((high - low) / (_STEP * stds)).max(axis=1)), 0.0)
        k = np.arange(len(nodes))
        work = _PAIR * k * (len(weights) - 0.5 * k) + nodes * (len(weights) - k)
    k_best = int(np.argmin(np.where(np.isfinite(work), work, np.inf)))
    if work[k_best] > _MANY_NODES * len(weights) and variances[0].all():
        found = _distance_by_growing_steps(sorted_weights, means, stds, low, high)
        if found is not None:
            return found
    between = _pairs(sorted_weights, means, variances, k_best)
    if nodes[k_best]:
        rest = sorted_weights[k_best:], means[k_best:], stds[k_best:]
        between += _distance_by_nodes(*rest, low, high, int(nodes[k_best]))
    return between


def _pairs(weights: Array, means: Array, variances: Array, k: int) -> Array:
    """Return the sum (N,) of w_i w_j E|X_i - X_j| over all i and j with min(i, j) < k.

    The shapes are (S, 1) or (S, N) for the weights, and (S, N) for means and variances.
    """
    between = np.zeros(means.shape[1])
    for i in range(k):
        distances = _mean_distance(means[i] - means[i + 1 :], variances[i] + variances[i + 1 :])
        others = (weights[i + 1 :] * distances).sum(axis=0)
        between += weights[i] * (2.0 * others + weights[i] * 2.0 * np.sqrt(variances[i] / np.pi))
    return between


def _distance_by_nodes(weights: Array, means: Array, stds: Array, low: Array, high: Array, n: int) -> Array:
    """Return the sum (N,) of w_i w_j E|X_i - X_j| = 2 int F(x) (F(inf) - F(x)) dx, where F = sum_i w_i Phi_i.

    Weights, means and standard deviations are (S, N), ``low`` and ``high`` (N,). The trapezoidal rule with n steps of
    length h has an aliasing error. For standard deviations of at least s, the spectrum of the integrand decreases as
    exp(-(s k)^2 / 4) / k^2. At k = 2 pi / h the exponential is exp(-(pi s / h)^2), below 2e-9 for h = 0.7 s.
    """
    from scipy.special import ndtr

    step, whole = (high - low) / n, weights.sum(axis=0)
    total = np.zeros(len(low))
    for i in range(n + 1):
        below = (weights * ndtr((low + i * step - means) / stds)).sum(axis=0)
        total += below * (whole - below)
    return np.asarray(2.0 * step * total)


def _distance_by_growing_steps(weights: Array, means: Array, stds: Array, low: Array, high: Array) -> Array | None:
    """Return the sum of `_distance_by_nodes`, where the sum of the weights is 1, or None if it does not converge.

    The trapezoidal rule has equal steps of u with x = m + s sinh(u), m the mean and s the smallest standard deviation.
    Its error decreases exponentially with the number of nodes. They are doubled until two values agree. Above m, it is
    1 - F that is summed over the components, because its digits would be lost in F.
    """
    from scipy.special import ndtr

    centre, scale = (weights * means).sum(axis=0), stds[0]
    left, right = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
    widest, spread = stds.max(axis=1), np.abs(means - centre).max()

    def summed(fractions: Array) -> Array:
        total = np.zeros(len(low))
        for fraction in fractions:
            u = left + fraction * (right - left)
            steps = scale * np.sinh(u)
            k = int(np.searchsorted(widest, (np.abs(steps).min() - spread) / _NEGLIGIBLE))
            z = (centre + steps - means[k:]) / stds[k:]
            tail = (weights[k:] * ndtr(np.where(u > 0.0, -z, z))).sum(axis=0)
            total += tail * (1.0 - tail) * np.cosh(u)
        return total

    count = int(np.ceil(((right - left) / _STEP).max()))
    total = summed(np.arange(count + 1) / count)
    value = total / count
    while count < _MOST_NODES:
        total += summed((np.arange(count) + 0.5) / count)
        count *= 2
        previous, value = value, total / count
        if np.all(np.abs(value - previous) <= _AGREEMENT * value):
            return np.asarray(2.0 * scale * (right - left) * value)
    return None


def _mean_distance(mean: Array, variance: Array) -> Array:
    """Return E|X| of Gaussians X with the given means and variances of equal shape; |mean| if the variance is 0."""
    from scipy.special import erf

    std = np.maximum(np.sqrt(variance), 1e-300)
    with np.errstate(over="ignore"):
        z = mean / std
        density = np.exp(-0.5 * z**2)
    return np.asarray(std * density * np.sqrt(2.0 / np.pi) + mean * erf(np.sqrt(0.5) * z))
