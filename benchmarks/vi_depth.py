"""Why two layers lose to one under variational inference: bound and validation scores of variants on one data set.

Each variant is fitted to 80 % of the training points of standard split 0; the rest are validation points. Test points
are not used. A hidden unit is active if the mean of one of its outgoing weights exceeds 2 standard deviations.

The last variant starts from the fit of one layer: the first unit of its second layer has the function of that fit, as
relu(f + SHIFT) with the output bias -SHIFT, and no other unit has an outgoing mean.

    python -m benchmarks.vi_depth docs/figures/vi-depth-boston.csv boston
"""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from ep_bench import data
from ep_bench.methods import vi
from ep_bench.models import mlp
from ep_bench.models.meanfield import divergence
from ep_bench.types import Array, Rows

SHIFT = 4.0  # standardised units; higher than almost all -f
TWO = {"hidden": (50, 50)}
VARIANTS: dict[str, tuple[dict[str, Any], float]] = {
    "one layer": ({}, vi.INITIAL_STD),
    "two layers": (TWO, vi.INITIAL_STD),
    "two layers, 3 times the epochs": (TWO | {"epochs": 3000}, vi.INITIAL_STD),
    "two layers, initial standard deviations 0.05": (TWO, 0.05),
    "two layers, 10 units in the second": ({"hidden": (50, 10)}, vi.INITIAL_STD),
    "two layers, prior variance 1/50": (TWO | {"prior_variance": 0.02}, vi.INITIAL_STD),
    "two layers, empirical prior": (TWO | {"prior": "empirical"}, vi.INITIAL_STD),
    "one layer, empirical prior": ({"prior": "empirical"}, vi.INITIAL_STD),
}


def standardised(dataset: str, split: int = 0) -> Rows:
    """Return the standardised training points of a standard split."""
    source = data.load_dataset(dataset)
    rows = data.standard_split(len(source.y), split)[0]
    X, y = source.X[rows], source.y[rows]
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Rows(np.ascontiguousarray(scaled), (y - y.mean()) / y.std())


def points(dataset: str, split: int = 0) -> tuple[Rows, Rows]:
    """Return training and validation points, four fifths and one fifth of the training points of a standard split."""
    every = standardised(dataset, split)
    X, y = every.X, every.y
    order, cut = np.random.default_rng(5).permutation(len(y)), len(y) // 5
    return Rows(X[order[cut:]], y[order[cut:]]), Rows(X[order[:cut]], y[order[:cut]])


def active_units(state: vi.State) -> list[int]:
    """Return the number of active units of each hidden layer."""
    found = []
    for offset, n_in, n_out in state.layers[1:].tolist():
        place = slice(offset, offset + n_in * n_out)
        ratios = (np.abs(state.mean[place]) / state.std[place]).reshape(n_in, n_out)
        found.append(int((ratios.max(axis=1) > 2.0).sum()))
    return found


def measured(train: Rows, validation: Rows, options: dict[str, Any], initial_std: float) -> dict[str, Any]:
    """Return negative bound and divergence (nats per data point), noise, validation scores and active units."""
    with mock.patch.object(vi, "INITIAL_STD", initial_std):
        state, trace = vi.fit(train, vi.Config(**options), np.random.default_rng(0))
    found = vi.predict(state, validation.X, np.random.default_rng(1))
    return {
        "negative_bound": round(float(np.mean(trace["objective"][-20:])), 3),
        "divergence": round(float(divergence(state.mean, state.std, state.prior_variance)) / len(train.y), 3),
        "noise_deviation": round(trace["noise_deviation"][-1], 3),
        "validation_ll": round(float(found.logpdf(validation.y).mean()), 3),
        "validation_rmse": round(float(np.sqrt(np.mean((found.mean() - validation.y) ** 2))), 3),
        "active_units": " ".join(map(str, active_units(state))),
    }


def from_one_layer(train: Rows) -> Array:
    """Return the initial parameters (2 P + 1,) of two layers with the function of a fit of one layer."""
    one, _ = vi.fit(train, vi.Config(), np.random.default_rng(0))
    layers = mlp.layout(train.X.shape[1], TWO["hidden"])
    theta = vi.initial_parameters(vi.Config(**TWO), layers, 0, np.random.default_rng(0))
    size = mlp.count(layers)
    first, (second, n_in, n_out), (last, _, _) = one.layers[1, 0], layers[1].tolist(), layers[2].tolist()
    into_first_unit = np.append(second + n_out * np.arange(n_in), second + n_in * n_out)  # weights, then its bias
    for found, at in ((one.mean, 0), (np.log(one.std), size)):
        theta[at : at + first] = found[:first]
        theta[at + into_first_unit] = found[first:]
    theta[last:size] = 0.0
    theta[into_first_unit[-1]] += SHIFT
    theta[last], theta[size - 1], theta[-1] = 1.0, -SHIFT, np.log(one.noise_variance)
    return theta


def main(path: str, dataset: str) -> None:
    """Write one row per variant to the file ``path``."""
    train, validation = points(dataset)
    rows = [{"variant": name} | measured(train, validation, *variant) for name, variant in VARIANTS.items()]
    start = from_one_layer(train)
    with mock.patch.object(vi, "initial_parameters", return_value=start.copy()):
        found = measured(train, validation, *VARIANTS["two layers"])
    rows.append({"variant": "two layers, started from one layer"} | found)
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
