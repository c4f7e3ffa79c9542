"""Bayesian linear regression by black-box alpha, without Monte Carlo.

Hernandez-Lobato and others (ICML 2016), supplement, section B. ``linear_energy`` holds the model, the energy and the
symbols; here is its minimum over q, and over the noise variance if that is learned. For 0 < alpha < N and for every
alpha <= 0 the energy at a given noise variance is bounded below and rises to infinity wherever q or a tilted
distribution ceases to be proper, so that a minimum exists. At alpha = N no cavity hangs on q, and beyond it the energy
has no minimum.

The mean is solved for exactly; ``linear_newton`` finds covariance and noise, N d^2 + d^3 operations a step. The search
starts at the answer for alpha = 0 (where that is improper, at a negative alpha, at a narrower one) and goes to an alpha
below -4 in stages, as an interior-point method does: there the energy is nearly flat up to a wall.

Learned noise: with alpha > 1 the energy falls without bound where the noise goes to 0 and the cavities do not, and at
alpha = 1 it may be least there: spread of the weights stands in for noise. What is returned is then a local minimum
below the start; there may be none.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from ep_bench.methods.bb_alpha.linear_energy import EnergyGradient, LinearRegressionProblem, energy, gradient, point
from ep_bench.methods.bb_alpha.linear_newton import NewtonPoint, TrustRegionSearch
from ep_bench.types import Array

Family = Literal["diagonal", "full"]
# A learned noise variance vanishes at this share of the targets' mean square, or of the one learned at alpha = 0.
VANISHED, VANISHED_BESIDE = 1e-10, 1e-4


class LinearPosterior(NamedTuple):
    """The Gaussian q of least energy."""

    mean: Array  # (d,)
    covariance: Array  # (d, d), a diagonal matrix in the diagonal family
    noise_variance: float
    energy: float  # in nats
    trace: tuple[float, ...]  # the energy at the start and after each step, of the last stage
    gradient_norm: float  # by whitened log covariance and log noise variance, over the curvature's (1 - alpha / N) / 2

    @property
    def log_evidence(self) -> float:
        """The energy's estimate of the log evidence, nats: exact for alpha = 0 and a full covariance, a bound at 0."""
        return -self.energy


def fit_linear(
    X: Array,
    y: Array,
    *,
    alpha: float,
    prior_variance: float,
    noise_variance: float | None,
    covariance: Family,
) -> LinearPosterior:
    """Fit q to rows.

    Parameters
    ----------
    X : (N, d) inputs, a constant among them where an intercept is wanted
    y : (N,) targets
    alpha : below N; 0 is variational Bayes, negative values are allowed
    prior_variance : v0 of each weight
    noise_variance : sigma^2; None has it minimise the energy too
    covariance : the family of q, "diagonal" or "full"

    Raises
    ------
    ValueError for arguments out of range, and FloatingPointError where no stationary point is found: with learned noise
    the energy may fall as the noise variance goes to 0.
    """
    problem = _checked(X, y, alpha, prior_variance)
    diagonal = _is_diagonal(covariance)
    with np.errstate(all="ignore"):  # what is not finite is refused by name
        found, trace = _search(problem, noise_variance, diagonal=diagonal)
    T = found.at.T
    return LinearPosterior(
        T @ found.mu, T @ T.T, float(found.at.noise_variance), found.energy, tuple(trace), found.norm
    )  # fmt: skip


def predict_linear(posterior: LinearPosterior, X: Array) -> tuple[Array, Array]:
    """Return mean and variance (n,), noise included, of the targets at X (n, d)."""
    inputs = np.asarray(X, dtype=np.float64)
    d = len(posterior.mean)
    if inputs.ndim != 2 or inputs.shape[1] != d:
        raise ValueError(f"X must have shape (n, {d}), found {inputs.shape}")
    variance = np.einsum("ij,ij->i", inputs @ posterior.covariance, inputs)
    return inputs @ posterior.mean, variance + posterior.noise_variance


def linear_energy(
    X: Array,
    y: Array,
    *,
    alpha: float,
    prior_variance: float,
    noise_variance: float,
    mean: Array,
    covariance: Array,
) -> tuple[float, EnergyGradient]:
    """Return the energy of any q = N(mean (d,), covariance (d, d)), and its gradient.

    The gradient is by mean (d,), by covariance (d, d), symmetric, and by the noise variance, each with the others held.

    Raises
    ------
    ValueError for arguments out of range or a covariance that is not positive definite, FloatingPointError where a
    cavity or a tilted distribution is improper.
    """
    problem = _checked(X, y, alpha, prior_variance)
    noise = _positive("noise_variance", noise_variance)
    values, vectors = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    if not values.min() > 0.0:
        raise ValueError(f"covariance must be positive definite, found an eigenvalue of {values.min():.6g}")
    at = point(problem, vectors * np.sqrt(values), noise)
    if at is None:
        raise FloatingPointError(f"alpha = {alpha:g}: a cavity or a tilted distribution of this q is improper")
    inverse = np.asarray(np.linalg.inv(at.T), dtype=np.float64)
    mu = np.asarray(inverse @ np.asarray(mean, dtype=np.float64))
    slope = gradient(problem, at, mu)
    # by A the mean is held and the root moves: V = T exp(A) T', so dV = T dA T'
    by_covariance = inverse.T @ slope.covariance @ inverse
    return energy(problem, at, mu), EnergyGradient(inverse.T @ slope.mean, by_covariance, slope.noise / noise)


def _search(
    problem: LinearRegressionProblem, noise_variance: float | None, *, diagonal: bool
) -> tuple[NewtonPoint, list[float]]:
    """Return the stationary point and the energies on the way, by stages in alpha from the variational answer."""
    least = None
    if noise_variance is None:
        root, noise = _learned(problem, diagonal=diagonal)
        least = VANISHED_BESIDE * noise
    else:
        noise = _positive("noise_variance", noise_variance)
        root = _variational_root(problem, noise, diagonal=diagonal)
    for alpha in _stages(problem.alpha):
        stage = problem._replace(alpha=alpha)
        search = TrustRegionSearch(stage, diagonal=diagonal, least_noise=least)
        found, trace = search.descend(_start(search, stage, root, noise))
        root, noise = found.at.T, found.at.noise_variance
    return found, trace


def _checked(X: Array, y: Array, alpha: float, prior_variance: float) -> LinearRegressionProblem:
    """Return the problem, or raise ValueError."""
    inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if inputs.ndim != 2 or 0 in inputs.shape:
        raise ValueError(f"X must have shape (N, d) with a row and a column, found {inputs.shape}")
    if targets.shape != (len(inputs),):
        raise ValueError(f"y must have shape ({len(inputs)},), one target a row of X, found {targets.shape}")
    if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
        raise ValueError("X and y must be finite")
    if not (math.isfinite(alpha) and alpha < len(targets)):
        raise ValueError(
            f"alpha must be finite and below the number of rows, {len(targets)}, found {alpha:g}: "
            "from there on no cavity distribution hangs on q as it should and the energy has no minimum"
        )
    return LinearRegressionProblem(inputs, targets, float(alpha), _positive("prior_variance", prior_variance))


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be positive and finite, found {value:g}")
    return float(value)


def _is_diagonal(covariance: str) -> bool:
    if covariance not in get_args(Family):
        raise ValueError(f"covariance must be one of {', '.join(get_args(Family))}, found {covariance!r}")
    return covariance == "diagonal"


def _variational_root(problem: LinearRegressionProblem, noise: float, *, diagonal: bool) -> Array:
    """Return the root of the covariance at alpha = 0: the posterior's (4a), or that of its precisions' diagonal."""
    X, prior = problem.X, problem.prior_variance
    if diagonal:
        return np.diag(1.0 / np.sqrt(1.0 / prior + np.square(X).sum(axis=0) / noise))
    missing = max(X.shape[1] - len(X), 0)
    triangle = np.vstack([np.linalg.qr(X, mode="r"), np.zeros((missing, X.shape[1]))])
    _, values, vectors = np.linalg.svd(triangle)
    return np.asarray(vectors.T / np.sqrt(1.0 / prior + values**2 / noise))


def _learned(problem: LinearRegressionProblem, *, diagonal: bool) -> tuple[Array, float]:
    """Return covariance root and noise variance of the least energy at alpha = 0."""
    noise = float(np.mean(problem.y**2))
    if noise == 0.0:
        raise FloatingPointError("all targets are 0: no noise variance has the least energy; give noise_variance")
    variational = problem._replace(alpha=0.0)
    search = TrustRegionSearch(variational, diagonal=diagonal, least_noise=VANISHED * noise)
    for _ in range(10):  # expectation-maximisation, quick from afar
        fit = _start(search, variational, _variational_root(variational, noise, diagonal=diagonal), noise)
        noise *= 1.0 - 2.0 * fit.slope[-1] / math.sqrt(len(problem.y))
    found, _ = search.descend(fit)
    return found.at.T, found.at.noise_variance


def _stages(alpha: float) -> list[float]:
    """Return the values of alpha to go through, each five times the one before."""
    stages = [-4.0]
    while alpha < 5.0 * stages[-1]:
        stages.append(5.0 * stages[-1])
    return [*stages, alpha] if alpha < -4.0 else [alpha]


def _start(search: TrustRegionSearch, problem: LinearRegressionProblem, root: Array, noise: float) -> NewtonPoint:
    """Return the fit at a root of the variational answer; at a negative alpha of one so narrow that it is proper."""
    if problem.alpha < 0.0:
        T = np.asarray(root)
        root = T * np.sqrt(_widening(problem, T, noise))
    fit = search.fit(root, noise)
    if fit is None or not math.isfinite(fit.energy):
        raise FloatingPointError(f"alpha = {problem.alpha:g}: no proper tilted distributions to start from")
    return fit


def _widening(problem: LinearRegressionProblem, T: Array, noise: float) -> Array:
    """Return what scales the squared columns (d,) of T so that no tilted distribution is improper, alpha negative.

    The cavity's covariance is given T T' times at most 1, so that alpha s >= -noise / 2; q's follows from it.
    """
    most = float(np.square(problem.X @ T).sum(axis=1).max())
    narrow = min(1.0, 0.5 * noise / (-problem.alpha * most)) if most > 0.0 else 1.0
    cavity = narrow * np.square(T).sum(axis=0) / problem.prior_variance
    return np.asarray(narrow * (1.0 - problem.beta) / (1.0 - problem.beta * cavity))
