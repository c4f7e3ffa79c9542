"""Gaussian-process regression, exact, with the hyperparameters of highest marginal posterior density (type-II MAP).

Rasmussen and Williams (2006), chapters 2 and 5; the baseline GA of Jylanki et al. (2011, section 6.2), with ``kernel:
nn`` GP and GP-ARD of Jylanki et al. (2014, section 4.4). Targets y = f(x) + noise, f of mean 0 with a covariance of
``ep_bench.covariances``, noise of variance sigma^2. At given hyperparameters all is Gaussian and in closed form:

    f(x) | y ~ N(k' alpha, k(x, x) - k' C^-1 k),   k = (k(x, x_1), ..., k(x, x_N)),   C = K + sigma^2 I = L L',

equations (2.25) and (2.26). Hyperparameters are learned on the scale of their logarithms by L-BFGS with analytic
gradients, from several starting points, of which the best end counts; nothing is added to the diagonal of C but
sigma^2. Where no starting point has a positive definite C the fit is an error that names the hyperparameters. Values
that are given are held, in standardised units unless ``standardize: false`` is set.

Module ``evidence``: the evidence and its gradient, with the table of symbols.

Deviation: the papers' priors are flat on the scale of logarithms; the default is a wide Gaussian each
(``covariances.hyperparameters``), ``prior: none`` is theirs.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ep_bench.covariances import Covariance
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import learn, prepared
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.covariances.protocol import blocks, rectangle
from ep_bench.methods.gp.evidence import GPProblem, evidence, factorised
from ep_bench.numerics import symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

BLOCK = 2**23  # covariances of test with training rows that are kept at once


class Config(GaussianProcessConfig):
    """Options of exact regression."""


class State(NamedTuple):
    """The posterior of f, in the units that the method sees."""

    covariance: Covariance
    hyper: Hyperparameters
    theta: Array  # (P,) logarithms of the hyperparameters, the noise variance last
    X: Array  # (N, d) training rows
    factor: Array  # (N, N) L in its lower triangle
    weights: Array  # (N,) alpha
    log_evidence: float  # nats, without the hyperparameters' prior
    n_iterations: int  # of the search that ended best; 0 where nothing was learned
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return self.hyper.values(self.theta)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an iteration of ``objective`` (the negative log posterior density of the
    hyperparameters' logarithms but for a constant, nats, divided by n), ``log_evidence`` (nats) and
    ``noise_deviation``. Warns by scikit-learn's ConvergenceWarning where the search ended at its limit of steps or a
    variance at a limit of the search. Raises FloatingPointError where no start has a finite evidence, ValueError where
    values that are given do not fit the inputs.
    """
    problem = problem_of(train, config)
    hyper = problem.hyper
    if not (config.optimize and hyper.free.any()):
        return _state(problem, hyper.start(), 0, True), {}
    found = learn(partial(evidence, problem), hyper, config, rng)
    return _state(problem, found.point, found.iterations, found.converged), _trace(found, hyper, len(problem.y))


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return Gaussians for rows X (n, d), standardised units, noise included."""
    mean, variance = latent(state, X)
    return Predictive.gaussian(mean, variance + np.exp(state.theta[-1]))


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d), standardised units, noise left out."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    share = state.theta[:-1]
    mean, variance = np.empty(len(X)), state.covariance.diagonal(share, X)
    for rows in blocks(len(X), len(state.X), BLOCK):
        k = rectangle(len(X[rows]), len(state.X))
        state.covariance.fill(share, X[rows], k, state.X)
        mean[rows] = k @ state.weights
        k = symmetric.half_solve(state.factor, k)
        variance[rows] -= np.einsum("ij,ij->i", k, k)
    return mean, np.maximum(variance, 0.0)  # rounding can leave less than nothing beside a training row


def problem_of(train: Rows, config: Config) -> GPProblem:
    """Return covariance, hyperparameters and room for rows X (n, d), y (n,) under the options.

    Raises as ``prepared`` does.
    """
    X, y, covariance, hyper = prepared(train, config, "noise_variance")
    return GPProblem(X, y, covariance, hyper, symmetric.square(len(y)))


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
    """Time of a fit on one core: evaluations by N^3 and N^2 d."""
    evaluation = 1e-3 + 4e-11 * n**3 + n**2 * (3e-9 + 6e-10 * d)
    return evaluation * (config.starts * min(config.steps, 80) if config.optimize else 1)


def _published(config: Config) -> tuple[str, ...]:
    """Return the column that a configuration answers to."""
    values = (config.magnitude, config.bias_variance, config.weight_variance, config.noise_variance)
    if config.kernel != "nn" or config.prior != "none" or not config.optimize or any(values):
        return ()
    return ("GP-ARD",) if config.ard else ("GP",)


METHOD = Method(
    name="gp",
    version=1,
    title="Gaussian process",
    paper="Rasmussen and Williams (2006)",
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
