"""Sparse Gaussian-process regression with inducing inputs: FITC, or the variational free energy (VFE, SGPR).

FITC: Snelson and Ghahramani (2006), as in section 3 of Bui et al. (2015); VFE: Titsias (2009). Targets are y = f(x) +
noise of variance sigma^2. f has mean 0 and a covariance from ``ep_bench.covariances``, and is summarised by its values
u at M inducing inputs. With q(w) = N(m, S) of the whitened u,

    f(x) ~ N(v' m, k(x, x) - v' v + v' S v),   v = L^-1 k(Z, x).

Inducing inputs start at the centres of k-means. They are learned together with the hyperparameters by L-BFGS with
analytic gradients (``covariances.sparse_searches``). The objective is the evidence of FITC or the variational bound,
plus the log prior of the hyperparameters (``covariances.hyperparameters``). With ``kernel: evidence`` three
covariances are learned from the same starts, and the one with the best objective counts. That of FITC is no bound on
the evidence of the exact process, so that it may prefer another covariance.

For many data points (``minibatch``) both objectives are maximised by steps on minibatches, as Hensman et al. (2013) do
for the variational bound (module ``minibatches``). The reported evidence and q(w) are those of all data points.

With ``duplicates: merge`` data points with the same inputs are one point (``covariances.replicates``). The variational
bound is the same. FITC changes: without it, f has independent errors at repeated inputs given u, with it one error.

Modules: ``covariances.sparse_bound`` (bound and gradient at any q, the table of symbols),
``covariances.sparse_evidence`` (at the best q), ``covariances.sparse_searches``, ``minibatches``.

Deviation: the papers use flat priors (``prior: none``) and one start. K_uu has a jitter of 1e-10 of its mean diagonal,
and more if it cannot be factorised (``jitter_`` of the fitted estimator).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from threadpoolctl import threadpool_limits

from ep_bench.covariances import Covariance
from ep_bench.covariances import sparse_bound as bound
from ep_bench.covariances import sparse_searches as searches
from ep_bench.covariances.from_options import candidates
from ep_bench.covariances.gaussian_process_config import ChosenKernelConfig
from ep_bench.covariances.hyperparameters import VARIANCE_LIMITS, Hyperparameters
from ep_bench.covariances.inducing import centres
from ep_bench.covariances.map_search import judged, prepared, starting_points, warn, warn_of_small_noise
from ep_bench.covariances.protocol import blocks
from ep_bench.covariances.replicates import Duplicates, Replicates, merge, unbounded_evidence
from ep_bench.covariances.sparse_bound import (
    InducingBasis,
    SparseGPProblem,
    basis,
    best_weights,
    features,
    log_evidence,
    split,
    sweep,
)  # fmt: skip
from ep_bench.covariances.sparse_searches import SearchSettings
from ep_bench.methods.sgp.minibatches import optimise
from ep_bench.numerics import symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

USUAL = 800  # typical iterations of the search over all parameters, for the estimate of times
SEVERAL = 2000  # data points from which on ``search: auto`` is ``many``
MANY = 20_000  # data points from which on minibatches are used
MINIBATCHES = 10_000  # number of minibatches if ``epochs`` is null
COLUMNS = {("fitc", 50): ("GP-50", "FITC-50"), ("fitc", 100): ("GP-100",), ("vfe", 50): ("SGPR-50",)}  # published
FIRST_ROWS, FIRST_STEPS = 5000, 100  # data points and iterations of the search before the minibatches


class Config(ChosenKernelConfig):
    """Options of sparse regression: those of ``gp`` and of the approximation."""

    approximation: Literal["fitc", "vfe"] = Field(
        "fitc",
        description="fitc (Snelson and Ghahramani 2006), or vfe, variational free energy (Titsias 2009), "
        "also called SGPR; Bui et al. (2015), section 8: fitc",
    )
    inducing: PositiveInt = Field(
        50,
        description="number of inducing inputs M, at most that of distinct training inputs; "
        "Bui et al. (2015), section 8: 50, 100",
    )
    starts: PositiveInt = Field(
        1,
        description="number of starts, the first at the medians of the priors, each with its own k-means; ours",
    )
    steps: PositiveInt = Field(2000, description="maximum iterations of the search over all parameters; ours")
    minibatch: Literal["auto"] | bool = Field(
        "auto",
        description="learn by Adam on minibatches (Hensman et al. 2013); auto: with more than 20,000 data points; ours",
    )
    batch_size: PositiveInt = Field(1000, description="maximum data points per minibatch; ours")
    epochs: PositiveInt | None = Field(
        None, description="passes over the data by minibatches; null: the number that gives 10,000 minibatches; ours"
    )
    learning_rate: PositiveFloat = Field(
        0.03, description="learning rate of Adam, constant for half the epochs, then linearly decreasing to 0; ours"
    )

    search: Literal["auto", "trials", "many"] = Field(
        "auto",
        description="search over all parameters; many: with 100 stored corrections instead of 20, ends later, for "
        "thousands of data points; auto: trials up to 2,000 data points, else many; not with minibatches; ours",
        json_schema_extra={NEUTRAL: "trials"},
    )
    duplicates: Duplicates = Field(
        "keep",
        description="data points with the same inputs: keep, or merge into one with the mean target and less noise, "
        "which does not change the bound of vfe, and makes fitc another approximation; ours",
        json_schema_extra={NEUTRAL: "keep"},
    )
    noise_floor: PositiveFloat | None = Field(
        None,
        description="minimum of the learned noise variance, in squared units of the training target: a fraction of its "
        "variance if the target is standardised; null: 1e-8; ours",
        json_schema_extra={NEUTRAL: None},
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.search == "many" and self.minibatch is True:
            raise ValueError("search: many has no effect on minibatches; leave it out, or set minibatch: false")
        if self.noise_floor is not None and self.noise_floor >= VARIANCE_LIMITS[1]:
            raise ValueError(f"noise_floor must be below {VARIANCE_LIMITS[1]:g}, the upper limit of the search")
        if self.noise_floor is not None and self.noise_floor < VARIANCE_LIMITS[0]:
            raise ValueError(f"noise_floor must be at least {VARIANCE_LIMITS[0]:g}, the lower limit of the search")
        if self.noise_floor is not None and (self.noise_variance is not None or not self.optimize):
            raise ValueError(
                "noise_floor is a minimum of the learned noise variance; leave it out, or noise_variance and "
                "optimize: false"
            )
        return self


class State(NamedTuple):
    """The posterior of f, in the units of the training data (usually standardised)."""

    covariance: Covariance
    hyper: Hyperparameters
    theta: Array  # (P,) logarithms of the hyperparameters, the noise variance last
    inducing_inputs: Array  # (M, d) Z
    factor: Array  # (M, M) L in its lower triangle
    mean: Array  # (M,) m, of the whitened inducing outputs
    posterior: Array  # (M, M) R of S^-1 = R R' in its lower triangle
    jitter: float  # added to the diagonal of K_uu, relative to its mean
    log_evidence: float  # of FITC, or the variational bound; nats, without the prior of the hyperparameters
    n_iterations: int  # of the search over all parameters; 0 if nothing is learned, or if it starts at its optimum
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return self.hyper.values(self.theta)


def fit(
    train: Rows, config: Config, rng: np.random.Generator, inducing_inputs: ArrayLike | None = None
) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    ``inducing_inputs`` (M, d), standardised units, replace those of k-means: they start the search, or are used as they
    are if nothing is learned.

    Returns the state and a trace with one value per iteration of the search over all parameters: ``objective`` (the
    negative log posterior density of the logarithms of the hyperparameters up to a constant, nats, divided by n),
    ``log_evidence`` (nats) and ``noise_deviation`` (the standard deviation of the noise). The searches with fixed
    inducing inputs before it are not included. There is no value if they end at an optimum for all parameters, as with
    an inducing input at each distinct input. With minibatches there is one value per epoch, and the first two are means
    over the estimates.

    Warns with scikit-learn's ConvergenceWarning if the objective has not converged, or if a variance is at a limit of
    the search, and with a UserWarning if the noise variance is at ``noise_floor``. Raises FloatingPointError if no
    start has a finite evidence, and ValueError if fixed values or inducing inputs do not fit the number of inputs.
    """
    problem, fixed = problem_of(train, config), None
    if inducing_inputs is not None:
        fixed = _checked(inducing_inputs, problem.X.shape[1])

    def inducing() -> Array:
        return centres(problem.X, config.inducing, rng) if fixed is None else fixed

    if not config.optimize:
        return _state(problem, problem.hyper.start(), inducing(), 0, True), {}
    with threadpool_limits(1):  # threads are slower for such small matrices, and rounding errors depend on their number
        problem, found, words = _learn(problem, config, inducing, rng)
        found = judged(found, problem.hyper)
        state = _state(problem, *split(problem, found.point), found.iterations, found.converged)
    repeats = unbounded_evidence(train.X, train.y) if np.isnan(problem.hyper.fixed[-1]) else ""
    warn(found, problem.hyper, config.steps, words, repeats)
    warn_of_small_noise(float(state.theta[-1]), problem.hyper, train.y)
    if config.noise_floor is not None and state.theta[-1] <= problem.hyper.low[-1]:
        at = f"the noise variance is at its minimum, noise_floor: {config.noise_floor:g}"
        warnings.warn(f"{at}; without the minimum it would fall further", UserWarning, stacklevel=3)
    return state, _trace(found, problem)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return Gaussians at inputs X (n, d), standardised units, noise included; ``rng`` is not used."""
    mean, variance = latent(state, X)
    return Predictive.gaussian(mean, variance + np.exp(state.theta[-1]))


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at inputs X (n, d), standardised units, without noise."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    base = InducingBasis(state.theta, state.inducing_inputs, state.factor, state.jitter)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    for rows in blocks(len(X), len(base.Z), bound.BLOCK):
        V, rest = features(state.covariance, base, X[rows])
        mean[rows] = V @ state.mean
        V = symmetric.half_solve(state.posterior, V)
        variance[rows] = np.maximum(rest, 0.0) + np.einsum("ij,ij->i", V, V)  # rounding errors may be below 0
    return mean, variance


def problem_of(train: Rows, config: Config) -> SparseGPProblem:
    """Return the data X (n, d), y (n,) with covariance and hyperparameters. Raises as ``prepared`` does."""
    X, y, covariance, hyper = prepared(train, config, "noise_variance")
    replicates = Replicates.none(len(y))
    if config.duplicates == "merge":
        X, y, replicates = merge(X, y)
    if config.noise_floor is not None:
        hyper = hyper.with_minimum("noise_variance", config.noise_floor)
    return SparseGPProblem(X, y, covariance, hyper, config.approximation == "fitc", replicates)


def _checked(inducing_inputs: ArrayLike, d: int) -> Array:
    Z = np.array(inducing_inputs, dtype=np.float64, order="C")
    if Z.ndim != 2 or Z.shape[1] != d or len(Z) == 0 or not np.isfinite(Z).all():
        raise ValueError(f"inducing_inputs must be finite, of shape (M, {d}); found an array of shape {Z.shape}")
    return Z


def _learn(
    problem: SparseGPProblem, config: Config, inducing: Callable[[], Array], rng: np.random.Generator
) -> tuple[SparseGPProblem, Optimum, str]:
    """Return the problem with the best covariance, the end of its search, and words if it does not converge."""
    starts = [np.append(theta, inducing()) for theta in starting_points(problem.hyper, config, rng)]
    covariances = candidates(config.kernel, problem.X.shape[1], config.ard)
    problems = [problem._replace(covariance=each) for each in covariances]
    ends = [_search(each, config, starts, rng) for each in problems]
    best = int(np.argmin([found.value for found, _ in ends]))
    return problems[best], *ends[best]


def _search(
    problem: SparseGPProblem, config: Config, starts: list[Array], rng: np.random.Generator
) -> tuple[Optimum, str]:
    """Return the end of the search over hyperparameters and inducing inputs, and words if it does not converge."""
    if by_minibatches(config, len(problem.y)):
        some = np.sort(rng.permutation(len(problem.y))[:FIRST_ROWS])
        part = problem._replace(X=problem.X[some], y=problem.y[some], replicates=problem.replicates.part(some))
        start = searches.by_trials(part, starts, min(config.steps, FIRST_STEPS)).point
        count = passes(config, len(problem.y))
        found = optimise(problem, start, count, config.batch_size, config.learning_rate, rng)
        limit = f"the evidence did not converge in {count} epochs of minibatches"
    else:
        found = searches.by_trials(problem, starts, config.steps, _search_settings(config, len(problem.y)))
        limit = ""
    return found, limit


def _search_settings(config: Config, n: int) -> SearchSettings:
    many = config.search == "many" or (config.search == "auto" and n > SEVERAL)
    return searches.MANY if many else searches.FEW


def by_minibatches(config: Config, n: int) -> bool:
    """Return whether a fit to n data points uses minibatches."""
    return n > MANY if config.minibatch == "auto" else config.minibatch


def passes(config: Config, n: int) -> int:
    """Return the number of epochs of minibatches for n data points."""
    return config.epochs or max(round(MINIBATCHES / -(-n // config.batch_size)), 1)


def _state(problem: SparseGPProblem, theta: Array, Z: Array, iterations: int, converged: bool) -> State:
    base = basis(problem, theta, Z)
    weights, posterior = best_weights(problem, base, sweep(problem, base))
    return State(
        problem.covariance, problem.hyper, theta, Z, base.factor, weights.mean, posterior, base.jitter,
        log_evidence(problem, base, weights), iterations, converged,
    )  # fmt: skip


def _trace(found: Optimum, problem: SparseGPProblem) -> dict[str, list[float]]:
    thetas = [split(problem, point)[0] for point, _ in found.path]
    values = [value for _, value in found.path]
    return {
        "objective": [value / problem.replicates.data_points for value in values],
        "log_evidence": [
            -value - problem.hyper.log_prior(theta)[0] for theta, value in zip(thetas, values, strict=True)
        ],
        "noise_deviation": [float(np.exp(0.5 * theta[-1])) for theta in thetas],
    }


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the seconds of a fit on one core; an evaluation costs N M^2 and N M d operations."""
    M = min(config.inducing, n)

    def evaluations(rows: int, count: int) -> float:
        return count * (3e-4 + rows * M * (1e-8 + 1.2e-9 * d + 2.5e-10 * M) + 2e-9 * M**3)

    if not config.optimize:
        return evaluations(n, 2)
    if not by_minibatches(config, n):
        count = min(config.steps, USUAL) + 300 * config.starts
        return evaluations(n, count * len(candidates(config.kernel, d, config.ard)))
    first = evaluations(FIRST_ROWS, FIRST_STEPS + 300 * config.starts)
    return first + passes(config, n) * evaluations(config.batch_size, -(-n // config.batch_size))


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that a configuration corresponds to."""
    values = (config.lengthscale, config.magnitude, config.noise_variance)
    if config.kernel != "se" or not config.ard or not config.optimize or any(values):
        return ()
    return COLUMNS.get((config.approximation, config.inducing), ())


def _version(config: Config) -> int:
    """Return the version that last changed the numbers: only those of merged data points have changed."""
    return 2 if config.duplicates == "merge" else 1


METHOD = Method(
    name="sgp",
    version=2,
    version_of=_version,
    title="Sparse Gaussian process",
    paper="Snelson and Ghahramani (2006); Titsias (2009)",
    style=("GP", "s"),
    bibtex="""
    @inproceedings{snelson2006, author = {Snelson, Edward and Ghahramani, Zoubin},
      title = {{Sparse Gaussian Processes using Pseudo-inputs}},
      booktitle = {Advances in Neural Information Processing Systems 18}, year = {2006}, pages = {1257--1264}}
    @inproceedings{titsias2009, author = {Titsias, Michalis K.},
      title = {{Variational Learning of Inducing Variables in Sparse Gaussian Processes}},
      booktitle = {Proceedings of the 12th International Conference on Artificial Intelligence and Statistics},
      volume = {5}, year = {2009}, pages = {567--574}}""",
    density="Gaussian",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"starts": 1, "steps": 2, "inducing": 5, "lengthscale": None, "weight_variance": None},
    published=_published,
    space={
        "approximation": {"choice": ["fitc", "vfe"]},
        "kernel": {"choice": ["se", "matern32", "matern52", "nn"]},
    },
)
