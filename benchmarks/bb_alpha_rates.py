"""Black-box alpha by its first step size: final energy, validation scores and time, on three data sets and an example.

A fifth of the training points of standard split 0 are validation points. Test points are not used. Variational
inference by `vi` with the same network is the limit of alpha to 0. The example has 150 data points with 30 inputs,
y = sin(x_1) + 0.1 e, and 1,000 validation points.

    python -m benchmarks.bb_alpha_rates docs/figures/bb-alpha-rates.csv
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.vi_depth import points
from ep_bench.methods import bb_alpha, vi
from ep_bench.types import Rows

DATASETS = ("example", "yacht", "boston", "energy")
UNITS = 100
ALPHAS = (1e-6, 0.5, 1.0)
RATES = (0.002, 0.03)  # the default, and one that reaches the minimum of the energy
LAST = 20  # epochs whose mean energy is reported


def example() -> tuple[Rows, Rows]:
    """Return training and validation points of the example, with the targets of the training points standardised."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1150, 30))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1150)
    y = (y - y[:150].mean()) / y[:150].std()
    return Rows(X[:150], y[:150]), Rows(X[150:], y[150:])


def measured(method: Any, config: Any, train: Rows, validation: Rows) -> dict[str, Any]:
    """Return energy (nats per data point), scores (standardised units), noise and CPU seconds of a fit."""
    begun = time.process_time()
    state, trace = method.fit(train, config, np.random.default_rng(0))
    seconds = time.process_time() - begun
    found = method.predict(state, validation.X, np.random.default_rng(1))
    return {
        "energy": round(float(np.mean(trace["objective"][-LAST:])), 3),
        "ll": round(float(found.logpdf(validation.y).mean()), 3),
        "rmse": round(float(np.sqrt(np.mean((found.mean() - validation.y) ** 2))), 3),
        "noise_deviation": round(trace["noise_deviation"][-1], 3),
        "cpu_seconds": round(seconds, 1),
    }


def fits() -> Iterator[dict[str, Any]]:
    """Yield the row of each fit."""
    for dataset in DATASETS:
        data = example() if dataset == "example" else points(dataset)
        yield {"dataset": dataset, "method": "vi"} | measured(vi, vi.Config(hidden=(UNITS,)), *data)
        for alpha, rate in product(ALPHAS, RATES):
            config = bb_alpha.Config(hidden=(UNITS,), alpha=alpha, learning_rate=rate)
            row = {"dataset": dataset, "method": "bb_alpha", "alpha": alpha, "rate": rate}
            yield row | measured(bb_alpha, config, *data)


def main(path: str) -> None:
    """Write one row per fit to the file ``path``."""
    warnings.simplefilter("ignore")
    rows = []
    for row in fits():
        rows.append(row)
        pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
