"""Robust Gaussian-process regression: a Student-t likelihood, by EP, Laplace's method, variational bounds or MCMC.

Jylanki, Vanhatalo and Vehtari (2011). Targets y = f(x) + noise, the noise t with nu degrees of freedom and scale
sigma (not its deviation), f of mean 0 with a covariance of ``ep_bench.covariances``. The other modules have equations
and symbols, ``annealing`` the evidence by annealed importance sampling. Predictions integrate the t, a mixture of
``scale_mixture``, over the latent Gaussian.

Hyperparameters are learned by L-BFGS on their logarithms, with the gradient at the fixed point; those of ``fvb`` by
EM. EP has sites of the search's steps nearby to start from, and follows them; what is reported is computed from empty
sites at its end, unless sweeps from there do not converge where those from nearby do. What does not converge is an
error that tells the state and what was tried. A search may end where the fixed point that it follows does: then it
counts as not converged. With ``nu: integrate`` the others are learned at each of 15 values nu_j (section 6.2), and the
posterior is the mixture of theirs with weights in proportion to their posterior densities:

    p(f | y) = sum_j w_j q(f | y, theta_j, sigma_j, nu_j),   w_j ~ q(theta_j, sigma_j, nu_j | y).

Searches start from the neighbour's end, outwards from the value next to 4. A value where the inference has no solution
is left out, with a warning.

With ``inference: mcmc`` what would be learned is drawn by Markov chains, which are judged by their predictions as
those of ``hmc`` are.

Deviation: ``kl`` is not among the paper's inferences. Hyperparameters have wide priors
(``covariances.hyperparameters``); ``prior: none`` makes them flat, that of ``nu: integrate`` on the scale of log log
nu, as in the paper.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from scipy.special import logsumexp

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import learn, prepared
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.covariances.protocol import blocks
from ep_bench.methods.gp_t import em, ep, kl, laplace, sampling, scale_mixture, variational
from ep_bench.methods.gp_t.posterior import BLOCK, InferenceResult, SiteBlocks, divided
from ep_bench.methods.gp_t.warm_start import WarmStartPath
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

NU = np.exp(np.exp(np.linspace(np.log(np.log(1.5)), np.log(np.log(20.0)), 15)))  # the paper's values, section 6.2
START_NU = 4.0
SEARCHED = ep.EPLimits(1e-6, 60)  # of EP within a search: the evidence is off by the square of the mismatch
SAME = 1e-5  # nats between evidences of the same fixed point, at most
LEAST = 1e-6  # share of a part that predictions count
STARTED = {"laplace": laplace.infer, "kl": kl.infer}  # inferences that may start from an earlier one's end
INFERENCES = {"vb": variational.bounds, "fvb": variational.factors}


def _integrated_over(nu: Any) -> Any:
    return "integrate" if nu == "grid" else nu


class Config(GaussianProcessConfig):
    """Options of robust regression; those of ``gp`` but for ``noise_variance``, which a t has not."""

    inference: Literal["ep", "laplace", "vb", "fvb", "kl", "mcmc"] = Field(
        "ep",
        description="ep, laplace, vb (variational bounds), fvb (factorising variational Bayes, hyperparameters by EM), "
        "kl (the Gaussian of least KL(q || p)) or mcmc (which draws what others learn); Jylanki et al. (2011): ep",
    )
    noise_variance: PositiveFloat | None = Field(None, description="always null: a t has a scale and nu instead")
    nu: Annotated[PositiveFloat | Literal["optimize", "integrate"], BeforeValidator(_integrated_over)] = Field(
        4.0,
        description="degrees of freedom, or optimize, or integrate (also called grid), which are the same to mcmc; "
        "Jylanki et al. (2011), section 6: 4",
    )
    scale: PositiveFloat | None = Field(None, description="sigma of the t, not its deviation; learned unless given")
    fraction: float = Field(1.0, gt=0.0, le=1.0, description="eta, power of the likelihood in EP; 1 is plain EP")
    damping: float = Field(0.8, gt=0.0, le=1.0, description="share of an update of EP's sites, at first; ours")
    scheme: ep.Scheme = Field(
        "robust",
        description="of EP: robust, or one of its parts alone, parallel, sequential or double_loop; "
        "Jylanki et al. (2011): robust",
    )
    chains: PositiveInt = Field(2, description="of mcmc, independent; ours")
    samples: PositiveInt = Field(1000, description="of mcmc, draws of a chain after its warm-up; ours")
    warmup: NonNegativeInt = Field(500, description="of mcmc, iterations of a chain's warm-up; ours")
    stored: PositiveInt = Field(
        200,
        description="of mcmc, draws kept for predictions, of all chains together, one a chain at least, evenly "
        "thinned; ours",
    )
    starts: int = Field(1, ge=1, description="searches for hyperparameters; ours")

    @model_validator(mode="after")
    def _no_gaussian_noise(self) -> Self:
        if self.noise_variance is not None:
            raise ValueError("noise_variance is not an option of gp_t: give scale, the t's sigma")
        return self


class StudentTProblem(NamedTuple):
    """Training rows, covariance, hyperparameters (log sigma and log nu last) and options."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters
    config: Config


class PosteriorPart(NamedTuple):
    """The approximate posterior of f at one value of the hyperparameters."""

    theta: Array  # (P,) logarithms
    weights: Array  # (N,)
    blocks: SiteBlocks  # of (K + S^-1)^-1, S the precisions
    precisions: Array  # (N,) of EP's sites and the bounds; of Laplace the curvatures W
    log_evidence: float  # nats
    n_iterations: int  # of the search, or of the inference where nothing was learned
    converged: bool
    stage: str  # the stage of the inference that converged


class State(NamedTuple):
    """The approximate posterior of f, in the units that the method sees: one part, or one a value of nu."""

    covariance: Covariance
    hyper: Hyperparameters
    X: Array  # (N, d)
    parts: tuple[PosteriorPart, ...]
    shares: Array  # (J,) of the parts, 1 in all
    log_evidence: float  # nats; the mean over nu where it is integrated
    converged: bool

    @property
    def best(self) -> PosteriorPart:
        """The part with the largest share."""
        return self.parts[int(np.argmax(self.shares))]

    @property
    def n_iterations(self) -> int:
        return sum(part.n_iterations for part in self.parts)

    @property
    def site_precisions(self) -> Array:
        """Precisions (N,) of the part with the largest share."""
        return self.best.precisions

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units; of the part with the largest share."""
        return self.hyper.values(self.best.theta)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State | sampling.Draws, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state and one value an iteration of ``objective``, as ``gp`` does, of the part with the largest share.
    Raises FloatingPointError where the inference does not converge at given hyperparameters or at any start.
    """
    problem = problem_of(train, config)
    if config.inference == "mcmc":
        return _sampled(problem, rng)
    if config.nu == "integrate":
        return _integrated(problem, rng)
    part, path = _part(problem, rng)
    state = State(problem.covariance, problem.hyper, problem.X, (part,), np.ones(1), part.log_evidence, part.converged)
    return state, _trace(path, problem)


def _sampled(problem: StudentTProblem, rng: np.random.Generator) -> tuple[sampling.Draws, dict[str, list[float]]]:
    """Return draws, and what the chains monitor, one value an iteration, warm-up first."""
    config = problem.config
    model = sampling.StudentTModel(problem.X, problem.y, problem.covariance, _drawn(problem))
    schedule = sampling.SliceSamplingSchedule(config.warmup, config.samples, max(1, config.stored // config.chains))
    watched = mcmc_diagnostics.monitored_inputs(model.X, rng)
    chains = sampling.run(model, schedule, watched, rng.spawn(config.chains))
    state = sampling.draws(model, chains, schedule)
    reason = sampling.problem(state.diagnostics, config.chains, config.samples)
    if reason:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(reason, ConvergenceWarning, stacklevel=3)
    return state, sampling.trace(chains)


def _drawn(problem: StudentTProblem) -> Hyperparameters:
    """Return what chains draw: without ``optimize`` nothing, or nu alone, the rest being at the medians."""
    if problem.config.optimize:
        return problem.hyper
    held = problem.hyper.start()
    if problem.config.nu == "integrate":
        held[-1] = np.nan
    return replace(problem.hyper, given=held)


def _part(
    problem: StudentTProblem, rng: np.random.Generator, start: Array | None = None
) -> tuple[PosteriorPart, list[float]]:
    """Return the posterior, hyperparameters learned as far as they are not given, and the values of the search."""
    hyper, config = problem.hyper, problem.config
    found: InferenceResult | None = None
    if config.optimize and hyper.free.any():
        if config.inference == "fvb":
            rows = Rows(problem.X, problem.y)
            best, found = em.learn(rows, problem.covariance, hyper, config, rng, start)
        else:
            search = Evidence(problem, SEARCHED)
            best = learn(search, hyper, config, rng, start)
            found = search.ended(best.point)
            if abs(found.log_evidence + hyper.log_prior(best.point)[0] + best.value) > SAME:
                # another fixed point than that of the search: go on without its sites
                best = learn(partial(evidence, problem), hyper, config, rng, best.point)
                found = infer(problem, best.point)
        theta, iterations, converged = best.point, best.iterations, best.converged
        path = [value for _, value in best.path]
    else:
        theta, iterations, converged, path = hyper.start(), 0, True, []
    found = found or infer(problem, theta)
    of_rows = divided(matrix(problem.covariance, theta[:-2], problem.X), found.precisions)
    part = PosteriorPart(
        theta, found.weights, of_rows, found.precisions, found.log_evidence,
        iterations or found.iterations, converged, found.stage,
    )  # fmt: skip
    return part, path


def _integrated(problem: StudentTProblem, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Return the mixture over NU, and the trace of its largest part."""
    parts, paths, lost = _walk(problem, rng)
    if not parts:
        raise FloatingPointError(f"at none of {len(NU)} values of nu; {lost[-1]}")
    if lost:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(f"left out {len(lost)} of {len(NU)} values of nu: {lost[0]}", ConvergenceWarning, stacklevel=3)
    prior = _log_prior_of_nu(np.array(list(parts)), problem)
    posterior = prior + [part.log_evidence + problem.hyper.log_prior(part.theta)[0] for part in parts.values()]
    shares = np.exp(posterior - logsumexp(posterior))
    mean = float(logsumexp(prior + [part.log_evidence for part in parts.values()]))
    converged = not lost and all(part.converged for part in parts.values())
    state = State(problem.covariance, problem.hyper, problem.X, tuple(parts.values()), shares, mean, converged)
    return state, _trace(paths[int(np.argmax(shares))], problem)


def _walk(
    problem: StudentTProblem, rng: np.random.Generator
) -> tuple[dict[float, PosteriorPart], list[list[float]], list[str]]:
    """Return the parts by nu in rising order, their searches, and what was said where there is none."""
    middle = int(np.argmin(np.abs(NU - START_NU)))
    found: dict[float, tuple[PosteriorPart, list[float]]] = {}
    lost = []
    for way in (range(middle, len(NU)), range(middle - 1, -1, -1)):
        start = found[NU[middle]][0].theta if NU[middle] in found else None
        for nu in NU[way]:
            try:
                found[nu] = _part(problem._replace(hyper=problem.hyper.holding("nu", nu)), rng, start)
            except FloatingPointError as error:
                lost.append(f"nu {nu:.3g}: {error}")
            else:
                start = found[nu][0].theta
    rising = sorted(found)
    return {nu: found[nu][0] for nu in rising}, [found[nu][1] for nu in rising], lost


def _log_prior_of_nu(nu: Array, problem: StudentTProblem) -> Array:
    """Return log probabilities (J,) of values on the grid of log log nu, 1 in all."""
    log_nu = np.log(nu)
    density = np.zeros(len(nu))
    if problem.config.prior != "none":
        density = np.log(log_nu) - 0.5 * ((log_nu - problem.hyper.median[-1]) / problem.hyper.deviation[-1]) ** 2
    return np.asarray(density - logsumexp(density))


def _trace(path: list[float], problem: StudentTProblem) -> dict[str, list[float]]:
    return {"objective": [value / len(problem.y) for value in path]} if path else {}


def problem_of(train: Rows, config: Config) -> StudentTProblem:
    """Return rows X (n, d), y (n,) with covariance and hyperparameters. Raises as ``prepared`` does."""
    learned = config.nu == "optimize" or (config.nu == "integrate" and config.inference == "mcmc")
    nu = None if learned else START_NU if config.nu == "integrate" else float(config.nu)
    return StudentTProblem(*prepared(train, config, "scale", "nu", nu=nu), config)


def infer(
    problem: StudentTProblem, theta: Array, start: ep.Start | None = None, limits: ep.EPLimits = ep.LIMITS
) -> InferenceResult:
    """Return the inference at logarithms theta (P,). Raises FloatingPointError with the hyperparameters.

    ``start`` are sites that EP, Laplace's method and KL try first, ``limits`` are EP's.
    """
    X, y, covariance, hyper, config = problem
    scale, nu = np.exp(theta[-2:])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        K = matrix(covariance, theta[:-2], X)
        try:
            if config.inference == "ep":
                found = ep.infer(K, y, nu, scale, config.fraction, config.damping, config.scheme, start, limits)
            elif config.inference in STARTED:
                found = STARTED[config.inference](K, y, nu, scale, start)
            else:
                found = INFERENCES[config.inference](K, y, nu, scale)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; at {hyper.words(theta)}") from None
    if not np.isfinite(found.log_evidence):
        raise FloatingPointError(f"the evidence is not finite at {hyper.words(theta)}")
    return found


def evidence(problem: StudentTProblem, theta: Array) -> tuple[float, Array]:
    """Return the approximate log evidence (nats) and its gradient (P,) by the logarithms theta (P,)."""
    return Evidence(problem, ep.LIMITS)(theta)


class Evidence:
    """The evidence and its gradient along a search."""

    def __init__(self, problem: StudentTProblem, limits: ep.EPLimits) -> None:
        self._problem, self._path = problem, WarmStartPath(partial(infer, problem), limits)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        X, covariance = self._problem.X, self._problem.covariance
        found = self._path.follow(theta)
        by_covariance = 0.5 * covariance.contract(theta[:-2], X, np.ascontiguousarray(found.by_covariance))
        return found.log_evidence, np.append(by_covariance, found.by_likelihood)

    def ended(self, theta: Array) -> InferenceResult:
        """Return the inference that is reported."""
        return self._path.ended(theta)


def predict(state: State | sampling.Draws, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures of Gaussians for rows X (n, d), standardised units, noise included."""
    if isinstance(state, sampling.Draws):
        return sampling.predict(state, X)
    weights, means, variances, beyond = [], [], [], 0.0
    for part, share in zip(state.parts, state.shares, strict=True):
        if share < LEAST:
            continue
        mean, variance = _latent(state, part, X)
        scale, nu = np.exp(part.theta[-2:]).tolist()
        heights, noise = scale_mixture.fine(nu, scale)
        beyond += share * scale_mixture.missing_variance(nu, scale, heights, noise)
        weights.append(share * heights)
        means.append(np.broadcast_to(mean, (len(noise), len(mean))))
        variances.append(variance + noise[:, None])
    whole = np.concatenate(weights)
    total = whole.sum()
    return Predictive(whole / total, np.concatenate(means), np.concatenate(variances), beyond / total)


def latent(state: State | sampling.Draws, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d), standardised units."""
    if isinstance(state, sampling.Draws):
        return sampling.latent(state, X)
    means, variances = np.array([_latent(state, part, X) for part in state.parts]).transpose(1, 0, 2)
    mean = state.shares @ means
    return mean, state.shares @ (variances + (means - mean) ** 2)


def _latent(state: State, part: PosteriorPart, X: Array) -> tuple[Array, Array]:
    X = np.ascontiguousarray(X, dtype=np.float64)
    share = part.theta[:-2]
    mean, variance = np.empty(len(X)), state.covariance.diagonal(share, X)
    for rows in blocks(len(X), len(state.X), BLOCK):
        k = matrix(state.covariance, share, X[rows], state.X)
        mean[rows] = k @ part.weights
        variance[rows] -= part.blocks.lost(k)
    return mean, np.maximum(variance, 0.0)


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: some fifteen sweeps an evaluation, or thirty factors an iteration of a chain."""
    if config.inference == "mcmc":
        return config.chains * (config.warmup + config.samples) * 30.0 * (1.5e-4 + 1.6e-11 * n**3 + 6e-11 * n**2 * d)
    sweeps = 15.0 * (2e-4 + 5e-6 * n + 3e-11 * n**3)
    evaluation = (15.0 if config.nu == "integrate" else 1.0) * (sweeps + 1e-9 * n**2 * d)
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
    warmup={
        "starts": 1, "steps": 2, "lengthscale": None, "weight_variance": None,
        "chains": 2, "samples": 4, "warmup": 2, "stored": 4,
    },
    space={"inference": {"choice": ["ep", "laplace"]}, "kernel": {"choice": ["se", "matern32", "matern52"]}},
)  # fmt: skip
