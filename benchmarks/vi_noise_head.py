"""Where fits of `vi` with heteroscedastic noise diverge: the log variance of the noise at the training points.

Fits to the training points of standard split 0, with four step sizes. The posterior of the log variance is estimated
from 100 networks drawn after 300 epochs; a fit that has failed before has no estimate. Test points are not used.

    python -m benchmarks.vi_noise_head docs/figures/vi-noise-head.csv
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks.vi_depth import standardised
from ep_bench.methods import vi
from ep_bench.methods.vi import heteroscedastic
from ep_bench.models import mlp
from ep_bench.types import Rows

UNITS = {"kin8nm": 50, "naval": 50, "protein": 100}
RATES = (0.01, 0.003, 0.001, 0.0003)
EPOCH, DRAWS = 300, 100  # when the log variance is looked at, and by how many networks
LAST = 20  # epochs whose mean objective is reported


def posterior(theta: Any, train: Rows, hidden: int) -> dict[str, float]:
    """Return the spread of the log variance over drawn networks, and the point where it is largest."""
    size, rng = len(theta) // 2, np.random.default_rng(1)
    W = theta[:size] + np.exp(theta[size:-1]) * rng.standard_normal((DRAWS, size))
    logs = theta[-1] + heteroscedastic.evaluate(train.X, W, mlp.layout(train.X.shape[1], (hidden,)))[1]
    spread = logs.std(axis=0)
    return {
        "median_log_variance": round(float(np.median(logs)), 2),
        "median_spread": round(float(np.median(spread)), 3),
        "largest_spread": round(float(spread.max()), 2),
        "input_there": round(float(np.abs(train.X[spread.argmax()]).max()), 1),
    }


def measured(train: Rows, hidden: int, rate: float) -> dict[str, Any]:
    """Return how a fit with step size ``rate`` ends, and the log variance after 300 epochs."""
    objectives: list[float] = []
    found: dict[str, float] = {}

    def run_and_record(epochs: Any, run: Callable[..., float], theta: Any, *rest: Any) -> Any:
        def run_and_look(epoch: int, order: Any) -> float:
            objectives.append(run(epoch, order))
            if epoch + 1 == EPOCH:
                found.update(posterior(theta, train, hidden))
            return objectives[-1]

        return original(epochs, run_and_look, theta, *rest)

    original = vi.run_epochs
    config = vi.Config(hidden=(hidden,), noise="heteroscedastic", prior="empirical", learning_rate=rate)
    end = "fitted"
    with mock.patch.object(vi, "run_epochs", run_and_record):
        try:
            vi.fit(train, config, np.random.default_rng(0))
        except FloatingPointError as error:
            end = str(error).partition(";")[0]
    finite = [one for one in objectives if np.isfinite(one)]
    return {"end": end, "epochs": len(objectives), "lowest": f"{min(finite):.3f}", "highest": f"{max(finite):.3g}",
            "last": f"{np.mean(finite[-LAST:]):.3g}", **found}  # fmt: skip


def main(path: str) -> None:
    """Write one row per data set and step size to the file ``path``."""
    rows = []
    for dataset, hidden in UNITS.items():
        train = standardised(dataset)
        rows += [{"dataset": dataset, "rate": rate} | measured(train, hidden, rate) for rate in RATES]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
