"""Probabilistic backpropagation after a number of passes, and without parts of it (sections 3.3, 3.4 and 4).

- ``prior not refined``: the prior factors keep their initial values.
- ``means only``: in addition, the variances of the weights keep their initial values, as in the expectation
  backpropagation of Soudry et al. (2014). The noise is learned as in PBP.

All begin with the same weights and visit the data points in the same order. The error of the Gaussian in (12) is that
of log Z at the training points under the current posterior; the exact value is an integral over the noise precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt, field_validator
from scipy.special import gammaln, logsumexp

from ep_bench import data
from ep_bench.estimator import standardisation
from ep_bench.experiments.dataset_entries import RegressionSets
from ep_bench.experiments.method_entries import Options, short
from ep_bench.methods.pbp import RATE, SHAPE, initial_means
from ep_bench.methods.pbp.filtering import filter_rows, predict_rows, refine_prior
from ep_bench.methods.pbp.layout import PBPNetwork, network, scratch
from ep_bench.types import Array

# Whether the prior factors are refined, and whether the variances of the weights change.
VARIANTS = {"PBP": (True, True), "prior not refined": (False, True), "means only": (False, False)}
NODES, REACH = 401, 12.0  # of the integral over the log precision; standard deviations on either side


class Config(Options):
    """Options of the experiment."""

    datasets: RegressionSets = Field(("boston", "energy", "yacht"), min_length=1, description="data sets; ours")
    splits: PositiveInt = Field(10, description="standard splits; ours")
    hidden: PositiveInt = Field(50, description="units of the hidden layer; section 5.1: 50")
    passes: tuple[PositiveInt, ...] = Field(
        (1, 10, 40, 100, 400), min_length=1, description="passes after which a fit is scored; section 5.1: 40"
    )

    @field_validator("passes")
    @classmethod
    def _increasing(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("passes must increase")
        return value


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per data set, method and number of passes.

    ``passes`` (P,) begins with 0; ``scores`` (D, M, P, 4) are means over the splits of the columns of the summary.
    """
    passes = (0, *config.passes)
    found = np.array([
        np.mean([_on_split(name, split, config, passes, seed) for split in range(config.splits)], axis=0)
        for name in config.datasets
    ])  # fmt: skip
    summary = [
        {"dataset": name, "method": method, "passes": count}
        | dict(zip(("rmse", "ll", "function_std", "log_z_error"), map(short, found[d, m, p].tolist()), strict=True))
        for d, name in enumerate(config.datasets)
        for m, method in enumerate(VARIANTS)
        for p, count in enumerate(passes)
    ]
    arrays = {"datasets": config.datasets, "labels": tuple(VARIANTS), "passes": passes, "scores": found}
    return {name: np.array(values) for name, values in arrays.items()}, summary


def _on_split(name: str, split: int, config: Config, passes: tuple[int, ...], seed: int) -> list[list[Array]]:
    """Return the scores (4,) of each variant after each number of passes."""
    whole = data.load_dataset(name)
    train, test = data.standard_split(len(whole.y), split)
    inputs, target = standardisation(whole.X[train], whole.y[train])
    X, X_test = (np.ascontiguousarray(inputs.apply(whole.X[part])) for part in (train, test))
    y, y_test = (target.apply(whole.y[part][:, None])[:, 0] for part in (train, test))
    unit = float(np.std(whole.y[train]))
    rng = np.random.default_rng([seed, split])
    start = initial_means((X.shape[1], config.hidden, 1), rng)
    orders = np.array([rng.permutation(len(y)) for _ in range(passes[-1])])
    return [
        [_scores(net, X, y, X_test, y_test, unit) for net in after_passes(X, y, start, orders, passes, *variant)]
        for variant in VARIANTS.values()
    ]


def after_passes(
    X: Array, y: Array, start: list[Array], orders: Any, passes: tuple[int, ...], refine: bool, variances: bool
) -> Iterator[PBPNetwork]:  # fmt: skip
    """Yield the network after each number of passes over X (n, d), y (n,), in ``orders`` (passes, n)."""
    net = network(start, SHAPE, RATE)
    for count, order in enumerate([*orders, None]):
        if count in passes:
            yield net
        if order is not None:
            one_pass(net, X, y, order, variances=variances)
            if refine:
                refine_prior(net)


def one_pass(net: PBPNetwork, X: Array, y: Array, order: Any, *, variances: bool) -> None:
    """Filter the data points in an order (n,); without ``variances`` those of the weights keep their values."""
    if variances:
        filter_rows(X, y, order, net, *scratch(net))
        return
    before, workspace = net.variance.copy(), scratch(net)
    for place in range(len(order)):
        filter_rows(X, y, order[place : place + 1], net, *workspace)
        net.variance[:] = before


def _scores(net: PBPNetwork, X: Array, y: Array, X_test: Array, y_test: Array, unit: float) -> Array:
    """Return RMSE, log-likelihood, standard deviation of the function and error of log Z; ``unit`` of the target."""
    a, b = net.noise
    mean, variance = function(net, X_test)
    ll = _log_normal(y_test, mean, variance + b / (a - 1.0)).mean() - np.log(unit)
    errors = np.abs(gaussian_error(y, *function(net, X), a, b))
    return np.array([unit * np.sqrt(np.mean((y_test - mean) ** 2)), ll, np.sqrt(variance).mean(), errors.mean()])


def function(net: PBPNetwork, X: Array) -> tuple[Array, Array]:
    """Return mean and variance (n,) of the network's function at inputs X (n, d)."""
    mean, variance = np.empty((2, len(X)))
    predict_rows(X, net, *scratch(net), mean, variance)
    return mean, variance


def gaussian_error(y: Array, mean: Array, variance: Array, a: float, b: float) -> Array:
    """Return the error (n,) of log Z, (12), by a Gaussian in place of the Student t distribution, nats."""
    t = np.log(a / b) + np.linspace(-REACH, REACH, NODES) / np.sqrt(a)
    weights = a * np.log(b) - gammaln(a) + a * t - b * np.exp(t) + np.log(t[1] - t[0])
    exact = logsumexp(_log_normal(y[:, None], mean[:, None], variance[:, None] + np.exp(-t)) + weights, axis=1)
    return np.asarray(_log_normal(y, mean, variance + b / (a - 1.0)) - exact)


def _log_normal(y: Array, mean: Array, variance: Array) -> Array:
    return -0.5 * (np.log(2.0 * np.pi * variance) + (y - mean) ** 2 / variance)
