"""Whole fits of sparse Gaussian processes to kin8nm by both searches and by GPy: evidence or bound, and processor time.

All sides start from the same inducing inputs and hyperparameters, without priors, on one core. Several splits, because
ends differ between local optima by chance. The comparison is that of ``bench_gp.bench_searches``.

    pip install -e '.[peers]'
    python -m benchmarks.sgp_searches docs/figures/sgp-searches.csv
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pandas as pd

from benchmarks.bench_gp import INDUCING, compared_searches

DATASET = "kin8nm"
CASES = [*((inducing, 0) for inducing in INDUCING), *((100, split) for split in range(1, 5))]  # inducing inputs, split
COLUMNS = ["approximation", "inducing", "split", "trials", "many", "gpy", "many_over_trials", "gpy_over_trials"]


def main(path: str) -> None:
    """Write one row per approximation, number of inducing inputs and split to the file ``path``."""
    if not (find_spec("GPy") and find_spec("gpytorch")):
        raise SystemExit("this comparison needs the extra peers")
    rows = [
        {"approximation": one, "inducing": inducing, "split": split} | compared_searches(DATASET, inducing, one, split)
        for one in ("fitc", "vfe")
        for inducing, split in CASES
    ]
    pd.DataFrame(rows)[COLUMNS].to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
