"""Sentences on data sets, statistics, memory and files."""

from __future__ import annotations

import math
import subprocess

import numpy as np
from arviz_stats.base import array_stats

import ep_bench
from ep_bench.report.paired_tests import t_test_p

from .stored import DOCS, ROOT, all_results, cells, rows_of

ROUNDING = 1e-5  # standard deviations over the splits


def repeated_points() -> str:
    """Return how many points of wine repeat the inputs of another one."""
    inputs = ep_bench.load_dataset("wine").X
    return f"wine repeats {len(inputs) - len(np.unique(inputs, axis=0))} of {len(inputs):,} points"


def independent_test() -> str:
    """Return the p-value of GA and LA2 on independent draws with the correction for overlap, and without."""
    both = [[row["rmse"] for row in cells("student-t-friedman", name, "friedman-outliers")] for name in ("GA", "LA2")]
    gaps = np.subtract(*both)
    return f"For RMSE of GA and LA2, p is then {t_test_p(gaps, 10.0):.2f} instead of {t_test_p(gaps, 0.0):.4f}"


def memory() -> str:
    """Return the range of the medians over folders of the largest memory of a cell."""
    found = [[row["peak_mb"] for row in study.rows if row.get("peak_mb")] for study in all_results().studies]
    medians = [np.median(values) for values in found if values]
    return f"The medians of the folders in `results/` are {min(medians):.0f} to {max(medians):.0f} MB"


def size() -> str:
    """Return an upper limit of the size of the committed results."""
    files = ["git", "ls-files", "-z", "results"]
    names = subprocess.run(files, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    total = sum((ROOT / name).stat().st_size for name in names if name and (ROOT / name).exists())
    return f"All folders together have less than {10 * math.ceil(total / 1e7)} MB"


def other_processor() -> str:
    """Return how much converged fits differ with the instructions and the BLAS kernel of another processor."""
    rows = rows_of(DOCS / "figures" / "other-processor.csv")
    fits = {(row["study"], row["method"], row["dataset"], row["split"]) for row in rows}
    differences = [abs(float(row["difference"])) for row in rows]
    equal = np.mean(np.array(differences) < ROUNDING)
    largest = rows[int(np.argmax(differences))]
    return (
        f"Of {len(fits)} converged fits, {equal:.0%} of the RMSE and log-likelihoods "
        "were equal to 1e-5 standard deviations over the splits. "
        f"The largest difference was {max(differences):.2f} standard deviations, of {largest['method']}"
    ).replace("%", " %")


def r_hat_of_few_draws() -> str:
    """Return the largest R-hat of independent draws, for few and for more draws per chain."""
    rng, found = np.random.default_rng(0), []
    for chains, draws in ((2, 50), (4, 250)):
        series = rng.standard_normal((20, chains, draws, 50))  # 20 sets of 50 predictions
        largest = [array_stats.rhat(one, chain_axis=0, draw_axis=1).max() for one in series]
        found.append(f"{np.median(largest):.2f}")
    return (
        f"For 2 chains of 50 independent draws, the largest R-hat of 50 predictions has a median of {found[0]}; "
        f"for 4 chains of 250, of {found[1]}"
    )


FACTS = [
    ("records.md", other_processor),
    ("scores.md", repeated_points),
    ("statistics.md", independent_test),
    ("statistics.md", r_hat_of_few_draws),
    ("clusters.md", memory),
    ("results.md", size),
]
