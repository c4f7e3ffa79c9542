"""Log density of validation points by the step size of a method, on the five small data sets.

Each fit has 80 % of the training points of a standard split; the other 20 % are scored. Test points are not used. One
of the step sizes of each method is its default.

    python -m benchmarks.step_sizes docs/figures/step-sizes.csv
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import ep_bench

DATASETS = ("boston", "concrete", "energy", "wine", "yacht")
SPLITS = (10, 11, 12, 13)
FRACTION = 0.2  # of the training points


class Candidates(NamedTuple):
    """A method with fixed options, and the values of one option."""

    label: str
    method: str
    fixed: dict[str, Any]
    option: str
    tried: tuple[float, ...]


CANDIDATES = (
    Candidates("bb_alpha", "bb_alpha", {"alpha": 0.5}, "learning_rate", (0.001, 0.002, 0.004, 0.008)),
    Candidates("dropout", "dropout", {}, "learning_rate", (0.001, 0.0025, 0.005, 0.01)),
    Candidates("ensemble", "ensemble", {}, "learning_rate", (0.003, 0.01, 0.03, 0.1)),
    Candidates("ensemble, 40 epochs", "ensemble", {"epochs": 40}, "learning_rate", (0.003, 0.01, 0.03, 0.1)),
    Candidates("dgp_ep", "dgp_ep", {"hidden": [1], "inducing": 50}, "learning_rate", (0.001, 0.002, 0.005)),
)


def measured(one: Candidates, value: float, dataset: str, split: int) -> dict[str, Any]:
    """Return the mean log density (nats, units of the target) of validation points, and the CPU seconds of the fit."""
    data = ep_bench.load_dataset(dataset)
    train, _ = ep_bench.standard_split(len(data.y), split)
    train = np.random.default_rng(split).permutation(train)
    validation, rest = np.split(train, [round(FRACTION * len(train))])
    start, found = time.process_time(), ""
    try:
        model = ep_bench.Estimator(one.method, random_state=split, **one.fixed, **{one.option: value})
        model.fit(data.X[rest], data.y[rest])
        seconds = time.process_time() - start
        found = f"{model.predict_dist(data.X[validation]).logpdf(data.y[validation]).mean():.4f}"
    except FloatingPointError:
        seconds = time.process_time() - start
    return {"method": one.label, "option": one.option, "value": value, "dataset": dataset, "split": split,
            "validation_ll": found, "cpu_seconds": f"{seconds:.2f}"}  # fmt: skip


def main(path: str) -> None:
    """Write one row per method, value, data set and split to the file ``path``; a fit that fails has no density."""
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some step sizes do not converge
        for one in CANDIDATES:
            places = [(value, dataset, split) for value in one.tried for dataset in DATASETS for split in SPLITS]
            rows += [measured(one, *place) for place in places]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
