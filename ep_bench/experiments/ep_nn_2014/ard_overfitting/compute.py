"""Two relevant inputs, of which point estimates of relevance prune one (case 1, figure 2).

Three clusters along the diagonal of two inputs have the values 1, 0 and 0.8, so that steps in either input explain them
as well as steps in both. A Gaussian process with the covariance of an infinite network, and weight variances and noise
of highest evidence, is compared with a finite network that integrates over its weights.

An input's effect is the standard deviation of the mean of f along it: the root of the variance over this input,
averaged over the other, both uniform over the range of the data. The fraction of the weaker input is its squared
effect divided by the sum of both. An input is pruned if its fraction is below 0.01; both inputs are used if it is
above 0.1.

All data are in original units: the paper states for its biases that observations are not normalised.

Deviation: the paper states neither the number of data points nor their distribution within the clusters. Here inputs
are uniform in three squares of side 0.8 around (1, 1), (0, 0) and (-1, -1), with 20 points each. Whether the Gaussian
process prunes depends on the gap between the clusters: it does so in 72 of 120 draws, and in 21 of 120 draws with
squares of side 1, which meet at their corners. A single draw is therefore no evidence; the summary counts draws, and
the figure shows the first. The noise of the Gaussian process has a flat prior, as its other hyperparameters; the paper
uses the network's prior.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ep_bench.experiments.ep_nn_2014.ard_overfitting import PRUNED, USED
from ep_bench.experiments.ep_nn_2014.network_fits import (
    NetworkFit,
    excludes_zero,
    fitted,
    is_network,
    marginals,
    noise_deviation,
    rounded,
    unconverged,
)
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.types import Array

CENTRES, VALUES = (1.0, 0.0, -1.0), (1.0, 0.0, 0.8)  # of the clusters: coordinates in both inputs, and values of f


class Config(Options):
    """Options of the experiment."""

    methods: tuple[ExperimentMethod, ...] = Field(
        (
            ExperimentMethod.named("gp", "GP-ARD", kernel="nn", prior="none"),
            ExperimentMethod.named(
                "ep_nn", "NN-EP", hidden=[10], prior="laplace", linear_units=1, scale_mean=2.0 * math.log(0.1),
                scale_deviation=1.5, noise_mean=2.0 * math.log(0.05), noise_deviation=1.5,
            ),
        ),
        min_length=1,
        max_length=3,
        description="method entries as in a study: use, label and options; only the weights of the first finite "
        "network are drawn (section 4.1)",
    )  # fmt: skip
    rows: int = Field(20, ge=2, description="data points per cluster; ours")
    side: float = Field(0.8, gt=0, le=1, description="side of the clusters' squares, at most 1; ours")
    noise_deviation: float = Field(0.1, gt=0, description="standard deviation of the noise (section 4.1)")
    draws: int = Field(20, ge=1, description="draws of the data; the figure shows the first; ours")
    points: int = Field(61, ge=5, description="points of the grid per dimension")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per method.

    ``x`` (n, 2), ``y`` (n,) and ``cluster`` (n,): data of the first draw. ``first`` and ``second`` (G,): the grid over
    the range of the data. ``mean_<i>`` and ``std_<i>`` (G, G) of f by method i, with the first input along the first
    axis. ``labels`` (M,): names of the methods. ``unconverged`` (M,): which fits did not converge. ``effects`` (draws,
    M, 2) of the inputs, NaN if a fit failed. ``shares`` (draws, M) of the weaker input. For the method ``network``, the
    first finite network: ``linear``, the number of its linear units (the first ones), and ``network_fits.marginals`` of
    its weights.
    """
    effects = np.full((config.draws, len(config.methods), 2), math.nan)
    arrays: dict[str, Any] = {"labels": np.array([entry.name for entry in config.methods])}
    fits: list[list[NetworkFit]] = []
    for draw, rng in enumerate(np.random.default_rng(seed).spawn(config.draws)):
        X, y, cluster = clusters(config, rng)
        first, second = (np.linspace(low, high, config.points) for low, high in zip(X.min(0), X.max(0), strict=True))
        fits.append([fitted(entry, X, y, standardize=False, seed=seed + draw) for entry in config.methods])
        surfaces = [_surface(fit, first, second) for fit in fits[-1]]
        effects[draw] = [effect(mean) for mean, _ in surfaces]
        if draw == 0:
            arrays |= {"x": X, "y": y, "cluster": cluster, "first": first, "second": second}
            arrays["unconverged"] = unconverged(fits[0])
            for i, (mean, std) in enumerate(surfaces):
                arrays |= {f"mean_{i}": mean, f"std_{i}": std}
            arrays |= _weights(config, fits[0])
    arrays |= {"effects": effects, "shares": shares(effects)}
    rows = [_row(entry, [draw[i] for draw in fits], effects[:, i]) for i, entry in enumerate(config.methods)]
    return arrays, rows


def clusters(config: Config, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.intp]]:
    """Draw inputs (n, 2), targets (n,) and cluster indices (n,); the cluster with value 1 is first."""
    cluster = np.repeat(np.arange(len(CENTRES), dtype=np.intp), config.rows)
    X = np.array(CENTRES)[cluster, None] + rng.uniform(-0.5, 0.5, (len(cluster), 2)) * config.side
    noise = config.noise_deviation * rng.standard_normal(len(cluster))
    return X, np.array(VALUES)[cluster] + noise, cluster


def effect(mean: Array) -> Array:
    """Return the effects (2,) of both inputs for a mean (G, G) over a grid, the first input along the first axis."""
    return np.sqrt([mean.var(axis=0).mean(), mean.var(axis=1).mean()])


def shares(effects: Array) -> Array:
    """Return the fraction of the weaker input, for effects (..., 2); 0.5 if both are equal."""
    squares = effects**2
    total = squares.sum(axis=-1)
    return np.asarray(squares.min(axis=-1) / np.where(total > 0.0, total, math.nan))


def _surface(fit: NetworkFit, first: Array, second: Array) -> tuple[Array, Array]:
    grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, std = fit.latent(grid)
    return mean.reshape(len(first), -1), std.reshape(len(first), -1)


def _weights(config: Config, fits: list[NetworkFit]) -> dict[str, Any]:
    """Return the marginals of the first finite network, empty without such a fit."""
    for i, (entry, fit) in enumerate(zip(config.methods, fits, strict=True)):
        if is_network(fit.model):
            linear = int((entry.model_extra or {}).get("linear_units", 0))
            return {"network": np.array(i), "linear": np.array(linear), **marginals(fit.model)}
    return {}


def _row(entry: ExperimentMethod, fits: list[NetworkFit], effects: Array) -> dict[str, Any]:
    """Return counts over the draws, and effects, weights and noise on the first draw."""
    weaker = shares(effects)
    known = weaker[np.isfinite(weaker)]
    first = fits[0].model
    return {
        "method": entry.name,
        "draws": len(fits),
        "failed": sum(fit.model is None for fit in fits),
        "converged": sum(bool(fit.converged) for fit in fits),
        "pruned": int(np.sum(known < PRUNED)),
        "used": int(np.sum(known > USED)),
        "share_median": rounded(float(np.median(known))) if len(known) else "",
        "share": rounded(weaker[0]),
        **{f"effect_{j + 1}": rounded(value) for j, value in enumerate(effects[0])},
        **_relevances(first),
        "noise": "" if first is None else rounded(noise_deviation(first)),
        "seconds": rounded(float(np.mean([fit.seconds for fit in fits]))),
        "reason": next((fit.reason for fit in fits if fit.reason), ""),
    }


def _relevances(model: Any) -> dict[str, Any]:
    """Return weight variances of a Gaussian process, or counts of weights that exclude 0 for a network."""
    row: dict[str, Any] = dict.fromkeys(("variance_1", "variance_2", "clear_1", "clear_2"), "")
    if is_network(model):
        found = marginals(model)
        counts = excludes_zero(found["weights"], found["weights_std"]).sum(axis=0)
        row |= {"clear_1": int(counts[0]), "clear_2": int(counts[1])}
    elif "weight_variance" in getattr(model, "hyperparameters_", {}):
        variances = np.broadcast_to(np.ravel(model.hyperparameters_["weight_variance"]), 2)
        row |= {f"variance_{j + 1}": rounded(float(value)) for j, value in enumerate(variances)}
    return row
