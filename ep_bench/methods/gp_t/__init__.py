"""Robust Gaussian-process regression: a Student-t likelihood, by expectation propagation or Laplace's method.

Jylanki, Vanhatalo and Vehtari (2011). Targets y = f(x) + noise, the noise t with nu degrees of freedom and scale
sigma (not its deviation), f of mean 0 with a covariance of ``ep_bench.covariances``. Modules ``tilted``,
``posterior``, ``ep`` and ``laplace`` have equations and symbols. Predictions integrate the t over the latent
Gaussian: the t is a mixture of normals of precision lambda ~ Gamma(nu / 2, nu sigma^2 / 2), integrated by the
trapezoidal rule in log lambda.

Hyperparameters are learned by L-BFGS on their logarithms, with the gradient at the fixed point. What does not converge
is an error that tells the state and what was tried.

Deviation: of the paper's inferences, factorising and other variational bounds and MCMC are not offered yet, nor the
integral over nu; the double loop of EP neither (module ``ep``). Hyperparameters have wide priors
(``covariances.hyper``); ``prior: none`` makes them flat.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from ep_bench.covariances import Covariance, build, matrix
from ep_bench.covariances.hyper import Hyper
from ep_bench.covariances.learning import learn
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.methods.gp_t import ep, laplace
from ep_bench.methods.gp_t.posterior import Inferred, resolvent
from ep_bench.types import Array, Method, Predictive, Rows

SMALL = -34.0  # log weight, below the largest, that ends the mixture of a prediction


class Config(GaussianProcessConfig):
    """Options of robust regression; those of ``gp`` but for ``noise_variance``, which a t has not."""

    inference: Literal["ep", "laplace"] = Field("ep", description="ep or laplace; Jylanki et al. (2011): ep")
    nu: PositiveFloat | Literal["optimize"] = Field(
        4.0, description="degrees of freedom, or optimize; Jylanki et al. (2011), section 6: 4"
    )
    scale: PositiveFloat | None = Field(None, description="sigma of the t, not its deviation; learned unless given")
    fraction: float = Field(1.0, gt=0.0, le=1.0, description="eta, power of the likelihood in EP; 1 is plain EP")
    damping: float = Field(
        0.8, gt=0.0, le=1.0, description="share of an update of EP's sites that is made at first; ours"
    )
    starts: int = Field(1, ge=1, description="searches for hyperparameters; ours")

    @model_validator(mode="after")
    def _no_gaussian_noise(self) -> Self:
        if self.noise_variance is not None:
            raise ValueError("noise_variance is not an option of gp_t: give scale, the t's sigma")
        return self


class Problem(NamedTuple):
    """Training rows, covariance, hyperparameters (log sigma and log nu last) and options."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyper
    config: Config


class State(NamedTuple):
    """The approximate posterior of f, in the units that the method sees."""

    covariance: Covariance
    hyper: Hyper
    theta: Array  # (P,) logarithms
    X: Array  # (N, d)
    weights: Array  # (N,)
    resolvent: Array  # (N, N) (K + S^-1)^-1
    log_evidence: float  # nats
    n_iterations: int  # of the search, or of the inference where nothing was learned
    converged: bool
    site_precisions: Array  # (N,) of EP; of Laplace the curvatures W
    stage: str  # the stage of the inference that converged

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return self.hyper.values(self.theta)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Raises FloatingPointError where the inference does not converge at given hyperparameters or at any start.
    """
    problem = problem_of(train, config)
    hyper = problem.hyper
    if not (config.optimize and hyper.free.any()):
        found = infer(problem, hyper.start())
        return _state(problem, hyper.start(), found, found.iterations, True), {}
    best = learn(partial(evidence, problem), hyper, config, rng)
    state = _state(problem, best.point, infer(problem, best.point), best.iterations, best.converged)
    return state, {"objective": [value / len(problem.y) for _, value in best.path]}


def problem_of(train: Rows, config: Config) -> Problem:
    """Return rows X (n, d), y (n,) with covariance and hyperparameters. Raises FloatingPointError as ``gp`` does."""
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise FloatingPointError("inputs or targets are not finite")
    covariance = build(config.kernel, X.shape[1], config.ard)
    names = ("lengthscale", "magnitude", "bias_variance", "weight_variance", "scale")
    given = {name: getattr(config, name) for name in names}
    given["nu"] = None if config.nu == "optimize" else config.nu
    hyper = Hyper.of((*covariance.names, "scale", "nu"), X.shape[1], given, flat=config.prior == "none")
    return Problem(X, y, covariance, hyper, config)


def infer(problem: Problem, theta: Array) -> Inferred:
    """Return the inference at logarithms theta (P,). Raises FloatingPointError with the hyperparameters."""
    X, y, covariance, hyper, config = problem
    scale, nu = np.exp(theta[-2:])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        K = matrix(covariance, theta[:-2], X)
        try:
            if config.inference == "laplace":
                found = laplace.infer(K, y, nu, scale)
            else:
                found = ep.infer(K, y, nu, scale, config.fraction, config.damping)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; at {hyper.words(theta)}") from None
    if not np.isfinite(found.log_evidence):
        raise FloatingPointError(f"the evidence is not finite at {hyper.words(theta)}")
    return found


def evidence(problem: Problem, theta: Array) -> tuple[float, Array]:
    """Return the approximate log evidence (nats) and its gradient (P,) by the logarithms theta (P,)."""
    found = infer(problem, theta)
    by_covariance = 0.5 * problem.covariance.contract(theta[:-2], problem.X, np.ascontiguousarray(found.by_covariance))
    return found.log_evidence, np.append(by_covariance, found.by_likelihood)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures of Gaussians for rows X (n, d), standardised units, noise included."""
    mean, variance = latent(state, X)
    weights, noise = mixture(float(np.exp(state.theta[-1])), float(np.exp(state.theta[-2])))
    means = np.broadcast_to(mean, (len(weights), len(mean))).copy()
    return Predictive(weights, means, variance + noise[:, None])


def mixture(nu: float, scale: float) -> tuple[Array, Array]:
    """Return weights (S,) and variances (S,) of the Gaussians that make up a t."""
    step = min(0.4, np.sqrt(2.0 / nu))
    k = 0.5 * nu
    low, high = SMALL / k - 2.0, np.log1p(-SMALL / k + np.sqrt(-2.0 * SMALL / k)) + 1.0
    x = np.arange(low, high, step)
    height = k * (x - np.expm1(x))  # of log(lambda sigma^2), 0 at its highest
    x, height = x[height > SMALL], height[height > SMALL]
    weights = np.exp(height)
    return weights / weights.sum(), scale**2 * np.exp(-x)


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d), standardised units."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    share = state.theta[:-2]
    k = matrix(state.covariance, share, X, state.X)
    variance = state.covariance.diagonal(share, X) - np.einsum("ij,ij->i", k @ state.resolvent, k)
    return k @ state.weights, np.maximum(variance, 0.0)


def _state(problem: Problem, theta: Array, found: Inferred, iterations: int, converged: bool) -> State:
    return State(
        problem.covariance, problem.hyper, theta, problem.X, found.weights,
        resolvent(found.precisions, found.covariance), found.log_evidence, iterations, converged,
        found.precisions, found.stage,
    )  # fmt: skip


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: some twenty sweeps an evaluation."""
    evaluation = 20.0 * (1e-3 + 2e-5 * n + 4e-10 * n**3) + 1e-9 * n**2 * d
    return evaluation * (config.starts * min(config.steps, 60) if config.optimize else 1)


METHOD = Method(
    name="gp_t",
    version=1,
    title="Gaussian process, Student-t noise",
    paper="Jylanki, Vanhatalo and Vehtari (2011)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"starts": 1, "steps": 2, "lengthscale": None, "weight_variance": None},
    space={"inference": {"choice": ["ep", "laplace"]}, "kernel": {"choice": ["se", "matern32", "matern52"]}},
)
