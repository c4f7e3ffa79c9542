"""Bayesian linear regression by black-box alpha, without Monte Carlo.

Hernandez-Lobato et al. (ICML 2016), supplement, section B. ``linear_energy`` has the model, the energy and the symbols;
this module minimises it over q and, if learned, over the noise variance. For a fixed noise variance and alpha < N
the energy is bounded below and rises to infinity where q or a tilted distribution becomes improper, so that a minimum
exists. At alpha = N no cavity depends on q; for larger alpha the energy has no minimum.

The mean is solved for exactly. ``linear_newton`` finds covariance and noise variance, at N d^2 + d^3 operations per
step. The search starts at the solution for alpha = 0, or, for negative alpha where that is improper, at a narrower
covariance. Alpha below -4 is reached in stages, as in an interior-point method, because the energy is nearly flat up to
the border of the proper region.

Learned noise: for alpha > 1 the energy has no lower bound as the noise variance goes to 0 while the cavities do not
shrink. At alpha = 1 it can be lowest there, because the spread of the weights replaces the noise. The result is then a
local minimum below the starting point; there may be none.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ep_bench.methods.bb_alpha.linear_energy import LinearRegressionProblem
from ep_bench.methods.bb_alpha.linear_newton import NewtonPoint, TrustRegionSearch
from ep_bench.predictions import Predictive
from ep_bench.types import Array

Family = Literal["diagonal", "full"]
# A learned noise variance counts as 0 below this fraction of the mean squared target, or of its value at alpha = 0.
VANISHED, VANISHED_FROM_ZERO_ALPHA = 1e-10, 1e-4


class LinearPosterior(NamedTuple):
    """The Gaussian q of minimum energy, standardised units."""

    mean: Array  # (d,)
    covariance: Array  # (d, d), a diagonal matrix for the diagonal family
    noise_variance: float
    energy: float  # nats
    trace: tuple[float, ...]  # energies at the start and after each step of the last stage
    gradient_norm: float  # in the coordinates of ``linear_newton``, divided by (1 - alpha / N) / 2

    @property
    def log_evidence(self) -> float:
        """Estimate of the log evidence, nats: a lower bound for alpha = 0, exact with a full covariance."""
        return -self.energy

    def predict(self, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG002 - no draws are needed
        """Return Gaussian predictive distributions at inputs X (n, d), noise included.

        Raises ValueError if X has another shape.
        """
        inputs = np.asarray(X, dtype=np.float64)
        d = len(self.mean)
        if inputs.ndim != 2 or inputs.shape[1] != d:
            raise ValueError(f"X must have shape (n, {d}), found {inputs.shape}")
        variance = np.einsum("ij,ij->i", inputs @ self.covariance, inputs)
        return Predictive.gaussian(inputs @ self.mean, variance + self.noise_variance)


def fit_linear(
    X: Array,
    y: Array,
    *,
    alpha: float,
    prior_variance: float,
    noise_variance: float | None,
    covariance: Family,
) -> LinearPosterior:
    """Fit q to data points.

    Parameters
    ----------
    X : (N, d) inputs; include a constant input for an intercept
    y : (N,) targets
    alpha : power, below N; 0 is variational inference, negative values are allowed
    prior_variance : variance v0 of each weight
    noise_variance : sigma^2; None learns it by minimising the energy
    covariance : the family of q, "diagonal" or "full"

    Raises
    ------
    ValueError if the energy has no minimum because alpha is too large; FloatingPointError if no stationary point is
    found. With learned noise the energy may fall as the noise variance goes to 0.
    """
    if alpha >= len(y):
        raise ValueError(f"alpha must be below the number of data points, {len(y)}, found {alpha:g}")
    problem, diagonal = LinearRegressionProblem(X, y, float(alpha), float(prior_variance)), covariance == "diagonal"
    with np.errstate(all="ignore"):  # values that are not finite raise errors with their name
        found, trace = _search(problem, noise_variance, diagonal=diagonal)
    T = found.at.T
    return LinearPosterior(
        T @ found.mu, T @ T.T, float(found.at.noise_variance), found.energy, tuple(trace), found.norm
    )  # fmt: skip


def _search(
    problem: LinearRegressionProblem, noise_variance: float | None, *, diagonal: bool
) -> tuple[NewtonPoint, list[float]]:
    """Return the stationary point and the energies of the last stage, from the solution for alpha = 0."""
    vanished = None
    if noise_variance is None:
        root, noise = _learned(problem, diagonal=diagonal)
        vanished = VANISHED_FROM_ZERO_ALPHA * noise
    else:
        noise = float(noise_variance)
        root = _variational_root(problem, noise, diagonal=diagonal)
    for alpha in _stages(problem.alpha):
        stage = problem._replace(alpha=alpha)
        search = TrustRegionSearch(stage, diagonal=diagonal, vanished_noise=vanished)
        found, trace = search.descend(_start(search, stage, root, noise))
        root, noise = found.at.T, found.at.noise_variance
    return found, trace


def _variational_root(problem: LinearRegressionProblem, noise: float, *, diagonal: bool) -> Array:
    """Return a root (d, d) of the covariance at alpha = 0: the posterior's (4a), or that of its diagonal precisions."""
    X, prior = problem.X, problem.prior_variance
    if diagonal:
        return np.diag(1.0 / np.sqrt(1.0 / prior + np.square(X).sum(axis=0) / noise))
    missing = max(X.shape[1] - len(X), 0)
    triangle = np.vstack([np.linalg.qr(X, mode="r"), np.zeros((missing, X.shape[1]))])
    _, values, vectors = np.linalg.svd(triangle)
    return np.asarray(vectors.T / np.sqrt(1.0 / prior + values**2 / noise))


def _learned(problem: LinearRegressionProblem, *, diagonal: bool) -> tuple[Array, float]:
    """Return covariance root (d, d) and noise variance of minimum energy at alpha = 0."""
    noise = float(np.mean(problem.y**2))
    if noise == 0.0:
        raise FloatingPointError(
            "all targets are 0: the energy has no minimum over the noise variance; set noise_variance"
        )
    variational = problem._replace(alpha=0.0)
    search = TrustRegionSearch(variational, diagonal=diagonal, vanished_noise=VANISHED * noise)
    for _ in range(10):  # expectation-maximisation, fast far from the solution
        fit = _start(search, variational, _variational_root(variational, noise, diagonal=diagonal), noise)
        noise *= 1.0 - 2.0 * fit.slope[-1] / math.sqrt(len(problem.y))
    found, _ = search.descend(fit)
    return found.at.T, found.at.noise_variance


def _stages(alpha: float) -> list[float]:
    """Return the sequence of alphas, each five times its predecessor, that ends at ``alpha``."""
    stages = [-4.0]
    while alpha < 5.0 * stages[-1]:
        stages.append(5.0 * stages[-1])
    return [*stages, alpha] if alpha < -4.0 else [alpha]


def _start(search: TrustRegionSearch, problem: LinearRegressionProblem, root: Array, noise: float) -> NewtonPoint:
    """Return the point of a variational root (d, d), narrowed for negative alpha until it is proper."""
    if problem.alpha < 0.0:
        T = np.asarray(root)
        root = T * np.sqrt(_narrowing(problem, T, noise))
    fit = search.fit(root, noise)
    if fit is None or not math.isfinite(fit.energy):
        raise FloatingPointError(
            f"alpha = {problem.alpha:g}: the tilted distributions at the starting point are improper"
        )
    return fit


def _narrowing(problem: LinearRegressionProblem, T: Array, noise: float) -> Array:
    """Return factors (d,) of the squared columns of T that make all tilted distributions proper, alpha negative.

    They scale the covariance of the cavity so that alpha s >= -noise / 2; the covariance of q follows from it.
    """
    largest = float(np.square(problem.X @ T).sum(axis=1).max())
    narrow = min(1.0, 0.5 * noise / (-problem.alpha * largest)) if largest > 0.0 else 1.0
    cavity = narrow * np.square(T).sum(axis=0) / problem.prior_variance
    return np.asarray(narrow * (1.0 - problem.beta) / (1.0 - problem.beta * cavity))
