"""Scores of predictive distributions: each from its definition, in the target's original units.

Every score is computed from what a prediction answers, with no kernel shared with the methods that it judges. The
continuous ranked probability score of mixtures of Gaussians has a closed form, that of other densities is integrated,
that of quantiles comes from the pinball losses. (The library scoringrules, which the tests hold all this against,
compiles for six seconds when it is imported, too much for a process that is replaced whenever a cell goes wrong.)
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
    QuantilePrediction,
)
from ep_bench.types import Array, PointPrediction, Predictive

LEVELS = (50, 90, 95)
_OF_DEVIATION = frozenset({"ll_gaussian", "crps", *(f"width{level}" for level in LEVELS)})
_CHUNK = 2**14  # numbers in the largest temporary of a CRPS, about; small enough for a processor's cache
_WIDEST = 0.05  # probability that one quantile may stand for in the CRPS

# The integral of the CRPS: panels between these quantiles and the target, halved while two rules disagree.
_TAILS = tuple(8.0**-k for k in range(12, 0, -1))
_PANELS = (*_TAILS, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, *(1.0 - tail for tail in reversed(_TAILS)))
_ORDER = 20  # of the Clenshaw-Curtis rule; half of it, on every other node, is the second opinion
_AGREEMENT = 1e-8  # of the rules on a panel, relative to the whole integral
_HALVINGS, _MOST_PANELS = 60, 1024  # of a panel; of a row that are still open
_DOUBT = 1e-6  # the most that the panels still open may leave unknown, relative to the whole integral

# The CRPS of a mixture: up to so many components all pairs, of more the pairs of the narrowest and a sum over nodes.
_FEW = 64
_STEP = 0.7  # between two nodes, in deviations of the narrowest component that the sum is over
_TAIL = 7.0  # deviations beyond the outermost means
_PAIR = 2.0  # cost of a pair's distance, in values of a normal distribution function


def load() -> None:
    """Import what scoring rests on, so that no cell is charged with it."""
    importlib.import_module("scipy.special")


def score(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return the scores of test rows with targets y (N,), named as in results.csv; original units.

    Of classes (`class_scores`) these are others than of numbers.

    ``rmse`` and ``mae`` judge the mean; ``ll`` is the mean log density of the distribution given, ``ll_gaussian`` that
    of the Gaussian with the same moments; ``pit_error`` is the mean absolute difference between the distribution
    function of the PIT values and the uniform one, 0 (calibrated) to 0.5. A point prediction has only the scores
    that need no density; quantiles have beside them the coverage and width of the central intervals whose ends they
    know, and the CRPS where they are dense. The CRPS of a density that cannot be vouched for (`crps`) is left out.
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
    # A deviation may be infinite, as a Student-t's; the scores that rest on it are then left out.
    return {key: value for key, value in scores.items() if np.isfinite(value) or key not in _OF_DEVIATION}


def class_scores(prediction: Classification, y: Array) -> dict[str, float]:
    """Return ``error_rate`` and, where there are probabilities, ``ll`` and ``brier`` of rows of the classes y (N,).

    ``ll`` is the mean log probability of the class (nats), -inf where a class that is there had probability 0;
    ``error_rate`` the share of rows whose most probable class, the first of equals, is not theirs; ``brier`` the mean
    over rows of sum_c (p_c - 1[y = c])^2 over all C classes (Brier 1950), 0 to 2. With two classes that is twice the
    square of one class's probability less its indicator, which others call by the same name.
    """
    scores = {"error_rate": float(np.mean(prediction.mode() != prediction.classes[prediction.indices(y)]))}
    if isinstance(prediction, ClassLabels):
        return scores
    apart = prediction.probabilities.copy()
    apart[np.arange(len(apart)), prediction.indices(y)] -= 1.0
    return scores | {"ll": float(prediction.logpdf(y).mean()), "brier": float((apart**2).sum(axis=1).mean())}


def zero_probability_reason(prediction: AnyPrediction, y: Array, names: Sequence[str]) -> str:
    """Return which classes y (N,) had probability 0, in words for the reason of a row; empty where none had."""
    if not isinstance(prediction, ClassProbabilities):
        return ""
    rows = np.isneginf(prediction.logpdf(y))
    lost = ", ".join(names[index] for index in np.unique(prediction.indices(y)[rows]))
    return f"{rows.sum()} of {len(rows)} test rows are of classes that it gives probability 0: {lost}" if lost else ""


def by_row(prediction: AnyPrediction, y: Array) -> dict[str, Array]:
    """Return of each test row with target y (N,) the absolute error ``ae`` and, with a density, its logarithm ``ll``.

    Original units; their means are the scores ``mae`` and ``ll``. Of classes ``error``, 1 where the class is wrong and
    0 where it is right, stands for ``ae``; its mean is ``error_rate``.
    """
    scores: dict[str, Array] = {}
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        scores["error"] = (prediction.mode() != prediction.classes[prediction.indices(y)]).astype(np.float64)
    else:
        scores["ae"] = np.abs(y - prediction.mean())
    if isinstance(prediction, Predictive | DensityPrediction | ClassProbabilities):
        scores["ll"] = prediction.logpdf(y)
    return scores


def main_scores(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``rmse`` and, where there is a density, ``ll``, of rows with targets y (N,); original units.

    Of classes ``error_rate`` stands for ``rmse``.
    """
    if isinstance(prediction, ClassProbabilities | ClassLabels):
        return {name: value for name, value in class_scores(prediction, y).items() if name != "brier"}
    scores = {"rmse": float(np.sqrt(np.mean((y - prediction.mean()) ** 2)))}
    if isinstance(prediction, Predictive | DensityPrediction):
        scores["ll"] = float(prediction.logpdf(y).mean())
    return scores


def score_training(prediction: AnyPrediction, y: Array) -> dict[str, float]:
    """Return ``train_rmse`` and, where there is a density, ``train_ll`` of the training rows; of classes the latter."""
    scores = main_scores(prediction, y)
    return {f"train_{name}": value for name, value in scores.items() if name != "error_rate"}


def joined(parts: Sequence[Mapping[str, float]], shares: Array) -> dict[str, float]:
    """Return the training scores of all rows from those of blocks of them, ``shares`` the blocks' parts of the rows."""
    scores = {name: float(shares @ np.array([part[name] for part in parts])) for name in parts[0]}
    if "train_rmse" in scores:
        scores["train_rmse"] = float(np.sqrt(shares @ np.array([part["train_rmse"] ** 2 for part in parts])))
    return scores


def crps(prediction: Predictive | DensityPrediction | QuantilePrediction, y: Array) -> float:
    """Return the mean continuous ranked probability score, in the unit of y.

    Of a mixture of Gaussians and of a density it is the integral of (F(x) - 1[x >= y])^2 over x, to a relative 1e-6 or
    better; nan where a density's distribution function F keeps that from being vouched for, as one with very many
    jumps does. Of quantiles it is
    twice the mean pinball loss, each level weighted by the probability that is nearer to it than to any other level;
    where `is_dense`, that is within 1 % of the integral for a Gaussian.
    """
    if isinstance(prediction, QuantilePrediction):
        return float(2.0 * (_level_weights(prediction.levels) @ _pinball(prediction, y)).mean())
    if isinstance(prediction, DensityPrediction):
        return float(_crps_integral(prediction, y).mean())
    return _crps_mixture(prediction, y)


def is_dense(prediction: QuantilePrediction) -> bool:
    """Tell whether quantiles carry a CRPS: no level stands for more than 0.05 of probability, as 20 midpoints do."""
    return bool(_level_weights(prediction.levels).max() <= _WIDEST + 1e-9)


def _level_weights(levels: Array) -> Array:
    """Return the probability (Q,) that is nearer to each level than to any other; they sum to 1."""
    return np.asarray(np.diff(np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [1.0]])))


def _pinball(prediction: QuantilePrediction, y: Array) -> Array:
    """Return the pinball losses (Q, N)."""
    above = y - prediction.values
    return np.asarray(above * (prediction.levels[:, None] - (above < 0.0)))


def _crps_integral(prediction: DensityPrediction, y: Array) -> Array:
    """Return the CRPS (N,), panel by panel between quantiles, which follow every row's own location and scale.

    Beyond the outermost quantiles, less than 1e-21 of their distance is left out. A panel on which the rules disagree
    for a row (a kink or a jump of the distribution function lies in it) is halved for that row. Where too many panels
    stay open, a row is nan unless they leave unknown less than a share of ``_DOUBT``: F ascends, so that on a panel the
    integrand lies between its values at the ends.
    """
    edges = np.sort(np.vstack([*(prediction.quantile(p) for p in _PANELS), y]), axis=0)
    if not np.isfinite(edges).all():
        raise ValueError("a quantile or a target is not finite")
    left, right = edges[:-1], edges[1:]
    total = np.zeros(len(y))
    for halving in range(_HALVINGS + 1):
        value, check, unknown = _panels(prediction, y, left, right)
        whole = total + value.sum(axis=0)
        open_ = np.abs(value - check) > _AGREEMENT * whole
        most = int(open_.sum(axis=0).max())
        if not most or 2 * most > _MOST_PANELS or halving == _HALVINGS:
            break
        total += np.where(open_, 0.0, value).sum(axis=0)
        left, right = _halved(left, right, open_, most)
    doubt = np.where(open_, unknown, 0.0).sum(axis=0)
    return np.where(doubt <= _DOUBT * whole, whole, np.nan)


def _halved(left: Array, right: Array, open_: NDArray[np.bool_], most: int) -> tuple[Array, Array]:
    """Return the halves (2 K, N) of the open panels among (P, N), K = ``most`` of them; empty where a row has fewer."""
    order = np.argsort(~open_, axis=0, kind="stable")[:most]
    right = np.take_along_axis(right, order, axis=0)
    left = np.where(np.take_along_axis(open_, order, axis=0), np.take_along_axis(left, order, axis=0), right)
    middle = left + 0.5 * (right - left)
    return np.concatenate([left, middle]), np.concatenate([middle, right])


def _panels(prediction: DensityPrediction, y: Array, left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return the integrals (P, N) of (F(x) - 1[x >= y])^2 over panels from left to right (P, N), by both rules.

    The third array is how far from the truth they may be at most, since F ascends.

    The ends of a panel are nodes: a kink near one, between it and the next node, makes the rules disagree as well.
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
        unknown = 2.0 * np.abs(squares[:, 0] - squares[:, -1])
        results.append(half[rows] * np.stack([fine, coarse, unknown]))
    fines, coarses, unknowns = np.concatenate(results, axis=1)
    return fines, coarses, unknowns


@cache
def _clenshaw_curtis(n: int) -> Array:
    """Return the weights (n + 1,) of the rule with nodes cos(pi j / n) on [-1, 1], n even.

    w_j = c_j / n (1 - sum_k b_k cos(2 pi j k / n) / (4 k^2 - 1)), k to n / 2; b is 2, 1 at the last k; c is 2, 1 at the
    ends.
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
        apart = weights @ _mean_distance(y[rows] - means[:, rows], variances[:, rows])
        scores[rows] = apart - 0.5 * _distance_between(weights, means[:, rows], variances[:, rows])
    return float(scores.mean())


def _distance_between(weights: Array, means: Array, variances: Array) -> Array:
    """Return E|Y - Y'| (N,) of mixtures of Gaussians, weights (S,), means and variances (S, N).

    Few components are compared pair by pair. Of many, the narrowest k of each row are compared with all others, and the
    rest is an integral of something as smooth as they are; k is where the sum of both is cheapest.
    """
    if len(weights) <= _FEW:
        return _pairs(weights[:, None], means, variances, len(weights))
    order = np.argsort(variances, axis=0)
    means, variances = (np.take_along_axis(array, order, axis=0) for array in (means, variances))
    sorted_weights, deviations = weights[order], np.sqrt(variances)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = (means - _TAIL * deviations).min(axis=0)
        high = (means + _TAIL * deviations).max(axis=0)
        nodes = np.append(np.ceil(((high - low) / (_STEP * deviations)).max(axis=1)), 0.0)
        k = np.arange(len(nodes))
        cost = _PAIR * k * (len(weights) - 0.5 * k) + nodes * (len(weights) - k)
    k_best = int(np.argmin(np.where(np.isfinite(cost), cost, np.inf)))
    between = _pairs(sorted_weights, means, variances, k_best)
    if nodes[k_best]:
        rest = sorted_weights[k_best:], means[k_best:], deviations[k_best:]
        between += _distance_by_nodes(*rest, low, high, int(nodes[k_best]))
    return between


def _pairs(weights: Array, means: Array, variances: Array, k: int) -> Array:
    """Return the sum (N,) of w_i w_j E|X_i - X_j| over all i and j of which one at least is below k."""
    between = np.zeros(means.shape[1])
    for i in range(k):
        distances = _mean_distance(means[i] - means[i + 1 :], variances[i] + variances[i + 1 :])
        others = (weights[i + 1 :] * distances).sum(axis=0)
        between += weights[i] * (2.0 * others + weights[i] * 2.0 * np.sqrt(variances[i] / np.pi))
    return between


def _distance_by_nodes(weights: Array, means: Array, deviations: Array, low: Array, high: Array, n: int) -> Array:
    """Return the sum (N,) of w_i w_j E|X_i - X_j|, which is 2 int F(x) (F(inf) - F(x)) dx, F the sum of w_i Phi_i.

    By the trapezoidal rule from low to high (N,) in n steps of h. Its error is that of aliasing: the spectrum of a
    product of two Gaussian distribution functions, both of a deviation of s or more, falls as exp(-(s k)^2 / 4), which
    at k = 2 pi / h is exp(-(pi s / h)^2), below 2e-9 for h = 0.7 s, and it is divided by k^2 before it counts.
    """
    from scipy.special import ndtr

    step, whole = (high - low) / n, weights.sum(axis=0)
    total = np.zeros(len(low))
    for i in range(n + 1):
        below = (weights * ndtr((low + i * step - means) / deviations)).sum(axis=0)
        total += below * (whole - below)
    return np.asarray(2.0 * step * total)


def _mean_distance(mean: Array, variance: Array) -> Array:
    """Return E|X| of Gaussians X, where the variance is 0 the distance of the mean itself."""
    from scipy.special import erf

    deviation = np.maximum(np.sqrt(variance), 1e-300)
    with np.errstate(over="ignore"):
        z = mean / deviation
        density = np.exp(-0.5 * z**2)
    return np.asarray(deviation * density * np.sqrt(2.0 / np.pi) + mean * erf(np.sqrt(0.5) * z))


def pit_error(pit: Array) -> float:
    """Return the area between the empirical distribution function of PIT values (N,) and the diagonal, exactly.

    Between two neighbouring values the difference is a straight line, whose absolute area is a triangle or two.
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
    for level in LEVELS:
        tail = (1.0 - level / 100.0) / 2.0
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
