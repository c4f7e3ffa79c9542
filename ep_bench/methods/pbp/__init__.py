"""Probabilistic backpropagation: J. M. Hernandez-Lobato and R. P. Adams, ICML 2015.

The model is a network of rectified linear units with Gaussian noise of precision gamma and weights
w ~ N(0, 1 / lambda). Both precisions have gamma priors. The approximate posterior, equation (8), is a product of one
Gaussian per weight and two gamma distributions. An epoch visits the data points in a new random order. Each visit is a
step of assumed-density filtering:

1. propagate moments forward, (13) to (17);
2. compute log Z of the target, (12), and its gradients by backpropagation;
3. update the weights, (6) and (7), and the noise precision, (9) and (10).

One pass of expectation propagation then refines every prior factor (section 3.4). Predictions are Gaussian with mean
m^z and variance v^z + b / (a - 1).

Symbols of the kernels:

    m, v             mean and variance of a weight
    m^a, v^a         of a unit's input a = w z / sqrt(V_{l-1} + 1), also in the output layer
    m^b, v^b, z      of its output max(a, 0); z are the inputs of the next layer, the last one a constant 1 (the bias)
    m^z, v^z         of the network's output
    a, b             shape and rate of gamma (noise) or lambda (prior), initially 6 and 6
    g, k, h          d log Z / d m^a, d log Z / d v^a, g^2 - 2 k

Modules: ``layout`` (memory layout), ``passes`` (kernels for one layer), ``filtering`` (loops over data points and prior
factors).

Deviation: the initial means are N(0, 1 / (V_{l-1} + 1)), which is the fan-in with the bias. The paper prints the
fan-out, but the fan-in matches its tables. Initial variances, and those of the prior factors, are b / (a - 1) = 1.2.
Deviation: a weight keeps its mean and variance if the updated variance is at most 1e-100, as in the authors' program.
Deviation: a prior factor is refined only if its cavity has a variance in (0, 1e6), a > 1 and b > 0, as in the authors'
program.
Deviation: the moments of the rectifier do not use the ratio gamma, so they do not need the paper's expansion below
alpha = -30 (``numerics.relu``). Equations (9) and (10) are evaluated without cancellation (``numerics.gamma``). In
exact arithmetic, both agree with the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.methods.pbp.filtering import filter_rows, predict_rows, refine_prior
from ep_bench.methods.pbp.layout import PBPNetwork, flat, matrices, network, scratch
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

SHAPE, RATE = 6.0, 6.0  # of the gamma priors of both precisions (section 2)
KNOWN = 1e12  # shape of the gamma distribution of a known precision, which no number of data points moves


class Config(BaseModel):
    """Options of probabilistic backpropagation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), min_length=1, description="units per hidden layer; section 5.1: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(
        40, description="passes over the training data; section 5.1: 40 (20 match the published results of protein)"
    )
    noise_variance: PositiveFloat | None = Field(
        None,
        json_schema_extra={NEUTRAL: None},
        description="known noise variance, in squared units of the standardised target; by default learned",
    )
    prior_variance: PositiveFloat | None = Field(
        None,
        json_schema_extra={NEUTRAL: None},
        description="known prior variance of the weights, without the factor 1 / sqrt(V + 1) of the layers; by default "
        "learned",
    )


class State(NamedTuple):
    """Posterior in standardised units; one array (n_out, n_in + 1) per layer, bias last."""

    means: tuple[Array, ...]
    variances: tuple[Array, ...]
    noise_a: float  # shape and rate of the noise precision gamma
    noise_b: float
    prior_a: float  # shape and rate of the weights' prior precision lambda
    prior_b: float
    factor_precisions: tuple[Array, ...]  # of the approximate prior factors, whose means are 0
    factor_a: tuple[Array, ...]  # contribution of each factor to prior_a
    factor_b: tuple[Array, ...]  # contribution of each factor to prior_b

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
    """Fit a network to standardised data.

    Parameters
    ----------
    train : X (n, d) and y (n,), standardised
    config : the options
    rng : generator of the initial means and of the order of each epoch
    start : initial weight means, one array (n_out, n_in + 1) per layer, bias last; random by default
    orders : (epochs, n) visiting orders, each a permutation of the data points; random by default

    Returns
    -------
    state : the posterior
    trace : one value per epoch of ``noise_deviation`` (standard deviation, standardised), ``prior_variance``
        (1 / E[lambda] = b / a), ``log_z`` (log predictive density of a data point before its update, averaged, nats)
        and ``undone`` (fraction of rejected weight updates)

    Raises
    ------
    FloatingPointError
        If an epoch ends with a number that is not finite or a variance that is not positive.

    Notes
    -----
    With a few dozen data points, a and b of the prior can end below 1 or even below 0, because (9) and (10) match
    moments of an approximation. Later refinements continue from these values. Predictions do not use them.
    """
    X, y = np.ascontiguousarray(train.X, dtype=np.float64), np.ascontiguousarray(train.y, dtype=np.float64)
    n, d = X.shape
    net = network(start or initial_means((d, *config.hidden, 1), rng), SHAPE, RATE)
    _fix_variances(net, config)
    units, inputs = scratch(net)
    trace: dict[str, list[float]] = {"noise_deviation": [], "prior_variance": [], "log_z": [], "undone": []}
    for epoch in range(config.epochs):
        order = rng.permutation(n) if orders is None else orders[epoch]
        log_z, undone = filter_rows(X, y, order, net, units, inputs)
        if config.prior_variance is None:
            refine_prior(net)
        _check(net, epoch + 1)
        trace["noise_deviation"].append(float(np.sqrt(net.noise[1] / (net.noise[0] - 1.0))))
        trace["prior_variance"].append(float(net.prior[1] / net.prior[0]))
        trace["log_z"].append(log_z / n)
        trace["undone"].append(undone / (n * len(net.places)))
    return _state(net), trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian per data point of X (n, d), standardised units, noise included; ``rng`` is not used.

    Raises ValueError if X has the wrong number of columns.
    """
    net = network(state.means, SHAPE, RATE)
    if X.ndim != 2 or X.shape[1] != net.layers[0, 0] - 1:
        raise ValueError(f"X must have shape (n, {net.layers[0, 0] - 1}), found {X.shape}")
    net.variance[net.places] = flat(state.variances)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    predict_rows(np.ascontiguousarray(X, dtype=np.float64), net, *scratch(net), mean, variance)
    return Predictive.gaussian(mean, variance + state.noise_variance)


def initial_means(sizes: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    """Return random initial weight means, one array (n_out, n_in + 1) per layer."""
    return [rng.standard_normal((n_out, n_in + 1)) / np.sqrt(n_in + 1) for n_in, n_out in pairwise(sizes)]


def _fix_variances(net: PBPNetwork, config: Config) -> None:
    """Replace the gamma distributions of known precisions by very narrow ones, in place.

    Weights w / sqrt(V + 1) with the prior variance v have w with the variance (V + 1) v. The prior is then one of the
    factors of the approximation and needs no refinement.
    """
    if config.noise_variance is not None:
        net.noise[:] = KNOWN, config.noise_variance * (KNOWN - 1.0)
    if config.prior_variance is not None:
        net.prior[:] = KNOWN, config.prior_variance * KNOWN
        fan_in = flat([np.full(one.shape, one.shape[1]) for one in matrices(net, net.mean)])
        net.variance[net.places] = config.prior_variance * fan_in
        net.factor_precision[net.places] = 1.0 / net.variance[net.places]


def _check(net: PBPNetwork, epoch: int) -> None:
    """Raise FloatingPointError if the state is not a distribution."""
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
    """Return the expected seconds of a fit on one core: steps by weights and units, refinement by weights."""
    sizes = (d, *config.hidden, 1)
    weights = [(n_in + 1) * n_out for n_in, n_out in pairwise(sizes)]
    step = 0.3e-9 * weights[0] + 1.1e-9 * sum(weights[1:]) + 7e-9 * sum(config.hidden) + 0.1e-6
    return config.epochs * (n * step + 0.05e-6 * sum(weights))


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration: the paper's epochs and units, with one or two layers."""
    known = config.noise_variance is not None or config.prior_variance is not None
    if config.epochs != Config().epochs or known:
        return ()
    if config.hidden in {(50,), (100,)}:
        return ("PBP", "PBP-1")
    return ("PBP-2",) if config.hidden == (50, 50) else ()


METHOD = Method(
    name="pbp",
    equality="exact",
    version=1,
    title="Probabilistic backpropagation",
    paper="Hernandez-Lobato and Adams (2015)",
    style=("EP", "o"),
    density="Gaussian",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
)
