"""Markov chains for the Student-t model on the mixture of normals: Jylanki et al. (2011), section 3.1; Neal (1997).

V      variances of the rows' noise (N,), V_i ~ Inv-chi^2(nu, sigma^2);  U = V / sigma^2
K      covariance of f at theta;  C = K + diag(V)
r      y - f

An iteration draws, each given the rest,

    theta, sigma | U           f integrated out: p(y | V) = N(0, C), V = sigma^2 U, by slice sampling of logarithms
    r | V, theta               exactly: with f0 ~ N(0, K), e ~ N(0, V) and u = C^-1 (y - f0 - e), r = e + V u
    sigma, nu | r              V integrated out: t densities of r, by slice sampling of logarithms
    V | r, sigma, nu           1 / V_i ~ Gamma((nu + 1) / 2, (nu sigma^2 + r_i^2) / 2)

The third and the fourth are one draw of (sigma, nu, V). That sigma is drawn with U held, and then with V integrated
out, does the work of the paper's V = alpha^2 U (Gelman et al. 2004) without a change of its prior. A draw of f0
is L g with a pivoted Cholesky factor L of K, ended at its numerical rank: what it leaves out is below rounding.

Slices lie along the axes, and, once a part of the warm-up has shown what the posterior looks like, along ellipses
(``numerics.slice_sampling``). A slice costs one Cholesky factor of C a point. Priors are those of the other inferences,
cut off at the limits of ``covariances.hyperparameters``.

Predictions are mixtures over draws of (theta, sigma, nu, V), f integrated out given each:
f* ~ N(k' w, k** - k' C^-1 k), w = C^-1 y, and the t by the coarse rule of ``scale_mixture``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import blocks
from ep_bench.methods.gp_t import fixed_scales, scale_mixture
from ep_bench.methods.gp_t.posterior import BLOCK
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.numerics import mcmc_diagnostics, slice_sampling, symmetric
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices

LINES = 1  # slices along random axes in an iteration, once there are ellipses
ELLIPSES = 4
TURNS = 3  # slices of sigma and of nu given r
FIRST_WIDTH = 1.0  # of a slice along an axis, natural logarithms
WIDTH = 2.5  # the same later, in deviations
WINDOWS = (0.125, 0.25, 0.5, 1.0)  # of the warm-up; at the end of each the ellipses are made of its draws


class StudentTModel(NamedTuple):
    """Training rows, the covariance and the hyperparameters (log sigma and log nu last)."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters


class SliceSamplingSchedule(NamedTuple):
    """How a chain runs."""

    warmup: int
    samples: int
    stored: int  # draws that are kept


class Draws(NamedTuple):
    """Draws of all chains, in the units that the method sees."""

    covariance: Covariance
    hyper: Hyperparameters
    X: Array  # (N, d)
    y: Array  # (N,)
    theta: Array  # (S, P) logarithms
    V: Array  # (S, N)
    chain: Indices  # (S,) of which chain each draw is
    chains: dict[str, Array]  # name -> (chains, draws)
    diagnostics: dict[str, float]
    n_iterations: int  # of all chains, warm-up included
    converged: bool  # whether the predictions have mixed

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Medians of the draws by name, standardised units."""
        return self.hyper.values(np.median(self.theta, axis=0))


class StudentTChain(NamedTuple):
    """What a chain leaves; S draws are kept of ``samples`` iterations."""

    theta: Array  # (S, P) logarithms
    V: Array  # (S, N)
    thetas: Array  # (samples, P)
    log_joint: Array  # (samples,) nats
    predictions: Array  # (samples, M) at the watched rows
    evaluations: int  # Cholesky factors
    warmup_trace: dict[str, list[float]]


class ChainWalker:
    """The moving part of a chain: hyperparameters and the variances of the noise."""

    def __init__(self, model: StudentTModel, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        hyper = model.hyper
        self.theta = hyper.random_start(rng)
        self.theta = np.where(hyper.free, np.clip(self.theta, hyper.low, hyper.high), self.theta)
        self.workspace = symmetric.square(len(model.y))
        self.evaluations = 0
        self.free = free = np.flatnonzero(hyper.free)
        self.limits = tuple(part[free] for part in (hyper.median, hyper.deviation, hyper.low, hyper.high))
        self.sliced = free[free < len(self.theta) - 1]  # theta and sigma
        self.likelihood = free[free >= len(self.theta) - 2]  # sigma and nu
        self.widths = np.full(len(self.theta), FIRST_WIDTH)
        self.law: slice_sampling.StudentTApproximation | None = None
        self.V = self.draw_scales(model.y)
        self.weights, self.log_targets = self.factorise()

    def step(self) -> None:
        """Take one iteration."""
        self.draw_hyperparameters()
        r = self.draw_residuals()
        self.draw_likelihood(r)
        self.V = self.draw_scales(r)
        self.weights, self.log_targets = self.factorise()

    def factorise(self) -> tuple[Array, float]:
        """Return w and log p(y | V), the factor of C in the room."""
        X, y, covariance, _ = self.model
        self.evaluations += 1
        try:
            found = fixed_scales.factorised(covariance, self.theta[:-2], X, y, self.V, self.workspace)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; at {self.model.hyper.words(self.theta)}") from None
        return found.weights, found.log_evidence

    def draw_hyperparameters(self) -> None:
        """Draw theta and sigma given U."""
        if len(self.sliced) == 0:
            return
        U, theta = self.V * math.exp(-2.0 * self.theta[-2]), self.theta.copy()

        def log_density(x: Array) -> float:
            theta[self.sliced] = x
            return self._log_density(theta, U)

        at = slice_sampling.ChainPoint(self.theta[self.sliced], self.log_targets + self._log_prior(theta))
        axes = np.arange(len(self.sliced))
        if self.law is not None:
            for _ in range(ELLIPSES):
                at = slice_sampling.update_on_ellipse(log_density, at, self.law, self.rng)
            axes = self.rng.choice(axes, min(LINES, len(axes)), replace=False)
        for axis in axes:
            direction = np.zeros(len(self.sliced))
            direction[axis] = self.widths[self.sliced[axis]]
            at = slice_sampling.update_along_line(log_density, at, direction, self.rng)
        self.theta[self.sliced] = at.x
        self.V = U * math.exp(2.0 * self.theta[-2])

    def _log_density(self, theta: Array, U: Array) -> float:
        X, y, covariance, _ = self.model
        log_prior = self._log_prior(theta)
        if log_prior == -math.inf:
            return log_prior
        self.evaluations += 1
        V = U * math.exp(2.0 * theta[-2])
        try:
            found = fixed_scales.factorised(covariance, theta[:-2], X, y, V, self.workspace)
        except FloatingPointError:
            return -math.inf
        return found.log_evidence + log_prior

    def _log_prior(self, theta: Array) -> float:
        """Return ``Hyperparameters.log_prior`` up to a constant; there is no density beyond the limits."""
        median, deviation, low, high = self.limits
        x = theta[self.free]
        if (x < low).any() or (x > high).any():
            return -math.inf
        z = (x - median) / deviation
        return -0.5 * float(z @ z)

    def draw_residuals(self) -> Array:
        """Return a draw of r (N,) given V and theta."""
        X, y, covariance, _ = self.model
        covariance.fill(self.theta[:-2], X, self.workspace)
        f0 = draw_prior(self.workspace, self.rng)
        e = np.sqrt(self.V) * self.rng.standard_normal(len(y))
        self.factorise()
        return np.asarray(e + self.V * symmetric.solve(self.workspace, y - f0 - e))

    def draw_likelihood(self, r: Array) -> None:
        """Draw sigma and nu given r (N,)."""
        theta = self.theta.copy()

        def log_density(x: Array) -> float:
            theta[-2:] = x
            log_prior = self._log_prior(theta)
            return log_prior if log_prior == -math.inf else log_t(r, theta) + log_prior

        at = slice_sampling.ChainPoint(theta[-2:].copy(), log_density(theta[-2:].copy()))
        for _ in range(TURNS):
            for place in self.likelihood:
                direction = np.zeros(2)
                direction[place - len(theta) + 2] = self.widths[place]
                at = slice_sampling.update_along_line(log_density, at, direction, self.rng)
        self.theta[-2:] = at.x

    def draw_scales(self, r: Array) -> Array:
        """Return a draw of V (N,) given r (N,), sigma and nu."""
        scale, nu = np.exp(self.theta[-2:])
        return 0.5 * (nu * scale**2 + r**2) / self.rng.standard_gamma(0.5 * (nu + 1.0), len(r))

    def log_joint(self) -> float:
        """Return the log density (nats) of targets, variances and hyperparameters."""
        scale, nu = np.exp(self.theta[-2:])
        k = 0.5 * nu
        scales = k * math.log(k * scale**2) - gammaln(k) - (k + 1.0) * np.log(self.V) - k * scale**2 / self.V
        return self.log_targets + float(scales.sum()) + self.model.hyper.log_prior(self.theta)[0]

    def adapt(self, thetas: Array) -> None:
        """Take the ellipses and the widths of the slices from draws (n, P)."""
        if len(self.sliced) and len(thetas) > 1:
            self.law = slice_sampling.StudentTApproximation.of(thetas[:, self.sliced])
        deviations = thetas.std(axis=0)
        self.widths = np.where(deviations > 0.0, WIDTH * deviations, FIRST_WIDTH)


def draw_prior(K: Array, rng: np.random.Generator) -> Array:
    """Return a draw (n,) of N(0, K); the lower triangle K (n, n) is used up."""
    found, pivots, rank, _ = lapack.dpstrf(K.T, lower=0, overwrite_a=1)
    f = np.empty(len(K))
    f[pivots - 1] = np.tril(found.T)[:, :rank] @ rng.standard_normal(rank)
    return f


def log_t(r: Array, theta: Array) -> float:
    """Return the sum of the log t densities of r (N,), log sigma and log nu the last of theta (P,)."""
    scale, nu = math.exp(theta[-2]), math.exp(theta[-1])
    s2 = nu * scale**2
    constant = log_constant(nu, scale**2)
    return float(len(r) * constant - 0.5 * (nu + 1.0) * np.log1p(r**2 / s2).sum())


def run(
    model: StudentTModel, schedule: SliceSamplingSchedule, watched: Array, rngs: Sequence[np.random.Generator]
) -> list[StudentTChain]:
    """Return one chain a generator; the predictions for the rows ``watched`` (M, d) are kept of every draw.

    The chains run apart, but for the ellipses and widths of their slices, which rest on the warm-up of all.
    Raises FloatingPointError, with the hyperparameters, where a covariance of the targets cannot be factorised.
    """
    walkers = [ChainWalker(model, rng) for rng in rngs]
    traces: list[dict[str, list[float]]] = [{"log_joint": [], "scale": [], "nu": []} for _ in walkers]
    window: list[Array] = []
    ends = [int(schedule.warmup * part) for part in WINDOWS]
    for iteration in range(1, schedule.warmup + 1):
        for walker, trace in zip(walkers, traces, strict=True):
            walker.step()
            _note(trace, walker)
        window.append(np.array([walker.theta for walker in walkers]))
        if iteration in ends:
            late = window[len(window) // 2 :] if iteration == ends[0] else window
            for walker in walkers:
                walker.adapt(np.concatenate(late))
            window = []
    return [_sample(walker, schedule, trace, watched) for walker, trace in zip(walkers, traces, strict=True)]


def _note(trace: dict[str, list[float]], walker: ChainWalker) -> None:
    trace["log_joint"].append(walker.log_joint())
    for name, value in zip(("scale", "nu"), np.exp(walker.theta[-2:]), strict=True):
        trace[name].append(float(value))


def _sample(
    walker: ChainWalker, schedule: SliceSamplingSchedule, trace: dict[str, list[float]], watched: Array
) -> StudentTChain:
    """Draw; the kept draws stand evenly among all."""
    model, n = walker.model, schedule.samples
    kept = np.unique(np.linspace(0, n - 1, min(schedule.stored, n)).round().astype(int))
    thetas, log_joint, predictions = np.empty((n, len(walker.theta))), np.empty(n), np.empty((n, len(watched)))
    V, place = np.empty((len(kept), len(model.y))), {int(at): index for index, at in enumerate(kept)}
    for at in range(n):
        walker.step()
        thetas[at], log_joint[at] = walker.theta, walker.log_joint()
        predictions[at] = matrix(model.covariance, walker.theta[:-2], watched, model.X) @ walker.weights
        if at in place:
            V[place[at]] = walker.V
    return StudentTChain(thetas[kept], V, thetas, log_joint, predictions, walker.evaluations, trace)


def draws(model: StudentTModel, chains: Sequence[StudentTChain], schedule: SliceSamplingSchedule) -> Draws:
    """Return the state that chains leave."""
    series, found = summarise(model, chains)
    theta, V = (np.concatenate([getattr(chain, name) for chain in chains]) for name in ("theta", "V"))
    of = np.repeat(np.arange(len(chains)), [len(chain.theta) for chain in chains])
    iterations = len(chains) * (schedule.warmup + schedule.samples)
    return Draws(
        model.covariance, model.hyper, model.X, model.y, theta, V, of, series, found, iterations,
        not problem(found, len(chains), schedule.samples),
    )  # fmt: skip


def summarise(model: StudentTModel, chains: Sequence[StudentTChain]) -> tuple[dict[str, Array], dict[str, float]]:
    """Return monitored series, each (chains, draws), and diagnostics.

    The series are ``log_joint`` (nats), the hyperparameters that are drawn, by name (``lengthscale_1`` and so on where
    there are several), and ``prediction``, the mean at the watched row whose R-hat is the largest, standardised units.
    R-hat and effective sample sizes are ``mixing.measures``, of several hyperparameters of a name the worst.
    """
    places = mcmc_diagnostics.monitored_draws(len(chains[0].log_joint))
    series = {"log_joint": np.array([chain.log_joint[places] for chain in chains])}
    found = mcmc_diagnostics.measures("log_joint", series["log_joint"][:, :, None])[0]
    values = np.exp(np.array([chain.thetas[places] for chain in chains]))
    names = np.array(model.hyper.names)
    for name in dict.fromkeys(names[model.hyper.free].tolist()):
        own = np.flatnonzero((names == name) & model.hyper.free)
        found |= mcmc_diagnostics.measures(name, values[:, :, own])[0]
        numbered = [name] if len(own) == 1 else [f"{name}_{i + 1}" for i in range(len(own))]
        series |= {one: values[:, :, at] for one, at in zip(numbered, own, strict=True)}
    predictions = np.array([chain.predictions[places] for chain in chains])
    measures, worst = mcmc_diagnostics.measures("predictions", predictions)
    series["prediction"] = predictions[:, :, worst]
    return series, found | measures | {"factorisations": float(sum(chain.evaluations for chain in chains))}


def problem(found: Mapping[str, float], chains: int, samples: int) -> str:
    """Return why the chains are not taken for mixed, or ''."""
    reason = mcmc_diagnostics.unmixed(found, f"{chains} {'chain' if chains == 1 else 'chains'} of {samples} draws")
    return f"{reason}; a longer warm-up and more samples may help" if reason else ""


def trace(chains: Sequence[StudentTChain]) -> dict[str, list[float]]:
    """Return one value an iteration of what chains monitor, warm-up first, means over the chains."""
    after = [
        {"log_joint": chain.log_joint, "scale": np.exp(chain.thetas[:, -2]), "nu": np.exp(chain.thetas[:, -1])}
        for chain in chains
    ]
    whole = {
        name: np.array([[*chain.warmup_trace[name], *late[name]] for chain, late in zip(chains, after, strict=True)])
        for name in chains[0].warmup_trace
    }
    return {name: values.mean(axis=0).tolist() for name, values in whole.items()}


def latents(state: Draws, X: Array) -> tuple[Array, Array]:
    """Return means and variances (S, n) of f at rows X (n, d) given each draw."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    workspace = symmetric.square(len(state.y))
    means, variances = np.empty((2, len(state.theta), len(X)))
    for at, (theta, V) in enumerate(zip(state.theta[:, :-2], state.V, strict=True)):
        w = fixed_scales.factorised(state.covariance, theta, state.X, state.y, V, workspace).weights
        variances[at] = state.covariance.diagonal(theta, X)
        for rows in blocks(len(X), len(state.X), BLOCK):
            k = matrix(state.covariance, theta, X[rows], state.X)
            means[at, rows] = k @ w
            half = symmetric.half_solve(workspace, k)
            variances[at, rows] -= np.einsum("ij,ij->i", half, half)
    return means, np.maximum(variances, 0.0)


def predict(state: Draws, X: Array) -> Predictive:
    """Return mixtures of ``normals.NODES`` Gaussians a draw for rows X (n, d), noise included."""
    means, variances = latents(state, X)
    laws = [(math.exp(theta[-1]), math.exp(theta[-2])) for theta in state.theta]
    rules = [scale_mixture.coarse(*law) for law in laws]
    beyond = sum(scale_mixture.missing_variance(*law, *rule) for law, rule in zip(laws, rules, strict=True)) / len(
        rules
    )
    weights = np.concatenate([weights for weights, _ in rules]) / len(rules)
    noise = np.concatenate([noise for _, noise in rules])
    every = np.repeat(np.arange(len(rules)), scale_mixture.NODES)
    return Predictive(weights, means[every], variances[every] + noise[:, None], beyond)


def latent(state: Draws, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d)."""
    means, variances = latents(state, X)
    return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)
