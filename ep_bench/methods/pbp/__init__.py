"""Probabilistic backpropagation: J. M. Hernandez-Lobato and R. P. Adams, ICML 2015.

A network of rectified linear units with Gaussian noise of precision gamma, weights w ~ N(0, 1 / lambda), and gamma
priors on gamma and lambda. The posterior is approximated by a product of Gaussians over the weights and two gammas,
equation (8). An epoch takes the rows in a fresh random order, one assumed-density step each: moments forward, (13) to
(17), log Z of the target, (12), its gradients backward and the updates (6), (7), (9), (10). Then every prior factor is
refined by one pass of expectation propagation (section 3.4). Predictions are Gaussian with mean m^z and variance
v^z + b / (a - 1).

Symbols of the kernels:

    m, v             mean and variance of a weight
    m^a, v^a         of a unit's input a = w z / sqrt(V_{l-1} + 1); the output layer is scaled too
    m^b, v^b, z      of its output max(a, 0), and of the next layer's inputs, a constant 1 (the bias) last
    m^z, v^z         of the network's output
    a, b             shape and rate of gamma (noise) or lambda (prior), 6 and 6 before any factor
    g, k, h          d log Z / d m^a, d log Z / d v^a, g^2 - 2 k

Modules: ``layout`` where the numbers lie, ``passes`` over one layer, ``filtering`` over rows and prior factors.

Deviation: initial means are N(0, 1 / (V_{l-1} + 1)), fan-in with the bias, where the paper prints fan-out; fan-in
matches its tables. Initial variances, and those of the prior factors, are b / (a - 1) = 1.2.
Deviation: a weight keeps its mean and variance where a step's new variance is not above 1e-100, as in the authors'
program.
Deviation: a prior factor is left alone unless its cavity has a variance in (0, 1e6), a > 1 and b > 0, likewise.
Deviation: none in exact arithmetic, but the rectifier's moments come without the ratio gamma, and so without the
expansion that the paper uses below alpha = -30 (``numerics.relu``), and (9) and (10) without cancellation
(``numerics.gamma``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ep_bench.methods.pbp.filtering import filter_rows, predict_rows, refine_prior
from ep_bench.methods.pbp.layout import PBPNetwork, flat, matrices, network, scratch
from ep_bench.types import Array, Indices, Method, Predictive, Rows

SHAPE, RATE = 6.0, 6.0  # of the priors of both precisions (section 2)


class Config(BaseModel):
    """Options of probabilistic backpropagation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), min_length=1, description="units of each hidden layer; section 5.1: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(
        40, description="passes over the training rows; section 5.1: 40 (the published protein row fits 20)"
    )


class State(NamedTuple):
    """Posterior in standardised units; of each layer an array (n_out, n_in + 1), bias last."""

    means: tuple[Array, ...]
    variances: tuple[Array, ...]
    noise_a: float  # shape and rate of the noise precision gamma
    noise_b: float
    prior_a: float  # shape and rate of the weights' prior precision lambda
    prior_b: float
    factor_precisions: tuple[Array, ...]  # of each weight's approximate prior factor, whose mean is 0
    factor_a: tuple[Array, ...]  # what the factor adds to prior_a
    factor_b: tuple[Array, ...]  # and to prior_b

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, E[1 / gamma]."""
        return self.noise_b / (self.noise_a - 1.0)


def fit(
    train: Rows,
    config: Config,
    rng: np.random.Generator,
    start: Sequence[Array] | None = None,
    orders: Indices | None = None,
) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows.

    Parameters
    ----------
    train : X (n, d) and y (n,), standardised
    config : the options
    rng : draws the initial means and then each epoch's order
    start : initial weight means, one array (n_out, n_in + 1) a layer, bias last; drawn if absent
    orders : (epochs, n) visiting orders, each a permutation of the rows; drawn if absent

    Returns
    -------
    The state, and one value an epoch of ``noise_deviation`` (standardised), ``prior_variance`` (1 / E[lambda] = b / a),
    ``log_z`` (mean over the rows of the log predictive density when each came) and ``undone`` (fraction of the weights'
    updates). On a few dozen rows the prior's a and b, which no prediction rests on, can end below 1 and even below 0:
    equations (9) and (10) match moments of an approximation. Later refinements go on from there, as (9) and (10) say.

    Raises
    ------
    ValueError for a ``start`` or ``orders`` of the wrong shape or content, FloatingPointError when an epoch ends with a
    number that is not finite or a variance that is not positive.
    """
    X, y = np.ascontiguousarray(train.X, dtype=np.float64), np.ascontiguousarray(train.y, dtype=np.float64)
    n, d = X.shape
    net = network(_means(start, (d, *config.hidden, 1), rng), SHAPE, RATE)
    visits = _orders(orders, config.epochs, n)
    units, inputs = scratch(net)
    trace: dict[str, list[float]] = {"noise_deviation": [], "prior_variance": [], "log_z": [], "undone": []}
    for epoch in range(config.epochs):
        order = rng.permutation(n) if visits is None else visits[epoch]
        log_z, undone = filter_rows(X, y, order, net, units, inputs)
        refine_prior(net)
        _check(net, epoch + 1)
        trace["noise_deviation"].append(float(np.sqrt(net.noise[1] / (net.noise[0] - 1.0))))
        trace["prior_variance"].append(float(net.prior[1] / net.prior[0]))
        trace["log_z"].append(log_z / n)
        trace["undone"].append(undone / (n * len(net.places)))
    return _state(net), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian a row of X (n, d), standardised units, noise included; ``rng`` is not used."""
    net = network(state.means, SHAPE, RATE)
    if X.ndim != 2 or X.shape[1] != net.layers[0, 0] - 1:
        raise ValueError(f"X must have shape (n, {net.layers[0, 0] - 1}), found {X.shape}")
    net.variance[net.places] = flat(state.variances)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    predict_rows(np.ascontiguousarray(X, dtype=np.float64), net, *scratch(net), mean, variance)
    return Predictive.gaussian(mean, variance + state.noise_variance)


def _means(start: Sequence[Array] | None, sizes: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    """Return the initial weight means, checked or drawn."""
    shapes = [(n_out, n_in + 1) for n_in, n_out in pairwise(sizes)]
    if start is None:
        return [rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in shapes]
    means = [np.asarray(one, dtype=np.float64) for one in start]
    found = [one.shape for one in means]
    if found != shapes:
        raise ValueError(f"start must hold one array of weight means a layer, of shapes {shapes}, found {found}")
    if not all(np.isfinite(one).all() for one in means):
        raise ValueError("start must hold finite weight means")
    return means


def _orders(orders: Indices | None, epochs: int, n: int) -> Indices | None:
    """Return the visiting orders, checked."""
    if orders is None:
        return None
    visits = np.asarray(orders)
    if visits.shape != (epochs, n) or not np.issubdtype(visits.dtype, np.integer):
        raise ValueError(
            f"orders must be an integer array of shape ({epochs}, {n}), found {visits.dtype} of {visits.shape}"
        )
    for epoch, order in enumerate(visits):
        if not np.array_equal(np.sort(order), np.arange(n)):
            raise ValueError(f"orders[{epoch}] must visit each of the {n} rows once")
    return np.ascontiguousarray(visits, dtype=np.int64)


def _check(net: PBPNetwork, epoch: int) -> None:
    """Raise FloatingPointError if the state is no distribution."""
    variance = net.variance[net.places]
    if not (np.isfinite(net.mean[net.places]).all() and np.isfinite(variance).all()):
        raise FloatingPointError(f"epoch {epoch}: a weight's mean or variance is not finite")
    if not (variance > 0.0).all():
        raise FloatingPointError(f"epoch {epoch}: a weight's variance is not positive")
    a, b = net.noise
    if not (1.0 < a < np.inf and 0.0 < b < np.inf):
        raise FloatingPointError(f"epoch {epoch}: the noise variance is not positive: a = {a:.6g}, b = {b:.6g}")
    if not np.isfinite(net.prior).all():
        a, b = net.prior
        raise FloatingPointError(f"epoch {epoch}: the prior on the weights is not finite: a = {a:.6g}, b = {b:.6g}")


def _state(net: PBPNetwork) -> State:
    (noise_a, noise_b), (prior_a, prior_b) = net.noise.tolist(), net.prior.tolist()
    factors = (matrices(net, one) for one in (net.factor_precision, net.factor_a, net.factor_b))
    return State(
        matrices(net, net.mean), matrices(net, net.variance), noise_a, noise_b, prior_a, prior_b, *factors
    )  # fmt: skip


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: steps by weights and units, refinement by weights."""
    sizes = (d, *config.hidden, 1)
    weights = [(n_in + 1) * n_out for n_in, n_out in pairwise(sizes)]
    step = 0.3e-9 * weights[0] + 1.1e-9 * sum(weights[1:]) + 7e-9 * sum(config.hidden) + 0.1e-6
    return config.epochs * (n * step + 0.05e-6 * sum(weights))


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to: the paper's epochs, its units, or two layers of them."""
    if config.epochs != Config().epochs:
        return ()
    if config.hidden in {(50,), (100,)}:
        return ("PBP", "PBP-1")
    return ("PBP-2",) if config.hidden == (50, 50) else ()


METHOD = Method(
    name="pbp",
    version=1,
    title="Probabilistic backpropagation",
    paper="Hernandez-Lobato and Adams (2015)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
)
