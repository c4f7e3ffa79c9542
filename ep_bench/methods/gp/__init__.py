"""Gaussian-process regression, exact, with the hyperparameters of highest marginal posterior density (type-II MAP).

Rasmussen and Williams (2006), chapters 2 and 5. This is the baseline GA of Jylanki et al. (2011, section 6.2), and with
``kernel: nn`` GP and GP-ARD of Jylanki et al. (2014, section 4.4). Targets are y = f(x) + noise. f has mean 0 and a
covariance from ``ep_bench.covariances``; the noise has variance sigma^2. At fixed hyperparameters the posterior is
Gaussian:

    f(x) | y ~ N(k' alpha, k(x, x) - k' C^-1 k),   k = (k(x, x_1), ..., k(x, x_N)),   C = K + sigma^2 I = L L',

equations (2.25) and (2.26). The logarithms of the hyperparameters are learned by L-BFGS with analytic gradients, from
several starting points; the best result counts. With ``kernel: evidence`` this is done for three covariances, from the
same starting points. Only sigma^2 is added to the diagonal of C. If C is not positive definite at any starting point,
the fit raises an error with the hyperparameters. With ``duplicates: merge`` data points
with the same inputs are one point (``covariances.replicates``). Evidence and predictions do not change, C is smaller.

For many data points, ``subset`` learns the hyperparameters on some of them, drawn at random; predictions are those of
all. ``precision: single`` stores and factorises C of all data points in single precision, with half the memory and
time. There is no jitter: if sigma^2 is small next to the rounding errors, the fit raises an error.

Hyperparameters that are set as options are fixed, in standardised units unless ``standardize: false`` is set.

``covariances.exact_evidence`` has the evidence, its gradient and the table of symbols.

Deviation: the priors of the papers are flat on the scale of logarithms. The default here are wide Gaussians
(``covariances.hyperparameters``); ``prior: none`` is the choice of the papers.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveInt

from ep_bench.covariances import Covariance
from ep_bench.covariances.exact_evidence import GPProblem, evidence, factorised
from ep_bench.covariances.from_options import candidates
from ep_bench.covariances.gaussian_process_config import ChosenKernelConfig
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import judged, prepared, search, starting_points, warn, warn_of_small_noise
from ep_bench.covariances.protocol import blocks, rectangle
from ep_bench.covariances.replicates import Replicates, merge, unbounded_evidence, warn_of_repeats
from ep_bench.numerics import symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

BLOCK = 2**23  # covariances between test and training points in memory at once


class Config(ChosenKernelConfig):
    """Options of exact regression."""

    subset: PositiveInt | None = Field(
        None,
        description="learn the hyperparameters on so many data points, drawn at random, and predict with all; "
        "null: learn on all; ours",
        json_schema_extra={NEUTRAL: None},
    )
    precision: Literal["double", "single"] = Field(
        "double",
        description="precision of the factor that predictions use; single: half the memory and time, if the noise is "
        "not small; learning is in double precision; ours",
        json_schema_extra={NEUTRAL: "double"},
    )


class State(NamedTuple):
    """The posterior of f, in the units of the training data (usually standardised)."""

    covariance: Covariance
    hyper: Hyperparameters
    theta: Array  # (P,) logarithms of the hyperparameters, the noise variance last
    X: Array  # (N, d) training inputs
    factor: Array  # (N, N) L in its lower triangle, in single or double precision
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
    ``noise_deviation`` (the standard deviation of the noise), all of the data points used for learning.

    Warns with scikit-learn's ConvergenceWarning if the search reached its maximum number of iterations or a variance
    reached a limit of the search, and with UserWarning if inputs repeat and are not merged, if they make the evidence
    unbounded, or if the noise variance is below 1e-6 of the variance of the targets. Raises FloatingPointError if no
    start has a finite evidence, and ValueError if fixed values do not fit the number of inputs.
    """
    some = _subset(train, config.subset, rng)
    problem = problem_of(some, config)
    hyper = problem.hyper
    if not (config.optimize and hyper.free.any()):
        return _state(_of_all(train, config, problem), hyper.start(), 0, True), {}
    repeats = unbounded_evidence(some.X, some.y) if np.isnan(hyper.fixed[-1]) else ""
    if not repeats and config.duplicates == "keep":
        warn_of_repeats(train.X)
    problem, found = _learned(problem, config, rng)
    warn(found, hyper, config.steps, repeats=repeats)
    warn_of_small_noise(float(found.point[-1]), hyper, some.y)
    state = _state(_of_all(train, config, problem), found.point, found.iterations, found.converged)
    return state, _trace(found, hyper, len(some.y))


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
        k = symmetric.half_solve(state.factor, k.astype(state.factor.dtype, copy=False))
        variance[rows] -= np.einsum("ij,ij->i", k, k, dtype=np.float64)
    return mean, np.maximum(variance, 0.0)  # rounding errors may be below 0 next to a training point


def problem_of(train: Rows, config: Config, precision: str = "double") -> GPProblem:
    """Return the data X (n, d), y (n,) with covariance, hyperparameters and workspace. Raises as ``prepared`` does."""
    X, y, covariance, hyper = prepared(train, config, "noise_variance")
    replicates = Replicates.none(len(y))
    if config.duplicates == "merge":
        X, y, replicates = merge(X, y)
    return GPProblem(X, y, covariance, hyper, symmetric.square(len(y), precision), replicates)


def _subset(train: Rows, count: int | None, rng: np.random.Generator) -> Rows:
    """Return ``count`` data points, drawn at random, or all if there are not more."""
    if count is None or count >= len(train.y):
        return train
    some = np.sort(rng.permutation(len(train.y))[:count])
    return Rows(train.X[some], train.y[some])


def _learned(problem: GPProblem, config: Config, rng: np.random.Generator) -> tuple[GPProblem, Optimum]:
    """Return the problem with the covariance of the best search, and the end of this search."""
    starts = starting_points(problem.hyper, config, rng)
    covariances = candidates(config.kernel, problem.X.shape[1], config.ard)
    problems = [problem._replace(covariance=each) for each in covariances]
    ends = [search(partial(evidence, each), problem.hyper, starts, config.steps) for each in problems]
    best = int(np.argmin([end.value for end in ends]))
    return problems[best], judged(ends[best], problem.hyper)


def _of_all(train: Rows, config: Config, problem: GPProblem) -> GPProblem:
    """Return the problem of all data points, with the covariance of that of the data points used for learning."""
    if config.subset is None and config.precision == "double":
        return problem
    return problem_of(train, config, config.precision)._replace(covariance=problem.covariance)


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

    def evaluation(n: int) -> float:
        return 1e-3 + 4e-11 * n**3 + n**2 * (3e-9 + 6e-10 * d)

    searches = config.starts * len(candidates(config.kernel, d, config.ard)) if config.optimize else 0
    return evaluation(n) + searches * min(config.steps, 30) * evaluation(min(n, config.subset or n))


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
    style=("GP", "o"),
    bibtex="""
    @book{rasmussen2006, author = {Rasmussen, Carl Edward and Williams, Christopher K. I.},
      title = {{Gaussian Processes for Machine Learning}}, year = {2006}, publisher = {MIT Press}}""",
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
