"""Robust Gaussian-process regression: a Student-t likelihood, by EP, Laplace's method, variational bounds or MCMC.

Jylanki, Vanhatalo and Vehtari (2011). Targets are y = f(x) + noise. The noise has a t distribution with nu degrees of
freedom and scale sigma, which is not its standard deviation. f has mean 0 and a covariance from
``ep_bench.covariances``. Predictions integrate the t, as a mixture of Gaussians (``scale_mixture``), over the Gaussian
posterior of f.

Hyperparameters are learned by L-BFGS on their logarithms, with the gradient at the fixed point of the inference; those
of ``fvb`` by EM. Within a search, EP starts from the sites of nearby points and follows their fixed point
(``warm_start``). Reported values are computed from empty sites at the end, unless sweeps converge only from the nearby
sites. An inference that does not converge raises an error with the hyperparameters and the schemes tried. If a search
ends where the fixed point that it follows ends, it counts as not converged. ``nu: integrate`` averages over nu
(``learning``). With ``inference: mcmc`` Markov chains sample the hyperparameters that are not fixed, and their
convergence is judged by the predictions, as in ``hmc``.

EP may converge where its evidence is too high. After a search, the evidence is compared with that of fraction 0.5,
which is closer to annealed importance sampling. By default (``evidence_check``) the search avoids such hyperparameters.

Modules: ``options``, ``inference`` (evidence at fixed hyperparameters), ``learning`` (hyperparameters), ``state``
(posteriors and predictions). Of EP: ``ep``, ``sites``, ``sweeps``, ``double_loop``, ``newton``, ``tilted``. Other
inferences: ``laplace``, ``variational``, ``em``, ``kl``, ``sampling`` with ``chain`` and ``fixed_scales``.
``moment_matching`` has the double loop of the paper, ``posterior`` linear algebra of all inferences, ``annealing`` the
evidence by annealed importance sampling.

Deviation: ``kl`` is not among the inferences of the paper. Hyperparameters have wide priors
(``covariances.hyperparameters``); ``prior: none`` makes them flat. The prior of ``nu: integrate`` is then flat on the
scale of log log nu, as in the paper.
"""

from __future__ import annotations

import warnings

import numpy as np

from ep_bench.covariances.replicates import unbounded_evidence
from ep_bench.methods.gp_t import learning, sampling
from ep_bench.methods.gp_t.inference import problem_of
from ep_bench.methods.gp_t.state import State
from ep_bench.methods.gp_t.student_t_config import Config
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

SCALE = -2  # place of the scale among the hyperparameters; the last one is nu


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per iteration. The trace has ``objective``, as that of ``gp``, of the
    most probable part; with ``inference: mcmc`` it has ``log_joint`` (nats), ``scale`` and ``nu``, means over the
    chains, warm-up first. Warns with a UserWarning if repeated inputs always have equal targets, unless the scale is
    fixed. Raises FloatingPointError if the inference does not converge at fixed hyperparameters or at any start.
    """
    problem = problem_of(train, config)
    repeats = unbounded_evidence(train.X, train.y) if np.isnan(problem.hyper.fixed[SCALE]) else ""
    if repeats and config.optimize:
        warnings.warn(repeats, UserWarning, stacklevel=2)
    if config.inference == "mcmc":
        return sampling.fit(problem, rng)
    state, path = (learning.over_nu if config.nu == "integrate" else learning.at_one_nu)(problem, rng)
    return state, {"objective": [value / len(problem.y) for value in path]} if path else {}


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures of Gaussians at inputs X (n, d), standardised units, noise included; ``rng`` is not used."""
    return state.predict(X)


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at inputs X (n, d), standardised units."""
    return state.latent(X)


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the seconds of a fit on one core: 15 sweeps per evaluation, or 30 factorisations per MCMC iteration."""
    if config.inference == "mcmc":
        return config.chains * (config.warmup + config.samples) * 30.0 * (1.5e-4 + 1.6e-11 * n**3 + 6e-11 * n**2 * d)
    sweeps = 15.0 * (2e-4 + 5e-6 * n + 3e-11 * n**3)
    repeats = (15.0 if config.nu == "integrate" else 1.0) * (2.0 if config.evidence_check else 1.0)
    evaluation = repeats * (sweeps + 1e-9 * n**2 * d)
    return evaluation * (config.starts * min(config.steps, 60) if config.optimize else 1)


METHOD = Method(
    name="gp_t",
    equality="stable",
    version=1,
    title="Gaussian process, Student-t noise",
    paper="Jylanki, Vanhatalo and Vehtari (2011)",
    style=("GP", "D"),
    density="t integrated over a Gaussian, or mixture over draws",
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
