"""CPU seconds of a fit with the settings of an earlier version of a method and with the present ones, in one run.

Each fit has the training points of standard split 0 of a small data set. There is no search for options. The settings
of the earlier versions are options of the present ones.

    python -m benchmarks.version_times docs/figures/version-times.csv
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import pandas as pd
from threadpoolctl import threadpool_limits

import ep_bench

DATASETS = ("boston", "concrete", "energy", "wine", "yacht")
HETEROSCEDASTIC = {"noise": "heteroscedastic", "prior": "empirical"}
PROGRAM = {"schedule": "released program", "learning_rate": 0.001, "test_samples": 50}


class Versions(NamedTuple):
    """An entry of the studies: its method, the options of both versions, and those of the earlier one alone."""

    entry: str
    method: str
    both: dict[str, Any]
    earlier: dict[str, Any]
    present: dict[str, Any]


VERSIONS = (
    *(
        Versions(f"BB-alpha {alpha}", "bb_alpha", {"alpha": float(alpha)}, PROGRAM, {})
        for alpha in ("1e-6", "0.5", "1")
    ),
    Versions("Dropout-1", "dropout", {}, {"epochs": 400, "tau": 10.0}, {}),
    Versions("VI-1 heteroscedastic", "vi", {"restarts": 5}, {}, HETEROSCEDASTIC),
    Versions("VI-1, starts", "vi", {}, {}, {"restarts": 5}),
    Versions("VI-2, starts", "vi", {"hidden": [50, 50]}, {}, {"restarts": 5}),
    Versions("VI-1 heteroscedastic, starts", "vi", HETEROSCEDASTIC, {}, {"restarts": 5}),
    Versions("LA-full", "laplace", {"hessian": "full"}, {"starts": 0}, {}),
    Versions("LA-diagonal", "laplace", {"hessian": "diag"}, {"starts": 0}, {}),
    Versions("NN-EP-LA", "ep_nn", {"hidden": [10], "prior": "laplace"}, {}, {"restarts": 5}),
    Versions("NN-EP-ARD", "ep_nn", {"hidden": [10], "prior": "ard"}, {}, {"restarts": 5}),
    Versions("GP-t, EP", "gp_t", {}, {"evidence_check": None}, {}),
)


def seconds(method: str, options: dict[str, Any], dataset: str) -> str:
    """Return the CPU seconds of one fit."""
    data = ep_bench.load_dataset(dataset)
    train, _ = ep_bench.standard_split(len(data.y), 0)
    model = ep_bench.Estimator(method, random_state=0, **options)
    start = time.process_time()
    model.fit(data.X[train], data.y[train])
    return f"{time.process_time() - start:.3g}"


def main(path: str) -> None:
    """Write one row per entry and data set to the file ``path``."""
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some fits do not converge
        for one in VERSIONS:
            sides = {"earlier": one.both | one.earlier, "present": one.both | one.present}
            for options in sides.values():
                seconds(one.method, options, "yacht")  # compiles
            for dataset in DATASETS:
                times = {side: seconds(one.method, options, dataset) for side, options in sides.items()}
                rows.append({"entry": one.entry, "dataset": dataset} | times)
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
