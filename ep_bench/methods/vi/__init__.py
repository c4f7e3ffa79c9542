"""Variational inference by reparameterisation: VI(KW) of Bui et al. (2015, section 8), after Kingma and Welling (2014).

A network of rectified linear units with Gaussian noise and weights w ~ N(0, 1). A factorised Gaussian q(w) maximises
the variational bound: its expected log-likelihood is estimated from draws w = m + s e on minibatches, its divergence
from the prior is closed. The noise variance is optimised with the bound. Predictions are mixtures over weight samples.

Options beyond that paper: local reparameterisation (Kingma, Salimans and Welling 2015), which draws the units' inputs
instead of the weights, and an empirical-Bayes prior, one variance a layer set to the maximum of the bound at each step.
With few or noisy rows that maximum is a prior without spread, and the network a constant (diabetes): the bound gains
more from weights that are no longer paid for than it loses in fit.

Modules: ``bound`` of a minibatch and its gradient, with the table of symbols, ``local_reparameterisation`` the same by
local reparameterisation, ``training`` the passes over the rows.

Deviation: the paper states neither optimiser nor steps nor starting point. Here: Adam, its step size falling to 0 over
the second half of the epochs; means N(0, 2 / n_in) (output N(0, 1 / n_in)), noise variance 1, deviations 0.005 (from
0.05 the bound of energy is still 0.9 nats a row worse after 1,000 epochs).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.methods.vi import bound, local_reparameterisation
from ep_bench.methods.vi.training import local_epoch, weights_epoch
from ep_bench.models import meanfield, mlp
from ep_bench.numerics.adam import moments
from ep_bench.numerics.normal_rng import stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

START_DEVIATION = 0.005


class Config(BaseModel):
    """Options of variational inference by reparameterisation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units of each hidden layer; Bui et al., section 8: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(1000, description="passes over the training rows; ours, the paper gives none")
    batch_size: PositiveInt = Field(32, description="rows a step; ours")
    samples: PositiveInt = Field(10, description="weight samples a step; ours")
    test_samples: PositiveInt = Field(100, description="weight samples of a prediction; ours")
    learning_rate: PositiveFloat = Field(0.01, description="of Adam, until it falls; ours")
    prior: Literal["fixed", "empirical"] = Field(
        "fixed", description="variance of the weights: fixed, or per layer by empirical Bayes; Bui et al.: fixed"
    )
    prior_variance: PositiveFloat = Field(
        1.0, description="of the weights, where the prior is fixed; Bui et al., section 8: 1"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="variance, in squared units of the standardised target; learned unless given"
    )
    local_reparameterization: bool = Field(
        False, description="draw the units' inputs instead of the weights, slower a step; Bui et al.: no"
    )


class State(NamedTuple):
    """Posterior of the weights, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    deviation: Array  # (P,) standard deviations
    prior_variance: Array  # (P,) that of the last step
    noise_variance: float
    test_samples: int


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,).

    Returns the state, and one value an epoch of ``objective`` (the mean over minibatches of the negative bound, nats,
    divided by n), ``noise_deviation`` (standardised) and, where the prior is empirical, ``prior_variance`` (the mean
    over the weights). Raises FloatingPointError where an epoch ends with a number that is not finite, or the last one
    with a network that is no fit (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    size, rows = mlp.count(layers), min(config.batch_size, len(y))
    theta = np.full(2 * size + 1, np.log(START_DEVIATION))
    theta[:size] = mlp.initial_weights(layers, rng)
    theta[-1] = np.log(config.noise_variance or 1.0)
    prior_variance = np.full(size, config.prior_variance)
    epoch_of, work, extra = _engine(config, layers, rows)
    steps, gradient, words = moments(len(theta)), np.empty_like(theta), stream(rng)
    trace: dict[str, list[float]] = {"objective": [], "noise_deviation": []}
    for epoch in range(config.epochs):
        objective = epoch_of(
            X, y, rng.permutation(len(y)), rows, theta, steps, gradient, layers, work, words, prior_variance,
            config.prior == "empirical", config.noise_variance is None, _rate(config, epoch), *extra,
        )  # fmt: skip
        _check(theta, objective, epoch + 1)
        trace["objective"].append(objective / len(y))
        trace["noise_deviation"].append(float(np.exp(0.5 * theta[-1])))
        if config.prior == "empirical":
            trace.setdefault("prior_variance", []).append(float(prior_variance.mean()))
    mean, deviation = theta[:size].copy(), np.exp(theta[size:-1])
    mlp.refuse_divergence(mean, layers, X, y)
    return State(layers, mean, deviation, prior_variance, float(np.exp(theta[-1])), config.test_samples), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples for rows X (n, d), standardised units, noise included."""
    outputs = meanfield.sample_networks(state.mean, state.deviation, state.test_samples, state.layers, X, rng)
    return Predictive.equal_mixture(outputs, state.noise_variance)


def _engine(config: Config, layers: Array, rows: int) -> tuple[Any, Any, tuple[int, ...]]:
    """Return the kernel of an epoch, its scratch and its further arguments."""
    size, units, widest = mlp.count(layers), mlp.units(layers), mlp.widest(layers)
    if config.local_reparameterization:
        copies = config.samples * rows
        return (
            local_epoch,
            local_reparameterisation.workspace(copies, size, units + 1, widest, int(layers[0, 1])),
            (config.samples,),
        )
    return weights_epoch, bound.workspace(config.samples, rows, size, units, widest), ()


def _rate(config: Config, epoch: int) -> float:
    """Return the step size of an epoch: constant for the first half, then falling to 0 in a straight line."""
    return config.learning_rate * min(1.0, 2.0 * (1.0 - epoch / config.epochs))


def _check(theta: Array, objective: float, epoch: int) -> None:
    """Raise FloatingPointError where the bound or a parameter is not finite."""
    if not np.isfinite(theta).all():
        raise FloatingPointError(f"epoch {epoch}: a parameter is not finite")
    if not np.isfinite(objective):
        raise FloatingPointError(f"epoch {epoch}: the bound is not finite")


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: samples by weights (draws) and by rows (products)."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.samples * (7e-9 * weights + config.batch_size * (0.22e-9 * weights + 1.5e-9 * sum(config.hidden)))
    slower = 4.0 if config.local_reparameterization else 1.0
    return slower * config.epochs * n / config.batch_size * (step + 2e-8 * weights + 5e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to, by its layers; Bui et al.'s where it is their model."""
    if config.noise_variance is not None or config.epochs < Config().epochs:
        return ()
    theirs = config.prior == "fixed" and config.prior_variance == 1.0 and not config.local_reparameterization
    if config.hidden in {(50,), (100,)}:
        later = ("MCVI-1 (mean-field reparam S=10)", "hoDVI-1 (homoscedastic)")
        return ("VI(KW)-1", *later) if theirs else later
    return ("VI(KW)-2",) if theirs and config.hidden in {(50, 50), (100, 100)} else ()


METHOD = Method(
    name="vi",
    version=1,
    title="Variational inference by reparameterisation",
    paper="Bui et al. (2015), after Kingma and Welling (2014)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 2, "test_samples": 5},
    published=_published,
    space={
        "learning_rate": {"log": [1e-3, 3e-2]},
        "prior_variance": {"log": [0.03, 3.0]},
    },
)
