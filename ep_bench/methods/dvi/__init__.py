"""Deterministic variational inference: A. Wu, S. Nowozin, E. Meeds and others, ICLR 2019.

Model: a network of rectified units with Gaussian noise, whose log variance is a second output, or constant. A
factorised Gaussian q(w) maximises the variational bound without draws: moments of the units are propagated in closed
form, the outputs are taken as Gaussian, and the expected log-likelihood follows (``moments``). With the log variance l
of the noise and output f, jointly Gaussian with variances s_ll, s_ff and covariance s_fl,

    -E log N(y | f, exp l) = [log 2 pi + l + exp(s_ll / 2 - l) (s_ff + (f - s_fl - y)^2)] / 2

The variance of the prior of each layer is set by empirical Bayes (``models.empirical_prior``).

With one hidden layer, as in the paper's comparison on these data sets, moments of the outputs are exact and the method
is DVI. With several, covariances between units are left out, which the paper calls dDVI.

Predictions with learned noise average N(y | f, exp l) over l by Gauss-Hermite quadrature, with f given l Gaussian.

Deviation: log p of the prior variances stays in the objective, which the authors' program leaves out; and initial
standard deviations are those of ``vi``, the paper draws means from the prior.
Deviation: Adam with 1,000 epochs, minibatches of 32 and a step size that falls to 0 over the second half, as in ``vi``.
The paper's program has a warm-up of the divergence and its own number of steps.
Deviation: with ``noise: homoscedastic`` the noise variance is optimised with the bound; the program fixes it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.methods.dvi import moments
from ep_bench.methods.dvi.training import run_epoch
from ep_bench.models import mlp
from ep_bench.models.empirical_prior import prior_groups
from ep_bench.numerics import adam
from ep_bench.numerics.minibatch import run_epochs
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

INITIAL_STD = 0.005
NODES = 20  # of the quadrature over the log noise variance


class Config(BaseModel):
    """Options of deterministic variational inference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; section 6: 50, and 100 for protein"
    )
    noise: Literal["heteroscedastic", "homoscedastic"] = Field(
        "heteroscedastic", description="noise variance by a second output (the paper), or one learned number"
    )
    epochs: PositiveInt = Field(1000, description="passes over the training data; ours")
    batch_size: PositiveInt = Field(32, description="data points per step; ours")
    learning_rate: PositiveFloat = Field(0.01, description="step size of Adam in the first half of the epochs; ours")


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``, with two outputs if the noise depends on the input
    mean: Array  # (P,)
    std: Array  # (P,) standard deviations
    prior_variance: Array  # (P,)
    noise_variance: float  # not used with two outputs

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units; ``prior_variance`` (P,) has one value per weight."""
        noise = {} if self.layers[-1, 2] == 2 else {"noise_variance": self.noise_variance}
        return {**noise, "prior_variance": self.prior_variance}


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per epoch: ``objective`` (the negative bound with the log density of
    the prior variances, mean over minibatches, nats per data point) and ``prior_variance`` (mean over the weights).

    Raises FloatingPointError if the objective or a parameter is not finite after an epoch, or the fit has diverged
    (``mlp.refuse_residuals``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden, 2 if config.noise == "heteroscedastic" else 1)
    theta, size = _initial(layers, rng), mlp.count(layers)
    batch = min(config.batch_size, len(y))
    prior_variance, groups = np.ones(size), prior_groups(layers, 0)
    steps, gradient, work = adam.moments(len(theta)), np.empty_like(theta), moments.workspace(layers, batch)

    def one_epoch(epoch: int, order: Indices) -> float:
        rate = config.learning_rate * min(1.0, 2.0 * (1.0 - epoch / config.epochs))
        value = run_epoch(X, y, order, batch, theta, steps, gradient, layers, work, prior_variance, groups, rate)
        return float(value / len(y))

    def monitor() -> dict[str, float]:
        return {"prior_variance": float(prior_variance.mean())}

    trace = run_epochs(range(config.epochs), one_epoch, theta, len(y), rng, monitor)
    state = State(layers, theta[:size].copy(), np.exp(theta[size:-1]), prior_variance, float(np.exp(theta[-1])))
    mlp.refuse_residuals(y - _outputs(state, X).f[:, 0], y)
    return state, trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return a Gaussian, or with learned noise a mixture over quadrature nodes, per data point of X (n, d).

    Standardised units, noise included; ``rng`` is not used.
    """
    found = _outputs(state, X)
    f, f_var = found.f[:, 0], found.f_var[:, 0]
    if state.layers[-1, 2] == 1:
        return Predictive.gaussian(f, f_var + state.noise_variance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    deviation = np.sqrt(found.f_var[:, 1])
    slope = found.c / deviation
    logs = found.f[:, 1] + nodes[:, None] * deviation
    means = f + nodes[:, None] * slope
    variances = np.maximum(f_var - slope**2, 0.0) + np.exp(logs)
    return Predictive(weights / weights.sum(), means, variances)


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return mean and variance of the function without noise at X (n, d)."""
    found = _outputs(state, X)
    return found.f[:, 0], found.f_var[:, 0]


def _outputs(state: State, X: Array) -> Any:
    """Return a workspace with the moments of the outputs at X (n, d)."""
    mlp.check_inputs(X, state.layers)
    work = moments.workspace(state.layers, len(X))
    theta = np.concatenate([state.mean, np.log(state.std), [0.0]])
    moments.fill_weights(theta, work)
    if len(X):
        moments.forward(theta, np.array(X, dtype=np.float64, order="C"), state.layers, work)
    return work


def _initial(layers: Array, rng: np.random.Generator) -> Array:
    """Return means, log standard deviations and log noise variance (2 P + 1,); means of the second output are 0."""
    means = mlp.initial_weights(layers, rng)
    offset, n_in, n_out = layers[-1].tolist()
    if n_out == 2:
        means[offset : offset + n_in * n_out].reshape(n_in, n_out)[:, 1] = 0.0
    return np.concatenate([means, np.full(len(means), np.log(INITIAL_STD)), [0.0]])


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.batch_size * (1.2e-9 * weights + 10e-9 * sum(config.hidden)) + 3e-8 * weights + 1e-5
    return config.epochs * n / config.batch_size * step


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration, by its layers and noise."""
    if config.hidden not in {(50,), (100,)}:
        return ()
    return ("DVI-1",) if config.noise == "heteroscedastic" else ("hoDVI-1 (homoscedastic)",)


METHOD = Method(
    name="dvi",
    equality="optimised",
    version=1,
    title="Deterministic variational inference",
    paper="Wu et al. (2019)",
    style=("variational", "^"),
    bibtex="""
    @inproceedings{wu2019,
      author = {Wu, Anqi and Nowozin, Sebastian and Meeds, Edward and Turner, Richard E. and Hernández-Lobato, José
        Miguel and Gaunt, Alexander L.},
      title = {{Deterministic Variational Inference for Robust Bayesian Neural Networks}},
      booktitle = {International Conference on Learning Representations}, year = {2019}}""",
    density="Gaussian, or mixture over the noise variance",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
    space={"learning_rate": {"log": [1e-3, 3e-2]}, "noise": {"choice": ["heteroscedastic", "homoscedastic"]}},
)
