"""Bias of log-likelihoods of `vi` from 100 weight samples, the default, on three small data sets.

Each fit to a standard split, from one start, predicts twice: with 5,000 and with 100 samples.

    python -m benchmarks.vi_samples docs/figures/vi-samples.csv
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pandas as pd

from benchmarks.bb_alpha_samples import SPLITS, log_likelihoods
from ep_bench.methods import vi

DATASETS = ("boston", "energy", "yacht")
ENTRIES: dict[str, dict[str, Any]] = {
    "VI-1": {},
    "VI-1 heteroscedastic": {"noise": "heteroscedastic", "prior": "empirical"},
}


def main(path: str) -> None:
    """Write one row per entry, data set and split to the file ``path``."""
    warnings.simplefilter("ignore")
    few = vi.Config().test_samples
    rows = [
        {"entry": entry, "dataset": dataset} | log_likelihoods(dataset, split, few, "vi", **options)
        for entry, options in ENTRIES.items()
        for dataset in DATASETS
        for split in range(SPLITS)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
