"""Errors at test inputs that the training data also have, and at the others, of trees and of a Gaussian process.

Both sets have many repeated inputs, whose targets are mostly equal. The trees are extra trees of scikit-learn with
default options, the process that of ``gp.yaml`` with 50 inducing inputs. Standard splits; RMSE in original units.

    python -m benchmarks.repeated_inputs docs/figures/repeated-inputs.csv
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from ep_bench import Estimator, data

SPLITS = {"wine": 20, "protein": 5}


def seen(X: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Return whether each of ``inputs`` (N, d) is a row of X (n, d)."""
    known = {row.tobytes() for row in np.ascontiguousarray(X)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(inputs)])


def errors(dataset: str, split: int) -> list[dict[str, object]]:
    """Return the errors of both methods on a split."""
    loaded = data.load_dataset(dataset)
    train, test = data.standard_split(len(loaded.y), split)
    repeated = seen(loaded.X[train], loaded.X[test])
    models = {
        "Extra trees": ExtraTreesRegressor(random_state=split, n_jobs=1),
        "SGPR-50": Estimator("sgp", search="trials", approximation="vfe", inducing=50, random_state=split),
    }
    rows: list[dict[str, object]] = []
    for name, model in models.items():
        squares = (model.fit(loaded.X[train], loaded.y[train]).predict(loaded.X[test]) - loaded.y[test]) ** 2
        parts = {"all": squares, "repeated": squares[repeated], "other": squares[~repeated]}
        rows.append({"dataset": dataset, "split": split, "method": name, "share_repeated": round(repeated.mean(), 4)}
                    | {part: round(float(np.sqrt(values.mean())), 5) for part, values in parts.items()})  # fmt: skip
    return rows


if __name__ == "__main__":
    found = [row for dataset, count in SPLITS.items() for split in range(count) for row in errors(dataset, split)]
    pd.DataFrame(found).to_csv(sys.argv[1], index=False, lineterminator="\n")
