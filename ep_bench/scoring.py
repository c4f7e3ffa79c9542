"""Scores of predictions, computed from their definitions in the original units of the target.

The scores use the public methods of a prediction only, and share no kernel with the methods that are scored. The
continuous ranked probability score (CRPS) of a mixture of Gaussians has a closed form. For other densities it is
integrated numerically, and for quantiles it is approximated by pinball losses. The tests compare the scores with the
library scoringrules, which is not used here because it compiles for six seconds on import.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ep_bench.predictions import (
    AnyPrediction,
    Classification,
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.types import Array

LEVELS = (50, 90, 95)
_NEED_FINITE_STD = frozenset({"ll_gaussian", "crps", *(f"width{level}" for level in LEVELS)})
_CHUNK = 2**14  # approximate size of the largest temporary array of a CRPS; small enough for a processor's cache
_WIDEST = 0.05  # largest probability that one level may represent in the CRPS of quantiles

# The integral of the CRPS: panels between these quantiles and the target, halved until two quadrature rules agree.
_TAILS = tuple(8.0**-k for k in range(12, 0, -1))
_PANELS = (*_TAILS, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, *(1.0 - tail for tail in reversed(_TAILS)))
_INTERVAL_TAILS = tuple((1.0 - level / 100.0) / 2.0 for level in LEVELS)
NEEDED_LEVELS = (*_PANELS, *_INTERVAL_TAILS, *(1.0 - tail for tail in _INTERVAL_TAILS))  # quantiles that scores use
_ORDER = 20  # order of the Clenshaw-Curtis rule; the second rule has half the order and uses every other node
_AGREEMENT = 1e-8  # largest difference of the two rules on a panel, relative to the whole integral
_MAX_HALVINGS = 60  # of one panel
_MAX_PANELS = 1024  # panels per data point on which the rules disagree
_MAX_ERROR = 1e-6  # bound on the error of the remaining panels, relative to the whole integral

# The CRPS of a mixture: all pairs of at most _FEW components; else pairs of the narrowest, and quadrature for the rest.
_FEW = 64
_STEP = 0.7  # distance of two nodes, in standard deviations of the narrowest component under quadrature
_TAIL = 7.0  # standard deviations beyond the outermost means
_PAIR = 2.0  # cost of one pair, relative to one evaluation of the normal distribution function


def load() -> None:
    """Import the modules that scoring uses, so that the import is not part of a cell's time."""
    importlib.import_module("scipy.special")


def score(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return the scores of a prediction for test targets y (N,), by their column in results.csv.

    - ``rmse`` and ``mae`` score the mean.
    - ``ll`` is the mean test log-likelihood (nats per data point, original units of the target). ``ll_gaussian`` is
      that of the Gaussian with the same mean and variance.
    - ``pit_error`` is the mean absolute difference between the empirical distribution function of the PIT values and
      the uniform one, from 0 (calibrated) to 0.5.

    Point predictions have only the scores that need no density. Quantiles also have the coverage and width of the
    central intervals whose ends are available, and the CRPS if they are dense. The CRPS of a density is omitted if its
    numerical error is too large (`crps`). Predictions of classes have the scores of `class_scores`.
    """
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        return class_scores(prediction, y)
    squares = (y - prediction.mean()) ** 2
    scores = {
        "rmse": float(np.sqrt(squares.mean())),
        "mae": float(np.sqrt(squares).mean()),
        "se_std": float(squares.std()),
        "se_prct99": float(np.percentile(squares, 99)),
    }
    if isinstance(prediction, PointPrediction):
        return scores
    if isinstance(prediction, QuantilePrediction):
        dense = {"crps": crps(prediction, y)} if is_dense(prediction) else {}
        return scores | _quantile_interval_scores(prediction, y) | dense
    scores |= _density_scores(prediction, y) | _interval_scores(prediction, y)
    integral = crps(prediction, y)
    if not np.isnan(integral):
        scores["crps"] = integral
    if np.all(np.isfinite(prediction.variance())):
        return scores
    # The variance may be infinite, as for a Student-t; scores that need a finite one are then omitted.
    return {key: value for key, value in scores.items() if np.isfinite(value) or key not in _NEED_FINITE_STD}


def class_scores(prediction: Classification, y: Array) -> dict[str, float]:
    """Return the scores of predicted classes for test classes y (N,).

    - ``error_rate`` is the fraction of data points whose most probable class, the first one in a tie, is wrong.
    - ``ll`` is the mean log probability of the true class (nats); -inf if a true class has probability 0.
    - ``brier`` is the mean of sum_c (p_c - 1[y = c])^2 over all C classes (Brier 1950), from 0 to 2. For two classes it
      is twice the squared error of one class's probability, which is often called by the same name.

    Without probabilities there is only ``error_rate``.
    """
    scores = {"error_rate": float(_is_wrong(prediction, y).mean())}
    if isinstance(prediction, ClassLabels):
        return scores
    errors = prediction.probabilities.copy()
    errors[np.arange(len(errors)), prediction.indices(y)] -= 1.0
    return scores | {"ll": float(prediction.logpdf(y).mean()), "brier": float((errors**2).sum(axis=1).mean())}


def _is_wrong(prediction: Classification, y: Array) -> NDArray[np.bool_]:
    """Return which most probable classes (N,) differ from the classes y (N,)."""
    return np.asarray(prediction.mode() != prediction.classes[prediction.indices(y)])


def by_row(prediction: AnyPrediction, y: Array) -> dict[str, Array]:
    """Return scores (N,) per test point, for test targets y (N,) in original units.

    These are the absolute error ``ae``, whose mean is ``mae``, and the log density ``ll`` if there is one. In
    classification ``error`` replaces ``ae``: 1 if the most probable class is wrong, else 0. Its mean is ``error_rate``.
    """
    scores: dict[str, Array] = {}
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        scores["error"] = _is_wrong(prediction, y).astype(np.float64)
    else:
        scores["ae"] = np.abs(y - prediction.mean())
    if isinstance(prediction, Predictive | DensityPrediction | ClassProbabilities):
        scores["ll"] = prediction.logpdf(y)
    return scores


def main_scores(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``rmse``, in classification ``error_rate``, and ``ll`` if there is a density.

    The targets y (N,) are in original units.
    """
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        return {name: value for name, value in class_scores(prediction, y).items() if name != "brier"}
    scores = {"rmse": float(np.sqrt(np.mean((y - prediction.mean()) ** 2)))}
    if isinstance(prediction, Predictive | DensityPrediction):
        scores["ll"] = float(prediction.logpdf(y).mean())
    return scores


def score_training(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``train_rmse``, except in classification, and ``train_ll`` if there is a density, for targets y (N,)."""
    scores = main_scores(prediction, y)
    return {f"train_{name}": value for name, value in scores.items() if name != "error_rate"}


def joined(parts: Sequence[Mapping[str, float]], fractions: Array) -> dict[str, float]:
    """Return the training scores of all data points from those of K blocks; ``fractions`` (K,) are the block sizes."""
    scores = {name: float(fractions @ np.array([part[name] for part in parts])) for name in parts[0]}
    if "train_rmse" in scores:
        scores["train_rmse"] = float(np.sqrt(fractions @ np.array([part["train_rmse"] ** 2 for part in parts])))
    return scores


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
        return float(_crps_integral(prediction, y).mean())
    return _crps_mixture(prediction, y)


def is_dense(prediction: QuantilePrediction) -> bool:
    """Return whether quantiles have a CRPS: no level may represent a probability above 0.05."""
    return bool(_level_weights(prediction.levels).max() <= _WIDEST + 1e-9)


def _level_weights(levels: Array) -> Array:
    """Return the probabilities (Q,) that are closer to each level than to any other; their sum is 1."""
    return np.asarray(np.diff(np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [1.0]])))


def _pinball(prediction: QuantilePrediction, y: Array) -> Array:
    """Return the pinball losses (Q, N)."""
    above = y - prediction.values
    return np.asarray(above * (prediction.levels[:, None] - (above < 0.0)))


def _crps_integral(prediction: DensityPrediction, y: Array) -> Array:
    """Return the CRPS (N,), integrated over panels between the quantiles of each data point.

    The tails beyond the outermost quantiles contribute less than 1e-21 of the distance of these quantiles. A panel is
    halved if the two rules disagree, which happens at a kink or jump of F. If too many panels remain, their error is
    bounded: F is non-decreasing, so the integrand is between its values at the ends of a panel. The result is nan if
    this bound exceeds ``_MAX_ERROR`` times the integral.
    """
    edges = np.sort(np.vstack([*(prediction.quantile(p) for p in _PANELS), y]), axis=0)
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


def _crps_mixture(prediction: Predictive, y: Array) -> float:
    """Return the mean CRPS of mixtures of Gaussians (Grimit et al. 2006): E|Y - y| - E|Y - Y'| / 2."""
    weights, means, variances = prediction.weights, prediction.means, prediction.variances
    scores = np.empty(len(y))
    step = max(1, _CHUNK // len(weights))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        to_target = weights @ _mean_distance(y[rows] - means[:, rows], variances[:, rows])
        scores[rows] = to_target - 0.5 * _distance_between(weights, means[:, rows], variances[:, rows])
    return float(scores.mean())


def _distance_between(weights: Array, means: Array, variances: Array) -> Array:
    """Return E|Y - Y'| (N,) of mixtures of Gaussians, weights (S,), means and variances (S, N).

    At most ``_FEW`` components are compared in pairs. Otherwise pairs with the k narrowest components of each data
    point are computed exactly, and quadrature gives the rest; k minimises the total cost.
    """
    if len(weights) <= _FEW:
        return _pairs(weights[:, None], means, variances, len(weights))
    order = np.argsort(variances, axis=0)
    means, variances = (np.take_along_axis(array, order, axis=0) for array in (means, variances))
    sorted_weights, stds = weights[order], np.sqrt(variances)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = (means - _TAIL * stds).min(axis=0)
        high = (means + _TAIL * stds).max(axis=0)
        nodes = np.append(np.ceil(((high - low) / (_STEP * stds)).max(axis=1)), 0.0)
        k = np.arange(len(nodes))
        cost = _PAIR * k * (len(weights) - 0.5 * k) + nodes * (len(weights) - k)
    k_best = int(np.argmin(np.where(np.isfinite(cost), cost, np.inf)))
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


def _mean_distance(mean: Array, variance: Array) -> Array:
    """Return E|X| of Gaussians X with the given means and variances of equal shape; |mean| if the variance is 0."""
    from scipy.special import erf

    std = np.maximum(np.sqrt(variance), 1e-300)
    with np.errstate(over="ignore"):
        z = mean / std
        density = np.exp(-0.5 * z**2)
    return np.asarray(std * density * np.sqrt(2.0 / np.pi) + mean * erf(np.sqrt(0.5) * z))


def pit_error(pit: Array) -> float:
    """Return the area between the empirical distribution function of PIT values (N,) and the diagonal.

    The difference is linear between two neighbouring values, so the area is exact.
    """
    points = np.concatenate([[0.0], np.sort(pit), [1.0]])
    height = np.arange(len(pit) + 1) / len(pit)
    left, right = height - points[:-1], height - points[1:]
    # |line| from u=left to v=right over left - right: (u|u| - v|v|) / 2 is its integral.
    return float(np.sum(left * np.abs(left) - right * np.abs(right)) / 2.0)


def _density_scores(prediction: Predictive | DensityPrediction, y: Array) -> dict[str, float]:
    densities = prediction.logpdf(y)
    return {
        "ll": float(densities.mean()),
        "ll_gaussian": float(prediction.logpdf_gaussian(y).mean()),
        "ll_median": float(np.median(densities)),
        "ll_std": float(densities.std()),
        "ll_prct1": float(np.percentile(densities, 1)),
    }


def _interval_scores(prediction: Predictive | DensityPrediction, y: Array) -> dict[str, float]:
    pit = prediction.cdf(y)
    scores = {"pit_error": pit_error(pit)}
    for level, tail in zip(LEVELS, _INTERVAL_TAILS, strict=True):
        scores[f"coverage{level}"] = float(np.mean((pit >= tail) & (pit <= 1.0 - tail)))
        width = prediction.quantile(1.0 - tail) - prediction.quantile(tail)
        scores[f"width{level}"] = float(width.mean())
    return scores


def _quantile_interval_scores(prediction: QuantilePrediction, y: Array) -> dict[str, float]:
    scores = {}
    for level in LEVELS:
        tail = round((1.0 - level / 100.0) / 2.0, 12)
        if prediction.answers(tail) and prediction.answers(1.0 - tail):
            low, high = prediction.quantile(tail), prediction.quantile(1.0 - tail)
            scores[f"coverage{level}"] = float(np.mean((low <= y) & (y <= high)))
            scores[f"width{level}"] = float((high - low).mean())
    return scores
