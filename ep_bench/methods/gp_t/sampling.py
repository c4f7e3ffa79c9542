"""Markov chains for the Student-t model: the fit, and predictions from stored draws.

The moves of a chain are in ``chain``, the loop and the diagnostics in ``numerics.mcmc``. Predictions are mixtures over
draws of (theta, sigma, nu, V), with f integrated out given each draw: f* ~ N(k' w, k** - k' C^-1 k), w = C^-1 y,
C = K + diag(V). The t is integrated by the coarse rule of ``scale_mixture``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import blocks
from ep_bench.methods.gp_t import fixed_scales, scale_mixture
from ep_bench.methods.gp_t.chain import PooledAdaptation, StudentTChain, StudentTModel
from ep_bench.methods.gp_t.inference import StudentTProblem
from ep_bench.methods.gp_t.posterior import BLOCK
from ep_bench.numerics import mcmc, mcmc_diagnostics, symmetric
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices


class Draws(NamedTuple):
    """Draws of all chains, in the units of the training data."""

    covariance: Covariance
    hyper: Hyperparameters
    X: Array  # (N, d)
    y: Array  # (N,)
    theta: Array  # (S, P) logarithms
    V: Array  # (S, N) noise variances
    chain: Indices  # (S,) chain of each draw
    chains: dict[str, Array]  # name -> (chains, draws)
    diagnostics: dict[str, float]
    n_iterations: int  # of all chains, warm-up included
    converged: bool  # whether R-hat of the predictions is below its limit

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Medians of the draws by name, standardised units."""
        return self.hyper.values(np.median(self.theta, axis=0))

    def predict(self, X: Array) -> Predictive:
        """Return mixtures of ``scale_mixture.NODES`` Gaussians per draw at inputs X (n, d), noise included."""
        means, variances = latents(self, X)
        parameters = [(math.exp(theta[-1]), math.exp(theta[-2])) for theta in self.theta]  # nu and sigma
        rules = [scale_mixture.coarse(*one) for one in parameters]
        missing = sum(
            scale_mixture.missing_variance(*one, *rule) for one, rule in zip(parameters, rules, strict=True)
        ) / len(rules)
        weights = np.concatenate([weights for weights, _ in rules]) / len(rules)
        noise = np.concatenate([noise for _, noise in rules])
        draw = np.repeat(np.arange(len(rules)), scale_mixture.NODES)
        return Predictive(weights, means[draw], variances[draw] + noise[:, None], missing)

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances (n,) of f at inputs X (n, d)."""
        means, variances = latents(self, X)
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)


def fit(problem: StudentTProblem, rng: np.random.Generator) -> tuple[Draws, dict[str, list[float]]]:
    """Return draws, and a trace of ``log_joint`` (nats), ``scale`` and ``nu``, means over the chains, warm-up first.

    Monitored series are ``log_joint``, the sampled hyperparameters by name (``lengthscale_1`` and so on if there are
    several), and ``prediction``, the mean of f. Warns with scikit-learn's ConvergenceWarning if the chains have not
    converged. Raises FloatingPointError, with the hyperparameters, if a covariance of the targets cannot be factorised.
    """
    config = problem.config
    model = StudentTModel(problem.X, problem.y, problem.covariance, sampled(problem))
    schedule = mcmc.Schedule(config.warmup, config.samples, config.stored)
    inputs = mcmc_diagnostics.monitored_inputs(model.X, rng)
    chains = [StudentTChain(model, inputs, stream) for stream in rng.spawn(config.chains)]
    records = mcmc.run(chains, schedule, PooledAdaptation(chains, config.warmup))
    evaluations = float(sum(chain.walker.evaluations for chain in chains))
    found = mcmc.summarise(records, schedule, {"factorisations": evaluations})
    mcmc.warn(found.problem, stacklevel=4)
    state = Draws(
        model.covariance, model.hyper, model.X, model.y, found.draws["theta"], found.draws["V"], found.chain,
        found.chains, found.diagnostics, len(chains) * (config.warmup + config.samples), not found.problem,
    )  # fmt: skip
    return state, found.trace


def sampled(problem: StudentTProblem) -> Hyperparameters:
    """Return the hyperparameters with those free that the chains sample.

    Without ``optimize`` none is sampled, except nu with ``nu: integrate``; the others are at the medians of the priors.
    """
    if problem.config.optimize:
        return problem.hyper
    fixed = problem.hyper.start()
    if problem.config.nu == "integrate":
        fixed[-1] = np.nan
    return replace(problem.hyper, fixed=fixed)


def latents(state: Draws, X: Array) -> tuple[Array, Array]:
    """Return means and variances (S, n) of f at inputs X (n, d) given each draw."""
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
