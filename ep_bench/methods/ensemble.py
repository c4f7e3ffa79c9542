"""Deep ensembles: Lakshminarayanan, Pritzel and Blundell (NIPS 2017).

Each of M networks of rectified linear units has two outputs at an input x: a mean m(x) and a number a(x). The variance
of the observation is s(x) = log(1 + exp(a(x))) + s_min. Adam minimises the mean negative log-likelihood

    l(w) = mean_b [log(2 pi s_b) + (y_b - m_b)^2 / s_b] / 2

over minibatches b of the training data. Networks differ by their initial weights and by the order of the data points.
The predictive distribution is the mixture of the M Gaussians with equal weights. With ``adversarial``, half the loss is
that of the shifted inputs

    x' = x + epsilon r sign(dl / dx),

where r is the range of each input over the training data (the fast gradient sign method). The derivative of x' by the
weights is not used. Initial weights and biases are uniform on +-1 / sqrt(n_in), the default of Torch.

Symbols: w weights (P,) of one network, W those of all (M, P), F outputs (m, a) of a batch (B, 2).

Deviation: the step size of Adam is 0.01, where the paper has 0.1. With 0.1, the mean of single networks is far off at
some validation points: on two splits of boston, the validation RMSE after 100 epochs is 3.9 instead of 0.35.
Deviation: without ``epochs``, cross-validation determines the number of epochs. The training data have ``folds`` parts.
One ensemble per part, fitted without it, gives the log density of its points. Numbers of epochs in geometric
progression (80 up to the default of ``max_epochs``) are compared, until twice the best one so far, or ``max_epochs``.
As many parts are used as are necessary for ``validation_points``. The final ensemble uses all training data. The paper
has 40 epochs for every data set; the log density of validation points after 40 and after the chosen number is 1.2 and
2.7 on yacht, 0.9 and 2.0 on energy, -0.20 and -0.16 on concrete, -1.25 and -1.19 on wine, -0.24 and -0.22 on boston
(nats, standardised target; 20 % of the training data of splits 5 to 8 at most, not used by cross-validation).
Deviation: the density is that of the mixture. The log-likelihoods in the paper are of the Gaussian with the same mean
and variance, the column ``ll_gaussian`` of our results.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from ep_bench.models import mlp, two_outputs
from ep_bench.models.two_outputs import backward, forward
from ep_bench.numerics.adam import AdamMoments, adam_step, moments
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.minibatch import Trace, run_epochs
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

GROWTH = 2000 ** (1 / 79)  # ratio, about 1.1, of successive numbers of epochs that are compared on validation points
PATIENCE = 2.0  # the comparison ends at this multiple of the best number of epochs so far, at least MINIMUM
MINIMUM = 100  # epochs before the comparison may end
PAPER_EPOCHS = 40
EPSILON = 0.01  # shift of adversarial inputs in the paper


class Config(BaseModel):
    """Options of the ensemble."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    members: PositiveInt = Field(5, description="networks; the paper: 5")
    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; the paper: 50, and 100 for year and protein"
    )
    epochs: PositiveInt | None = Field(
        None, description="passes over the training data; the paper: 40; by default from cross-validation"
    )
    adversarial: bool = Field(
        False, description="whether half the loss is of adversarial inputs; optional in the paper"
    )
    epsilon: NonNegativeFloat = Field(
        EPSILON, description="shift of adversarial inputs, as a fraction of the range of each input; the paper: 0.01"
    )
    learning_rate: PositiveFloat = Field(0.01, description="step size of Adam; the paper: 0.1")
    batch_size: PositiveInt = Field(100, description="data points per step; the paper: 100")
    minimum_variance: PositiveFloat = Field(
        1e-6, description="lower limit of the variance, squared units of the standardised target; the paper: 1e-6"
    )
    folds: int = Field(5, ge=2, description="parts of the training data for cross-validation of the epochs; ours")
    validation_points: PositiveInt = Field(
        500, description="the first parts are used until they have this many data points, or all parts; ours"
    )
    max_epochs: PositiveInt = Field(2000, description="highest number of epochs that is compared; ours")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.epsilon != EPSILON and not self.adversarial:
            raise ValueError("epsilon is the shift of adversarial inputs; set adversarial: true, or leave it out")
        for name in ("folds", "validation_points", "max_epochs") if self.epochs else ():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect if epochs is set; leave one of them out")
        return self


class State(NamedTuple):
    """Weights of all networks in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (M, P)
    minimum_variance: float
    n_iterations: int  # epochs


class BatchWorkspace(NamedTuple):
    """Scratch for one minibatch of at most B data points."""

    inputs: Any  # (B, d)
    targets: Any  # (B,)
    Z: Any  # (B * units,) outputs of the hidden units
    F: Any  # (B, 2) outputs, then derivatives of the loss by them
    D: Any  # (2, B * widest)
    slopes: Any  # (B, d) derivatives of the loss by the inputs; no rows without adversarial inputs
    gradient: Any  # (2, P) gradients of the loss at the inputs and at the adversarial inputs


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, Trace]:
    """Fit the networks to standardised data X (n, d), y (n,).

    Warns with a UserWarning if cross-validation chooses more than half of ``max_epochs``, so that this limit ends the
    comparison. If a network diverges, cross-validation ends with the epochs compared so far.

    Returns the state, and one value per epoch of ``objective``: the loss before each step (nats per data point),
    averaged over steps and networks. Raises FloatingPointError if an epoch ends with a number that is not finite, or if
    the mean of a network has diverged (``mlp.refuse_divergence``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    epochs = config.epochs or _validated_epochs(X, y, config, rng)
    ensemble = _Ensemble(X, y, config, rng)
    trace = ensemble.train(range(epochs))
    for means in two_outputs.evaluate(X, ensemble.weights, ensemble.layers)[..., 0]:
        mlp.refuse_residuals(y - means, y)
    return State(ensemble.layers, ensemble.weights, config.minimum_variance, epochs), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return the mixture of the networks' Gaussians at X (n, d), standardised units; ``rng`` is not used."""
    return _mixture(X, state.weights, state.layers, state.minimum_variance)


def _mixture(X: Array, weights: Array, layers: Array, minimum_variance: float) -> Predictive:
    """Return the mixture of the Gaussians of networks with weights (M, P) at X (n, d)."""
    outputs = two_outputs.evaluate(X, weights, layers)
    variances = np.logaddexp(0.0, outputs[..., 1]) + minimum_variance
    return Predictive(np.full(len(outputs), 1.0 / len(outputs)), outputs[..., 0], variances)


def _validated_epochs(X: Array, y: Array, config: Config, rng: np.random.Generator) -> int:
    """Return the number of epochs with the highest log density of validation points of X (n, d), y (n,)."""
    if len(y) == 1:
        return PAPER_EPOCHS  # there are no validation points
    parts = _validation_parts(len(y), config, rng)
    ensembles = [_Ensemble(np.delete(X, part, axis=0), np.delete(y, part), config, rng) for part in parts]
    checks = _compared_epochs(config.max_epochs)
    best, highest = checks[0], -math.inf
    for epochs in pairwise([0, *checks]):
        stop = epochs[1]
        try:
            density = _validation_density(ensembles, parts, X, y, range(*epochs))
        except FloatingPointError:
            if highest == -math.inf:
                raise
            break  # more epochs are no choice
        if density > highest:
            best, highest = stop, density
        elif stop >= max(PATIENCE * best, MINIMUM):
            break
    else:
        if PATIENCE * best > config.max_epochs:
            words = f"{best} epochs are chosen, and none beyond max_epochs: {config.max_epochs} are compared"
            warnings.warn(f"{words}; more may be better", UserWarning, stacklevel=3)
    return int(best)


def _validation_density(
    ensembles: Sequence[_Ensemble], parts: Sequence[Indices], X: Array, y: Array, epochs: range
) -> float:
    """Train each ensemble for the given epochs; return the log density of all validation points (nats)."""
    density = 0.0
    for ensemble, part in zip(ensembles, parts, strict=True):
        ensemble.train(epochs)
        density += float(ensemble.predict(X[part]).logpdf(y[part]).sum())
    return density


def _compared_epochs(highest: int) -> list[int]:
    """Return numbers of epochs in geometric progression; the last one is ``highest``."""
    steps = np.arange(math.ceil(math.log(highest) / math.log(GROWTH)) + 1)
    return np.unique(np.minimum(np.rint(GROWTH**steps), highest).astype(int)).tolist()


def _validation_parts(n: int, config: Config, rng: np.random.Generator) -> list[Indices]:
    """Return the indices of the validation points of each part that is used."""
    parts = np.array_split(rng.permutation(n), min(config.folds, n))
    return parts[: math.ceil(config.validation_points * len(parts) / n)]


class _Ensemble:
    """Networks in training on standardised data X (n, d), y (n,)."""

    def __init__(self, X: Array, y: Array, config: Config, rng: np.random.Generator) -> None:
        self._X, self._y, self._config, self._rng = X, y, config, rng
        self.layers = mlp.layout(X.shape[1], config.hidden, outputs=2)
        self.weights = np.array([initial_weights(self.layers, rng) for _ in range(config.members)])
        self._moments = [moments(self.weights.shape[1]) for _ in range(config.members)]
        self._shift = config.epsilon * np.ptp(X, axis=0)
        self._work = workspace(self.layers, min(config.batch_size, len(y)), adversarial=config.adversarial)

    def train(self, epochs: range) -> Trace:
        """Train all networks for the given epochs; return the trace."""
        return run_epochs(epochs, self._run_epoch, self.weights, len(self._y), self._rng)

    def predict(self, X: Array) -> Predictive:
        """Return the mixture of the networks' Gaussians at X (n, d)."""
        return _mixture(X, self.weights, self.layers, self._config.minimum_variance)

    def _run_epoch(self, epoch: int, order: Indices) -> float:  # noqa: ARG002 - the signature of run_epochs
        """Train each network for one epoch, in an order of its own; return the mean loss."""
        total = 0.0
        for weights, state in zip(self.weights, self._moments, strict=True):
            total += train_epoch(
                self._X, self._y, self._rng.permutation(order), weights, state, self.layers,
                self._config.minimum_variance, self._shift, self._config.learning_rate, self._work,
            )  # fmt: skip
        return total / len(self.weights)


def initial_weights(layers: Array, rng: np.random.Generator) -> Array:
    """Return random weights (P,), uniform on +-1 / sqrt(n_in), biases included."""
    sizes = [(1.0 / math.sqrt(n_in), (n_in + 1) * n_out) for _, n_in, n_out in layers.tolist()]
    return np.concatenate([rng.uniform(-bound, bound, size) for bound, size in sizes])


def workspace(layers: Array, rows: int, *, adversarial: bool) -> BatchWorkspace:
    """Return scratch for minibatches of at most ``rows`` data points."""
    inputs = int(layers[0, 1])
    return BatchWorkspace(
        np.empty((rows, inputs)), np.empty(rows), np.empty(rows * mlp.units(layers)), np.empty((rows, 2)),
        np.empty((2, rows * mlp.widest(layers))), np.empty((rows if adversarial else 0, inputs)),
        np.empty((2, mlp.count(layers))),
    )  # fmt: skip


@jit(relaxed=REORDER)
def train_epoch(
    X: Any, y: Any, order: Any, w: Any, state: AdamMoments, layers: Any, minimum: float, shift: Any, rate: float,
    work: BatchWorkspace,
) -> float:  # fmt: skip
    """Apply one step of Adam per batch of the data, visited in the given order; return the mean loss per data point.

    X (N, d), y (N,), order (N,), w (P,), layers (L, 3); ``shift`` (d,) is the size of adversarial shifts.
    """
    total, size = 0.0, work.targets.size
    for start in range(0, order.size, size):
        rows = min(size, order.size - start)
        copy_rows(X, y, order[start : start + rows], work.inputs, work.targets)
        total += rows * step_loss(rows, w, layers, minimum, shift, work)
        adam_step(w, work.gradient[0], state, rate)
    return total / order.size


@jit(relaxed=REORDER)
def step_loss(rows: int, w: Any, layers: Any, minimum: float, shift: Any, work: BatchWorkspace) -> float:
    """Return the loss at the first ``rows`` data points in ``work``, and write its gradient to work.gradient[0].

    With adversarial inputs, the loss is the mean of that at the inputs and that at the shifted inputs, which replace
    the inputs in ``work``.
    """
    inputs, targets, slopes = work.inputs[:rows], work.targets[:rows], work.slopes[:rows]
    loss = network_loss(inputs, targets, w, layers, minimum, work, work.gradient[0], slopes)
    if slopes.shape[0] == 0:
        return loss
    for b in range(rows):
        for i in range(shift.size):
            inputs[b, i] += shift[i] * np.sign(slopes[b, i])
    other = network_loss(inputs, targets, w, layers, minimum, work, work.gradient[1], slopes[:0])
    for i in range(w.size):
        work.gradient[0, i] = 0.5 * (work.gradient[0, i] + work.gradient[1, i])
    return 0.5 * (loss + other)


@jit(relaxed=REORDER)
def network_loss(
    X: Any, y: Any, w: Any, layers: Any, minimum: float, work: BatchWorkspace, gradient: Any, slopes: Any
) -> float:
    """Return the mean negative log-likelihood of X (B, d), y (B,), and write its gradient (P,) by the weights w (P,).

    Also writes the derivatives by the inputs to ``slopes`` (B, d), unless it has no rows.
    """
    F = work.F[: y.size]
    forward(X, w, layers, work.Z, F)
    loss = negative_log_likelihood(y, minimum, F)
    backward(X, w, layers, work.Z, F, gradient, work.D, slopes)
    return loss


@jit(relaxed=FUSE)
def negative_log_likelihood(y: Any, minimum: float, F: Any) -> float:
    """Return the mean loss of outputs F (B, 2) at targets y (B,), and replace F by its derivatives."""
    total, rows = 0.0, y.size
    for b in range(rows):
        residual, raw = y[b] - F[b, 0], F[b, 1]
        decay = math.exp(-abs(raw))
        variance = max(raw, 0.0) + math.log1p(decay) + minimum
        slope = (1.0 if raw >= 0.0 else decay) / (1.0 + decay)  # of the variance by the raw output
        square = residual * residual / variance
        total += 0.5 * (math.log(2.0 * math.pi * variance) + square)
        F[b, 0] = -residual / (variance * rows)
        F[b, 1] = 0.5 * (1.0 - square) * slope / (variance * rows)
    return total / rows


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core; the number of epochs is unknown before the fit."""
    weights = mlp.count(mlp.layout(d, config.hidden, outputs=2))
    parts = min(config.folds, math.ceil(config.validation_points * config.folds / n))
    epochs = config.epochs or 0.5 * config.max_epochs * (1.0 + 1.5 * parts * (1.0 - 1.0 / config.folds))
    passes = 2.0 if config.adversarial else 1.0
    return epochs * config.members * n * passes * (0.15e-9 * weights + 0.05e-6)


METHOD = Method(
    name="ensemble",
    equality="stable",
    version=1,
    title="Deep ensemble",
    paper="Lakshminarayanan, Pritzel and Blundell (2017)",
    style=("ensembles, point", "o"),
    bibtex="""
    @inproceedings{lakshminarayanan2017,
      author = {Lakshminarayanan, Balaji and Pritzel, Alexander and Blundell, Charles},
      title = {{Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles}},
      booktitle = {Advances in Neural Information Processing Systems 30}, year = {2017}}""",
    density="mixture over networks",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    validated=lambda config: "" if config.epochs else "epochs",
    space={"learning_rate": {"log": [1e-3, 0.1]}, "adversarial": {"choice": [False, True]}},
)
