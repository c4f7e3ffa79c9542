"""Sparse Gaussian-process regression with inducing inputs: FITC, or the variational free energy (VFE, SGPR).

FITC: Snelson and Ghahramani (2006), as in section 3 of Bui et al. (2015); VFE: Titsias (2009). Targets y = f(x) +
noise of variance sigma^2, f of mean 0 with a covariance of ``ep_bench.covariances``, all but known from its values u at
M inducing inputs. Those start at the centres of k-means and are learned together with the hyperparameters, by the
evidence of FITC or the variational bound (and the hyperparameters' priors, ``covariances.hyperparameters``): L-BFGS
with analytic gradients, over the hyperparameters alone for a few and for many steps, then over all from both ends, the
better of which goes on (on energy they end tens of nats apart, for FITC the one, for VFE the other higher). There
inducing inputs are in units of the roots of lengthscales, which takes fewer steps. A search ends where a hundred steps
add less than 5e-4 nats a row: inducing inputs go on to move long after. With q(w) = N(m, S) of the whitened u,

    f(x) ~ N(v' m, k(x, x) - v' v + v' S v),   v = L^-1 k(Z, x).

For many rows (``minibatch``) both objectives are followed by steps on minibatches instead, as Hensman et al. (2013) do
for the variational bound (module ``minibatches``); the evidence that is reported, and q(w), are those of all rows.

Modules: ``bound`` (evidence, bound, gradient, the table of symbols), ``minibatches``.

Deviation: the papers learn under flat priors (``prior: none``) and from one start. K_uu has a jitter of 1e-10 of its
diagonal, more where it cannot be factorised (``jitter_`` of the fitted estimator says how much).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.covariances import Covariance
from ep_bench.covariances.hyperparameters import Hyperparameters, role
from ep_bench.covariances.inducing import centres
from ep_bench.covariances.map_search import prepared, search, starting_points, warn
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.covariances.protocol import blocks
from ep_bench.methods.sgp import bound
from ep_bench.methods.sgp.bound import (
    InducingBasis,
    SparseGPProblem,
    basis,
    best_weights,
    evidence,
    features,
    log_evidence,
    split,
    sweep,
)  # fmt: skip
from ep_bench.methods.sgp.minibatches import optimise
from ep_bench.numerics import symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

SETTLED = 5e-4  # nats a row that the last hundred steps of a search added, below which it ends
HELD = (10, 100)  # steps of the searches with the inducing inputs where they are, at most
TRIAL = 100  # steps over everything from the ends of both, before the better one goes on
USUAL = 800  # steps that such a search makes
MANY = 20_000  # rows that are learned from at once
MINIBATCHES = 10_000  # that are made unless the epochs are given
COLUMNS = {("fitc", 50): ("GP-50", "FITC-50"), ("fitc", 100): ("GP-100",), ("vfe", 50): ("SGPR-50",)}  # published
FIRST_ROWS, FIRST_STEPS = 5000, 100  # of the search before the minibatches


class Config(GaussianProcessConfig):
    """Options of sparse regression; those of ``gp`` and more."""

    approximation: Literal["fitc", "vfe"] = Field(
        "fitc",
        description="fitc (Snelson and Ghahramani 2006), or vfe, variational free energy (Titsias 2009), "
        "also called SGPR; Bui et al. (2015), section 8: fitc",
    )
    inducing: PositiveInt = Field(
        50, description="inducing inputs M, at most the number of distinct rows; Bui et al. (2015), section 8: 50, 100"
    )
    starts: PositiveInt = Field(
        1, description="starting points, the first from the priors' medians, each with its own k-means; ours"
    )
    steps: PositiveInt = Field(2000, description="of the search over everything, at most; ours")
    minibatch: Literal["auto"] | bool = Field(
        "auto", description="learn by Adam on minibatches (Hensman et al. 2013); auto: of more than 20,000 rows; ours"
    )
    batch_size: PositiveInt = Field(1000, description="rows a minibatch, at most; ours")
    epochs: PositiveInt | None = Field(
        None, description="passes over the rows by minibatches; unless given, what 10,000 of these take; ours"
    )
    learning_rate: PositiveFloat = Field(
        0.03, description="of Adam, for half the epochs, then falling to 0 in a straight line; ours"
    )


class State(NamedTuple):
    """The posterior of f, in the units that the method sees."""

    covariance: Covariance
    hyper: Hyperparameters
    theta: Array  # (P,) logarithms of the hyperparameters, the noise variance last
    inducing_inputs: Array  # (M, d) Z
    factor: Array  # (M, M) L in its lower triangle
    mean: Array  # (M,) m, of the whitened inducing outputs
    posterior: Array  # (M, M) R of S^-1 = R R' in its lower triangle
    jitter: float  # on the diagonal of K_uu, in parts of its mean
    log_evidence: float  # FITC's, or the variational bound, nats, without the hyperparameters' prior
    n_iterations: int  # of the search over everything; 0 where nothing was learned
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return self.hyper.values(self.theta)


def fit(
    train: Rows, config: Config, rng: np.random.Generator, inducing_inputs: ArrayLike | None = None
) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    ``inducing_inputs`` (M, d), standardised units, stand for those of k-means: the start of the search, or, where
    nothing is learned, the ones that are used. Returns the state, and one value an iteration of ``objective`` (the
    negative log posterior density of the hyperparameters' logarithms but for a constant, nats, divided by n),
    ``log_evidence`` (nats) and ``noise_deviation``; by minibatches one an epoch, the first two the means of their
    estimates. Warns by scikit-learn's ConvergenceWarning where the objective had not settled, or a variance stands at
    a limit of the search. Raises FloatingPointError where no start has a finite evidence, ValueError where values that
    are given do not fit the inputs.
    """
    problem, given = problem_of(train, config), None
    if inducing_inputs is not None:
        given = _checked(inducing_inputs, problem.X.shape[1])

    def inducing() -> Array:
        return centres(problem.X, config.inducing, rng) if given is None else given

    if not config.optimize:
        return _state(problem, problem.hyper.start(), inducing(), 0, True), {}
    found = _learn(problem, config, inducing, rng)
    return _state(problem, *split(problem, found.point), found.iterations, found.converged), _trace(found, problem)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return Gaussians for rows X (n, d), standardised units, noise included."""
    mean, variance = latent(state, X)
    return Predictive.gaussian(mean, variance + np.exp(state.theta[-1]))


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d), standardised units, noise left out."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    base = InducingBasis(state.theta, state.inducing_inputs, state.factor, state.jitter)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    for rows in blocks(len(X), len(base.Z), bound.BLOCK):
        V, rest = features(state.covariance, base, X[rows])
        mean[rows] = V @ state.mean
        V = symmetric.half_solve(state.posterior, V)
        variance[rows] = np.maximum(rest, 0.0) + np.einsum("ij,ij->i", V, V)  # rounding can leave less than no rest
    return mean, variance


def problem_of(train: Rows, config: Config) -> SparseGPProblem:
    """Return rows X (n, d), y (n,) with covariance and hyperparameters. Raises as ``prepared`` does."""
    return SparseGPProblem(*prepared(train, config, "noise_variance"), config.approximation == "fitc")


def _checked(inducing_inputs: ArrayLike, d: int) -> Array:
    Z = np.array(inducing_inputs, dtype=np.float64, order="C")
    if Z.ndim != 2 or Z.shape[1] != d or len(Z) == 0 or not np.isfinite(Z).all():
        raise ValueError(f"inducing_inputs must be rows of {d} finite numbers, found an array of shape {Z.shape}")
    return Z


def _learn(
    problem: SparseGPProblem, config: Config, inducing: Callable[[], Array], rng: np.random.Generator
) -> Optimum:
    """Return the end of the search over hyperparameters and inducing inputs. Warns as ``fit`` does."""
    starts = [np.append(theta, inducing()) for theta in starting_points(problem.hyper, config, rng)]
    if by_minibatches(config, len(problem.y)):
        some = np.sort(rng.permutation(len(problem.y))[:FIRST_ROWS])
        part = problem._replace(X=problem.X[some], y=problem.y[some])
        start = _search(part, starts, min(config.steps, FIRST_STEPS)).point
        count = passes(config, len(problem.y))
        found = optimise(problem, start, count, config.batch_size, config.learning_rate, rng)
        limit = f"the evidence had not settled in {count} epochs of minibatches"
    else:
        found = _search(problem, starts, config.steps)
        limit = ""
    warn(found, problem.hyper, config.steps, limit)
    return found


def _search(problem: SparseGPProblem, starts: list[Array], steps: int) -> Optimum:
    """Return the end of a search by L-BFGS over everything, from the best of several trials."""
    hyper, size = problem.hyper, len(problem.hyper.names)
    points = _search_hyperparameters(problem, starts, steps)
    theta, Z = split(problem, points[0])
    unit = np.append(np.ones(size), np.tile(step_scales(hyper.values(theta), Z.shape[1]), len(Z)))

    def scaled(point: Array) -> tuple[float, Array]:
        value, gradient = evidence(problem, point * unit)
        return value, gradient * unit

    found = search(scaled, hyper, [point / unit for point in points], min(TRIAL, steps))
    if steps > found.iterations and not found.converged:
        more = search(scaled, hyper, [found.point], steps - found.iterations, SETTLED * len(problem.y))
        found = more._replace(iterations=found.iterations + more.iterations, path=found.path + more.path)
    return found._replace(point=found.point * unit, path=[(point * unit, value) for point, value in found.path])


def _search_hyperparameters(problem: SparseGPProblem, starts: list[Array], steps: int) -> list[Array]:
    """Return the ends of searches over the hyperparameters alone, a few and many steps from each start.

    Starts without an evidence are passed over; raises the last one's error where none is left.
    """
    size = len(problem.hyper.names)

    def held(point: Array) -> tuple[float, Array]:
        value, gradient = evidence(problem, point)
        gradient[size:] = 0.0
        return value, gradient

    points, lost = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            points += [search(held, problem.hyper, [start], min(count, steps)).point for count in HELD]
        except FloatingPointError as error:
            lost = error
    if not points:
        raise lost
    return points


def step_scales(values: Mapping[str, float | Array], d: int) -> Array:
    """Return how far a step of the search takes each of d inputs: the root of its shortest lengthscale, or 1."""
    found = [np.broadcast_to(value, d) for name, value in values.items() if role(name) == "lengthscale"]
    return np.sqrt(np.min(found, axis=0)) if found else np.ones(d)


def by_minibatches(config: Config, n: int) -> bool:
    """Return whether n rows are learned from by minibatches."""
    return n > MANY if config.minibatch == "auto" else config.minibatch


def passes(config: Config, n: int) -> int:
    """Return the epochs that minibatches of n rows take."""
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
        "objective": [value / len(problem.y) for value in values],
        "log_evidence": [
            -value - problem.hyper.log_prior(theta)[0] for theta, value in zip(thetas, values, strict=True)
        ],
        "noise_deviation": [float(np.exp(0.5 * theta[-1])) for theta in thetas],
    }


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: evaluations by N M^2 and N M d."""
    M = min(config.inducing, n)

    def evaluations(rows: int, count: int) -> float:
        return count * (3e-4 + rows * M * (1e-8 + 1.2e-9 * d + 2.5e-10 * M) + 2e-9 * M**3)

    if not config.optimize:
        return evaluations(n, 2)
    if not by_minibatches(config, n):
        return evaluations(n, min(config.steps, USUAL) + 300 * config.starts)
    first = evaluations(FIRST_ROWS, FIRST_STEPS + 300 * config.starts)
    return first + passes(config, n) * evaluations(config.batch_size, -(-n // config.batch_size))


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to."""
    values = (config.lengthscale, config.magnitude, config.noise_variance)
    if config.kernel != "se" or not config.ard or not config.optimize or any(values):
        return ()
    return COLUMNS.get((config.approximation, config.inducing), ())


METHOD = Method(
    name="sgp",
    version=1,
    title="Sparse Gaussian process",
    paper="Snelson and Ghahramani (2006); Titsias (2009)",
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
