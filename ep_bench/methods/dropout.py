"""Monte Carlo dropout: Gal and Ghahramani (2016), the Dropout-1 of Bui et al. (2015).

A network of rectified linear units, with dropout at ``rate`` before every layer and on the inputs, is fitted by Adam.
The loss is the mean squared error plus an L2 penalty on the weights, but not on the biases, with the factor

    lambda = lengthscale^2 (1 - rate) / (2 N tau),

where tau is the precision of the noise; the constant is that of the authors' program. Dropout is also active at test
time: the predictive distribution is the mixture of N(f_t, 1 / tau) over ``passes`` stochastic passes f_t.

``tune`` searches the rate on validation data points, in the grid of the authors' program. If ``tau`` is not set, it
maximises the mean log predictive density of ``validation_fraction`` of the training data under a first fit, which does
not use them and whose penalty has tau = 1. A second fit uses all training data.

Symbols: Z are the outputs of a layer; a mask element is 0 or 1 / (1 - rate).

Deviation: each pass uses one mask for all test data points. The distribution at each of them is unchanged, each pass is
a function of the inputs, and predictions do not depend on the other test data points.
Deviation: tau is in units of the standardised target, and a one-dimensional search finds it. The paper and the authors'
program search a grid of rate and tau, in original units, which differs between data sets.
Deviation: 4,000 epochs, as in the experiments that are stored with the program; the paper has 400.
Deviation: minibatches have 32 data points and the step size is 0.005, where the program has 128 and 0.001. The density
of validation points of boston and yacht decided.
Deviation: 1,000 passes, where the program has 10,000.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.models import mlp
from ep_bench.models.held_out_noise import most_likely_precision
from ep_bench.models.mlp import backward
from ep_bench.numerics.adam import AdamMoments, adam_step, clear_vanished, moments
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.numerics.minibatch import hold_out, run_epochs
from ep_bench.numerics.normal_rng import fill_masks, stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

PAPER_EPOCHS, STORED_EPOCHS = 400, 4000  # of the paper, and of the results that are stored with the authors' program


class Config(BaseModel):
    """Options of Monte Carlo dropout."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), min_length=1, description="units per hidden layer; the paper: 50, and 100 for year and protein"
    )
    rate: float = Field(
        0.05,
        ge=0.0,
        lt=1.0,
        description="probability that an input or unit is dropped; the program's grid: 0.005 to 0.1",
    )
    tau: PositiveFloat | None = Field(
        None,
        description="precision of the noise, per squared unit of the standardised target; tuned in the paper; "
        "by default from validation data points",
    )
    validation_fraction: float = Field(
        0.2, gt=0.0, lt=1.0, description="fraction of the training data that determines tau if it is not set; ours"
    )
    lengthscale: PositiveFloat = Field(1e-2, description="prior lengthscale; the program: 0.01")
    epochs: PositiveInt = Field(
        STORED_EPOCHS, description="passes over the training data; the program: 100 times 40; the paper: 10 times 40"
    )
    batch_size: PositiveInt = Field(32, description="data points per step; the program: 128")
    learning_rate: PositiveFloat = Field(5e-3, description="step size of Adam; the program: 0.001")
    passes: PositiveInt = Field(1000, description="stochastic passes per prediction; the program: 10,000")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.tau and self.validation_fraction != type(self).model_fields["validation_fraction"].default:
            raise ValueError("validation_fraction has no effect if tau is set; leave one of them out")
        return self


class State(NamedTuple):
    """Weights and noise variance in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,)
    rate: float
    noise_variance: float
    passes: int

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name; the noise variance is 1 / tau, standardised units."""
        return {"rate": self.rate, "noise_variance": self.noise_variance}


class BatchWorkspace(NamedTuple):
    """Scratch for a batch of B data points."""

    inputs: Any  # (B, d) after dropout
    Z: Any  # (B * units,)
    masks: Any  # (B * (d + units),) masks of the inputs, then of the hidden units
    D: Any  # (2, B * widest)
    f: Any  # (B,)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit a network to standardised data X (n, d), y (n,).

    Returns the state, and one value per epoch of ``objective``: the penalised mean squared error under dropout,
    averaged over the minibatches. Raises FloatingPointError if an epoch ends with a number that is not finite, or if
    the fit has diverged (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    tau = config.tau or _validation_tau(X, y, layers, config, rng)
    weights, trace = _descend(X, y, layers, config, tau, rng)
    return State(layers, weights, config.rate, 1.0 / tau, config.passes), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over stochastic passes at X (n, d), standardised units, noise included."""
    outputs = mlp.evaluate(X, _masked_networks(state, rng), state.layers)
    return Predictive.equal_mixture(outputs, state.noise_variance)


def _validation_tau(X: Array, y: Array, layers: Array, config: Config, rng: np.random.Generator) -> float:
    """Return the precision that maximises the mean log predictive density of validation data points."""
    if len(y) == 1:
        return 1.0  # there are no validation data; 1 is the precision of a standardised target
    fitted, validation = hold_out(len(y), config.validation_fraction, rng)
    weights, _ = _descend(X[fitted], y[fitted], layers, config, 1.0, rng)
    networks = _masked_networks(State(layers, weights, config.rate, 1.0, config.passes), rng)
    return most_likely_precision((y[validation] - mlp.evaluate(X[validation], networks, layers)) ** 2)


def _descend(
    X: Array, y: Array, layers: Array, config: Config, tau: float, rng: np.random.Generator
) -> tuple[Array, dict[str, list[float]]]:
    """Return weights (P,) fitted to X (n, d), y (n,), and the trace."""
    n, weights = len(y), mlp.initial_weights(layers, rng)
    rows = min(config.batch_size, n)
    penalty = _penalty(layers, config.lengthscale**2 * (1.0 - config.rate) / (2.0 * n * tau))
    work, state, gradient = _workspace(layers, rows), moments(len(weights)), np.empty_like(weights)
    words = stream(rng)

    def run_epoch(epoch: int, order: NDArray[np.int64]) -> float:  # noqa: ARG001 - the signature of run_epochs
        loss = _epoch(
            X, y, order, rows, weights, state, gradient, layers, penalty, config.rate, config.learning_rate, words, work
        )
        return float(loss)

    trace = run_epochs(range(config.epochs), run_epoch, weights, n, rng)
    mlp.refuse_divergence(weights, layers, X, y)
    return weights, trace


def _masked_networks(state: State, rng: np.random.Generator) -> Array:
    """Return the networks (passes, P) under random masks: weights of dropped inputs are 0, the others are scaled."""
    networks = np.repeat(state.weights[None], state.passes, axis=0)
    for offset, n_in, n_out in state.layers.tolist():
        kept = (rng.random((state.passes, n_in)) >= state.rate) / (1.0 - state.rate)
        part = networks[:, offset : offset + n_in * n_out].reshape(state.passes, n_in, n_out)
        networks[:, offset : offset + n_in * n_out] = (part * kept[:, :, None]).reshape(state.passes, -1)
    return networks


@jit(relaxed=REORDER)
def _epoch(
    X: Any, y: Any, order: Any, batch: int, weights: Any, state: AdamMoments, gradient: Any, layers: Any, penalty: Any,
    rate: float, step: float, words: Any, work: BatchWorkspace,
) -> float:  # fmt: skip
    """Apply one step of Adam per batch of the data, visited in the given order; return the mean of the losses.

    X (N, d), y (N,), order (N,), layers (L, 3); weights, gradient and penalty (P,); words of ``normal_rng.stream``.
    """
    total, steps, targets = 0.0, 0, np.empty(batch)
    for start in range(0, order.size, batch):
        rows = min(batch, order.size - start)
        copy_rows(X, y, order[start : start + rows], work.inputs, targets)
        fill_masks(words, rate, work.masks)
        inputs = work.inputs[:rows]
        for b in range(rows):
            for i in range(inputs.shape[1]):
                inputs[b, i] *= work.masks[b * inputs.shape[1] + i]
        total += penalised_loss(inputs, targets[:rows], weights, layers, penalty, rate, work, gradient)
        adam_step(weights, gradient, state, step)
        steps += 1
    clear_vanished(weights, state)  # the penalty shrinks the weights of unused units exponentially
    return total / steps


@jit(relaxed=REORDER)
def penalised_loss(
    inputs: Any, y: Any, weights: Any, layers: Any, penalty: Any, rate: float, work: BatchWorkspace, gradient: Any
) -> float:
    """Return the mean squared error of masked inputs (B, d) under the masks in ``work``, plus sum(penalty w^2).

    y (B,), weights and penalty (P,), layers (L, 3); writes ``gradient`` (P,).
    """
    rows = len(y)
    f = work.f[:rows]
    _masked_forward(inputs, weights, layers, work.Z, work.masks[rows * inputs.shape[1] :], f)
    loss = 0.0
    for b in range(rows):
        residual = f[b] - y[b]
        loss += residual * residual / rows
        f[b] = 2.0 * residual / rows
    backward(inputs, weights, layers, work.Z, f, 1.0 / (1.0 - rate), gradient, work.D)
    for i in range(weights.size):
        loss += penalty[i] * weights[i] * weights[i]
        gradient[i] += 2.0 * penalty[i] * weights[i]
    return loss


@jit(relaxed=REORDER)
def _masked_forward(X: Any, w: Any, layers: Any, Z: Any, masks: Any, f: Any) -> None:
    """Do the same as ``mlp.forward``, with the outputs of the hidden units multiplied by masks (B * units,)."""
    rows, at = X.shape[0], 0
    inputs = X
    for l in range(layers.shape[0] - 1):
        offset, n_in, n_out = layers[l]
        end = offset + n_in * n_out
        outputs = Z[at : at + rows * n_out].reshape(rows, n_out)
        mask = masks[at : at + rows * n_out].reshape(rows, n_out)
        np.dot(inputs, w[offset:end].reshape(n_in, n_out), outputs)
        for b in range(rows):
            for j in range(n_out):
                outputs[b, j] = max(outputs[b, j] + w[end + j], 0.0) * mask[b, j]
        inputs = outputs
        at += rows * n_out
    offset, n_in, _ = layers[-1]
    np.dot(inputs, w[offset : offset + n_in], f)
    for b in range(rows):
        f[b] += w[offset + n_in]


def _penalty(layers: Array, size: float) -> Array:
    """Return the L2 penalty (P,) per weight, 0 for the biases."""
    parts = []
    for _, n_in, n_out in layers.tolist():
        parts += [np.full(n_in * n_out, size), np.zeros(n_out)]
    return np.concatenate(parts)


def _workspace(layers: Array, rows: int) -> BatchWorkspace:
    units, widest, inputs = mlp.units(layers), mlp.widest(layers), int(layers[0, 1])
    return BatchWorkspace(
        np.empty((rows, inputs)), np.empty(rows * units), np.empty(rows * (inputs + units)),
        np.empty((2, rows * widest)), np.empty(rows),
    )  # fmt: skip


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core: draws by units, products by weights."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    fits = 1.0 if config.tau else 2.0 - config.validation_fraction
    return fits * config.epochs * n * (1e-9 * (d + 2 * sum(config.hidden)) + 0.07e-9 * weights + 0.025e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration, by its units and epochs; MC-dropout-1 has 4,000 epochs."""
    if config.hidden not in {(50,), (100,)} or config.epochs < PAPER_EPOCHS:
        return ()
    quoted = ("Dropout-1", "MC-dropout-1 (as quoted)")
    return (*quoted, "MC-dropout-1") if config.epochs >= STORED_EPOCHS else quoted


METHOD = Method(
    name="dropout",
    equality="stable",
    version=1,
    title="Monte Carlo dropout",
    paper="Gal and Ghahramani (2016)",
    style=("ensembles, point", "D"),
    bibtex="""
    @inproceedings{gal2016, author = {Gal, Yarin and Ghahramani, Zoubin},
      title = {{Dropout as a Bayesian Approximation: Representing Model Uncertainty in Deep Learning}},
      booktitle = {Proceedings of the 33rd International Conference on Machine Learning}, volume = {48},
      year = {2016}, pages = {1050--1059}}""",
    density="mixture over passes",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "passes": 5},
    validated=lambda config: "" if config.tau else "tau",
    published=_published,
    space={"rate": {"choice": [0.005, 0.01, 0.05, 0.1]}},
)
