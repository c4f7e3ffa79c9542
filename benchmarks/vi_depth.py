"""Why two layers lose to one under variational inference: bound and validation scores of variants on one data set.

Each variant is fitted to 80 % of the training points of standard split 0; the rest are validation points. Test points
are not used. A hidden unit is active if the mean of one of its outgoing weights exceeds 2 standard deviations.

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
from ep_bench.models.meanfield import divergence
from ep_bench.types import Rows

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


def points(dataset: str) -> tuple[Rows, Rows]:
    """Return training and validation points."""
    every = standardised(dataset)
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


def main(path: str, dataset: str) -> None:
    """Write one row per variant to the file ``path``."""
    train, validation = points(dataset)
    rows = [{"variant": name} | measured(train, validation, *variant) for name, variant in VARIANTS.items()]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
