"""Paired comparisons of distances over data sets and splits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ep_bench.experiments.record import Claim, ExperimentResults
from ep_bench.types import Array

FLOOR = "HMC, half of the chains"
FEWEST = 5  # pairs, below which no test is made
LEVEL = 0.05
DISTANCE = "wasserstein_2"
# Claims: text, network, the method that should be closer, the other one.
CLAIMS = (
    ("EP (PBP) is closer to the posterior than VI", "relu", "PBP", "VI"),
    ("EP (PBP) is closer to the posterior than VI of Graves", "relu", "PBP", "VI (Graves)"),
    ("alpha = 0.5 is closer to the posterior than alpha near 0", "relu", "BB-α 0.5", "BB-α 1e-6"),
    ("alpha = 1 is closer to the posterior than alpha = 0.5", "relu", "BB-α 1", "BB-α 0.5"),
    ("the full Hessian is closer to the posterior than the diagonal", "relu", "LA, full", "LA, diagonal"),
    ("the full Hessian is closer to the posterior than the diagonal", "probit", "LA, full", "LA, diagonal"),
    ("EP is closer to the posterior than Laplace", "probit", "NN-EP", "LA, full"),
)

Rows = Sequence[Mapping[str, str]]


def values(rows: Rows, network: str, method: str, name: str) -> dict[tuple[str, str], float]:
    """Return a column of a method by data set and split, without empty values."""
    mine = (row for row in rows if (row["network"], row["method"]) == (network, method) and row[name])
    return {(row["dataset"], row["split"]): float(row[name]) for row in mine}


def methods_of(rows: Rows, network: str, *, with_floor: bool = False) -> dict[str, bool | None]:
    """Return whether each method of a network aims at the posterior; None for the floor."""
    found: dict[str, bool | None] = {
        row["method"]: row["same_posterior"] == "true" for row in rows if row["network"] == network
    }
    found.pop(FLOOR, None)
    return {FLOOR: None, **found} if with_floor else found


def floors(rows: Rows, network: str, name: str) -> list[float]:
    """Return the geometric mean of the floor in a list, empty without a floor."""
    found = list(values(rows, network, FLOOR, name).values())
    return [float(np.exp(np.mean(np.log(found))))] if found else []


def claims(results: ExperimentResults) -> list[Claim]:
    """Return the claims of ``CLAIMS`` whose methods have results."""
    found = []
    for text, network, closer, other in CLAIMS:
        first, second = (values(results.summary, network, name, DISTANCE) for name in (closer, other))
        if common := sorted(first.keys() & second.keys()):
            ratios = np.array([math.log(first[key] / second[key]) for key in common])
            found.append(Claim(f"{text} ({network} network)", *_judged(ratios)))
    return found


def _judged(ratios: Array) -> tuple[bool, str]:
    """Return whether log ratios are below 0, and in words the mean ratio with a two-sided paired t-test."""
    from scipy.stats import ttest_1samp

    over = f"{len(ratios)} split{'s' * (len(ratios) > 1)}"
    words = f"W2 is {math.exp(ratios.mean()):.3g} times that of the other on average over {over}"
    if len(ratios) < FEWEST:
        return bool(ratios.mean() < 0.0), f"{words}; too few for a test"
    p = float(ttest_1samp(ratios, 0.0).pvalue)
    return bool(ratios.mean() < 0.0 and p < LEVEL), f"{words}, p = {p:.2g} (paired t-test of logarithms)"
