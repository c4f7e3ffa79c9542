"""Bias of log-likelihoods from 50 weight samples: black-box alpha with the settings of the released program on boston.

Each fit to a standard split predicts twice: with 5,000 and with 50 samples.

    python -m benchmarks.bb_alpha_samples docs/figures/bb-alpha-samples.csv
"""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

import ep_bench

PROGRAM = {"alpha": 1.0, "schedule": "released program", "learning_rate": 0.001}
SPLITS, MANY = 20, 5000


def log_likelihoods(dataset: str, split: int, few: int, method: str, **options: Any) -> dict[str, float]:
    """Return the mean test log-likelihoods of one fit with 5,000 and with ``few`` samples."""
    data = ep_bench.load_dataset(dataset)
    train, test = ep_bench.standard_split(len(data.y), split)
    model = ep_bench.Estimator(method, random_state=split, **options).fit(data.X[train], data.y[train])
    found: dict[str, float] = {"split": split}
    for samples in (MANY, few):
        model.state_ = model.state_._replace(test_samples=samples)
        values = model.predict_dist(data.X[test]).logpdf(data.y[test])
        found[f"ll_{samples}"] = round(float(values.mean()), 4)
    return found


def main(path: str) -> None:
    """Write one row per split to the file ``path``."""
    rows = [log_likelihoods("boston", split, 50, "bb_alpha", **PROGRAM) for split in range(SPLITS)]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
