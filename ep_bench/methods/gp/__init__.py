"""Gaussian-process regression, exact, with the hyperparameters of highest marginal posterior density (type-II MAP).

Rasmussen and Williams (2006), chapters 2 and 5. This is the baseline GA of Jylanki et al. (2011, section 6.2), and with
``kernel: nn`` GP and GP-ARD of Jylanki et al. (2014, section 4.4). Targets are y = f(x) + noise. f has mean 0 and a
covariance from ``ep_bench.covariances``; the noise has variance sigma^2. At fixed hyperparameters the posterior is
Gaussian:

    f(x) | y ~ N(k' alpha, k(x, x) - k' C^-1 k),   k = (k(x, x_1), ..., k(x, x_N)),   C = K + sigma^2 I = L L',

equations (2.25) and (2.26). The logarithms of the hyperparameters are learned by L-BFGS with analytic gradients, from
several starting points; the best result counts. Only sigma^2 is added to the diagonal of C. If C is not positive
definite at any starting point, the fit raises an error with the hyperparameters. With ``duplicates: merge`` data points
with the same inputs are one point (``covariances.replicates``). Evidence and predictions do not change, C is smaller.

Hyperparameters that are set as options are fixed, in standardised units unless ``standardize: false`` is set.

``covariances.exact_evidence`` has the evidence, its gradient and the table of symbols.

Deviation: the priors of the papers are flat on the scale of logarithms. The default here are wide Gaussians
(``covariances.hyperparameters``); ``prior: none`` is the choice of the papers.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ep_bench.covariances import Covariance
from ep_bench.covariances.exact_evidence import GPProblem, evidence, factorised
from ep_bench.covariances.gaussian_process_config import GaussianProcessConfig
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import learn, prepared, warn_of_small_noise
from ep_bench.covariances.protocol import blocks, rectangle
from ep_bench.covariances.replicates import Replicates, merge, unbounded_evidence, warn_of_repeats
from ep_bench.numerics import symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

BLOCK = 2**23  # covariances between test and training points in memory at once


class Config(GaussianProcessConfig):
    """Options of exact regression."""


class State(NamedTuple):
    """The posterior of f, in the units of the training data (usually standardised)."""

    covariance: Covariance
    hyper: Hyperparameters
    theta: Array  # (P,) logarithms of the hyperparameters, the noise variance last
    X: Array  # (N, d) training inputs
    factor: Array  # (N, N) L in its lower triangle
    weights: Array  # (N,) alpha
    log_evidence: float  # nats, without the prior of the hyperparameters
    n_iterations: int  # of the best search; 0 if nothing was learned
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return self.hyper.values(self.theta)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per iteration: ``objective`` (the negative log posterior density of
    the logarithms of the hyperparameters up to a constant, nats, divided by n), ``log_evidence`` (nats) and
    ``noise_deviation`` (the standard deviation of the noise).

    Warns with scikit-learn's ConvergenceWarning if the search reached its maximum number of iterations or a variance
    reached a limit of the search, and with UserWarning if inputs repeat and are not merged, if they make the evidence
    unbounded, or if the noise variance is below 1e-6 of the variance of the targets. Raises FloatingPointError if no
    start has a finite evidence, and ValueError if fixed values do not fit the number of inputs.
    """
    problem = problem_of(train, config)
    hyper = problem.hyper
    if not (config.optimize and hyper.free.any()):
        return _state(problem, hyper.start(), 0, True), {}
    repeats = unbounded_evidence(train.X, train.y) if np.isnan(hyper.fixed[-1]) else ""
    if not repeats and config.duplicates == "keep":
        warn_of_repeats(train.X)
    found = learn(partial(evidence, problem), hyper, config, rng, repeats=repeats)
    warn_of_small_noise(float(found.point[-1]), hyper, train.y)
    return _state(problem, found.point, found.iterations, found.converged), _trace(found, hyper, len(train.y))


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return Gaussians at inputs X (n, d), standardised units, noise included; ``rng`` is not used."""
    mean, variance = latent(state, X)
    return Predictive.gaussian(mean, variance + np.exp(state.theta[-1]))


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at inputs X (n, d), standardised units, without noise."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    theta = state.theta[:-1]
    mean, variance = np.empty(len(X)), state.covariance.diagonal(theta, X)
    for rows in blocks(len(X), len(state.X), BLOCK):
        k = rectangle(len(X[rows]), len(state.X))
        state.covariance.fill(theta, X[rows], k, state.X)
        mean[rows] = k @ state.weights
        k = symmetric.half_solve(state.factor, k)
        variance[rows] -= np.einsum("ij,ij->i", k, k)
    return mean, np.maximum(variance, 0.0)  # rounding errors may be below 0 next to a training point


def problem_of(train: Rows, config: Config) -> GPProblem:
    """Return the data X (n, d), y (n,) with covariance, hyperparameters and workspace. Raises as ``prepared`` does."""
    X, y, covariance, hyper = prepared(train, config, "noise_variance")
    replicates = Replicates.none(len(y))
    if config.duplicates == "merge":
        X, y, replicates = merge(X, y)
    return GPProblem(X, y, covariance, hyper, symmetric.square(len(y)), replicates)


def _state(problem: GPProblem, theta: Array, iterations: int, converged: bool) -> State:
    factor, weights, log_evidence = factorised(problem, theta)
    return State(
        problem.covariance, problem.hyper, theta, problem.X, factor, weights, log_evidence, iterations, converged
    )


def _trace(found: Optimum, hyper: Hyperparameters, n: int) -> dict[str, list[float]]:
    return {
        "objective": [value / n for _, value in found.path],
        "log_evidence": [-value - hyper.log_prior(theta)[0] for theta, value in found.path],
        "noise_deviation": [float(np.exp(0.5 * theta[-1])) for theta, _ in found.path],
    }


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the seconds of a fit on one core; an evaluation costs N^3 and N^2 d operations."""
    evaluation = 1e-3 + 4e-11 * n**3 + n**2 * (3e-9 + 6e-10 * d)
    return evaluation * (config.starts * min(config.steps, 30) if config.optimize else 1)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that a configuration corresponds to."""
    values = (config.magnitude, config.bias_variance, config.weight_variance, config.noise_variance)
    if config.kernel != "nn" or config.prior != "none" or not config.optimize or any(values):
        return ()
    return ("GP-ARD",) if config.ard else ("GP",)


METHOD = Method(
    name="gp",
    equality="stable",
    version=1,
    title="Gaussian process",
    paper="Rasmussen and Williams (2006)",
    density="Gaussian",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"starts": 1, "steps": 3, "lengthscale": None, "weight_variance": None},
    published=_published,
    space={"kernel": {"choice": ["se", "matern32", "matern52", "nn"]}},
)
