"""CPU seconds of a fit with the settings of an earlier version of a method and with the present ones, in one run.

Each fit has the training points of standard split 0 of a data set. There is no search for options. The settings of the
earlier versions are options of the present ones. With names of entries, only these are measured; the rows of the others
remain, each of one run.

    python -m benchmarks.version_times docs/figures/version-times.csv [ENTRY ...]
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
MORE = (*DATASETS, "kin8nm", "naval", "power")
PROGRAM = {"schedule": "released program", "learning_rate": 0.001, "test_samples": 50}


class Versions(NamedTuple):
    """An entry of the studies: its method, the options of both versions, and those of the earlier one alone."""

    entry: str
    method: str
    both: dict[str, Any]
    earlier: dict[str, Any]
    present: dict[str, Any]
    datasets: tuple[str, ...] = DATASETS


def deep_process(entry: str, hidden: list[int]) -> tuple[Versions, Versions]:
    """Return a deep process with the training of the released program and with the default one.

    The study of the former has 100 inducing inputs on protein.
    """
    both = {"hidden": hidden}
    few, many = {"inducing": 50}, {"inducing": 100}
    program = {"training": "released program"}
    return (
        Versions(entry, "dgp_ep", both, program | few, few, MORE),
        Versions(entry, "dgp_ep", both, program | many, few, ("protein",)),
    )


VERSIONS = (
    *(
        Versions(f"BB-alpha {alpha}", "bb_alpha", {"alpha": float(alpha)}, PROGRAM, {})
        for alpha in ("1e-6", "0.5", "1")
    ),
    Versions("Dropout-1", "dropout", {}, {"epochs": 400, "tau": 10.0}, {}),
    Versions("Dropout-1, step size 0.001", "dropout", {}, {"learning_rate": 0.005}, {"learning_rate": 0.001}),
    Versions(
        "Dropout-1, program", "dropout", {}, {"learning_rate": 0.005}, {"learning_rate": 0.001, "batch_size": 128}
    ),
    Versions("VI-1 heteroscedastic", "vi", {"restarts": 5}, {}, HETEROSCEDASTIC),
    Versions("VI-1, starts", "vi", {}, {}, {"restarts": 5}),
    Versions("VI-2, starts", "vi", {"hidden": [50, 50]}, {}, {"restarts": 5}),
    Versions("VI-1 heteroscedastic, starts", "vi", HETEROSCEDASTIC, {}, {"restarts": 5}),
    Versions("LA-full", "laplace", {"hessian": "full"}, {"starts": 0}, {}),
    Versions("LA-diagonal", "laplace", {"hessian": "diag"}, {"starts": 0}, {}),
    Versions("NN-EP-LA", "ep_nn", {"hidden": [10], "prior": "laplace"}, {}, {"restarts": 5}),
    Versions("NN-EP-ARD", "ep_nn", {"hidden": [10], "prior": "ard"}, {}, {"restarts": 5}),
    Versions("GP-t, EP", "gp_t", {}, {"evidence_check": None}, {}),
    Versions("GP, starts", "gp", {}, {"starts": 3}, {"starts": 20}, ("boston", "yacht")),
    *deep_process("GP-50, cosine", []),
    *(version for q in (1, 2, 3) for version in deep_process(f"DGP-{q}-50, cosine", [q])),
)


def seconds(method: str, options: dict[str, Any], dataset: str) -> str:
    """Return the CPU seconds of one fit."""
    data = ep_bench.load_dataset(dataset)
    train, _ = ep_bench.standard_split(len(data.y), 0)
    model = ep_bench.Estimator(method, random_state=0, **options)
    start = time.process_time()
    model.fit(data.X[train], data.y[train])
    return f"{time.process_time() - start:.3g}"


def measured(one: Versions) -> list[dict[str, str]]:
    """Return the rows of an entry."""
    sides = {"earlier": one.both | one.earlier, "present": one.both | one.present}
    for options in sides.values():
        seconds(one.method, options, "yacht")  # compiles
    return [
        {"entry": one.entry, "dataset": dataset}
        | {side: seconds(one.method, options, dataset) for side, options in sides.items()}
        for dataset in one.datasets
    ]


def main(path: str, *entries: str) -> None:
    """Write one row per entry and data set to the file ``path``; with ``entries``, keep the rows of others."""
    unknown = set(entries) - {one.entry for one in VERSIONS}
    if unknown:
        raise SystemExit(f"no such entry: {', '.join(sorted(unknown))}")
    kept = pd.read_csv(path, dtype=str) if entries else pd.DataFrame({"entry": []})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some fits do not converge
        rows = [row for one in VERSIONS if not entries or one.entry in entries for row in measured(one)]
    pd.concat([kept[~kept["entry"].isin(entries)], pd.DataFrame(rows)]).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
