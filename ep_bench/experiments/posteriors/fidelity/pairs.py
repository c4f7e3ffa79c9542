"""Paired comparisons of distances over data sets, whose splits are averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ep_bench.experiments.record import Claim, ExperimentResults

FLOOR = "HMC, half of the chains"
FEWEST = 5  # data sets, below which no test is made
FEWEST_METHODS = 4  # of a rank correlation
LEVEL = 0.05
DISTANCE = "wasserstein_2"
# Claims: text, network, the method that should be closer, the other one.
CLAIMS = (
    ("EP (PBP) is closer to the posterior than VI", "relu", "PBP", "VI"),
    ("EP (PBP) is closer to the posterior than VI of Graves", "relu", "PBP", "VI (Graves)"),
    ("two short chains of HMC are closer to the posterior than VI", "relu", "HMC, 120 draws", "VI"),
    ("VI with a full covariance is closer to the posterior than VI", "relu", "VI, full covariance", "VI"),
    ("the full Hessian is closer to the posterior than the diagonal", "relu", "LA, full", "LA, diagonal"),
    ("the full Hessian is closer to the posterior than the diagonal", "probit", "LA, full", "LA, diagonal"),
    ("EP is closer to the posterior than Laplace", "probit", "NN-EP", "LA, full"),
)
BETWEEN = "the distance of alpha = 0.5 is between those of alpha near 0 and 1"
CORRELATED = "methods closer to the posterior have a higher log-likelihood ({} network)"
SAMPLED = ", sampled"  # end of labels
ALPHAS = ("BB-α 1e-6", "BB-α 0.5", "BB-α 1")

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


def set_means(found: Mapping[tuple[str, str], float]) -> list[float]:
    """Return the means over the splits of each data set, of values by data set and split."""
    by_set: dict[str, list[float]] = {}
    for (dataset, _), value in found.items():
        by_set.setdefault(dataset, []).append(value)
    return [float(np.mean(values)) for values in by_set.values()]


def geometric_mean(found: Mapping[tuple[str, str], float]) -> float:
    """Return the geometric mean over data sets and splits, in which each data set has the same weight."""
    return float(np.exp(np.mean(set_means({key: math.log(max(value, 1e-3)) for key, value in found.items()}))))


def floors(rows: Rows, network: str, name: str) -> list[float]:
    """Return the geometric mean of the floor in a list, empty without a floor."""
    found = values(rows, network, FLOOR, name)
    return [geometric_mean(found)] if found else []


class MeanTest(NamedTuple):
    """The mean over data sets, and the p-value of a t-test of mean 0."""

    mean: float
    p: float | None  # two-sided; None with too few data sets
    found: str  # in words

    def is_negative(self, tests: int) -> bool | None:
        """Return whether the mean is negative, None if this is not decided among so many tests."""
        return self.mean < 0.0 if self.p is not None and self.p * tests < LEVEL else None

    def words(self, tests: int) -> str:
        """Return what was found, with the p-value and that after Bonferroni's correction."""
        if self.p is None:
            return f"{self.found}; a test needs {FEWEST}"
        corrected = f" (corrected {min(self.p * tests, 1.0):.2g})" * (tests > 1)
        return f"{self.found}, p = {self.p:.2g}{corrected}"


def claims(results: ExperimentResults) -> list[Claim]:
    """Return the claims whose methods have results, with paired tests over data sets, corrected for their number.

    A claim with two tests holds if both means have the same sign, whichever that is.
    """
    rows = results.summary
    drafts = {f"{text} ({network} network)": _closer(rows, network, *pair) for text, network, *pair in CLAIMS}
    drafts[BETWEEN] = _neighbours(rows)
    drafts |= {
        CORRELATED.format(network): _correlated(rows, network) for network in sorted({r["network"] for r in rows})
    }
    count = sum(test.p is not None for tests in drafts.values() for test in tests)
    return [_judged(text, tests, count) for text, tests in drafts.items() if tests]


def _judged(text: str, tests: Sequence[MeanTest], count: int) -> Claim:
    signs = [test.is_negative(count) for test in tests]
    agreed = signs[0] if len(signs) == 1 else signs[0] == signs[1]
    return Claim(text, None if None in signs else agreed, "; ".join(test.words(count) for test in tests))


def _closer(rows: Rows, network: str, closer: str, other: str) -> list[MeanTest]:
    """Return the test that one method is closer than another, none without results of both."""
    ratios = _log_ratios(rows, network, closer, other)
    return [_tested(ratios, "W2 is {} times that of the other")] if ratios else []


def _neighbours(rows: Rows) -> list[MeanTest]:
    """Return the tests of alpha near 0 against 0.5 and of 0.5 against 1, none without results of all."""
    steps = [_log_ratios(rows, "relu", *pair) for pair in pairwise(ALPHAS)]
    template, names = "W2 with alpha {} is {{}} times that with {}", (("near 0", "0.5"), ("0.5", "1"))
    return (
        [_tested(step, template.format(*pair)) for step, pair in zip(steps, names, strict=True)] if all(steps) else []
    )


def _correlated(rows: Rows, network: str) -> list[MeanTest]:
    """Return the test of a correlation of distance and log-likelihood across the methods that aim at the posterior.

    Sampled predictions of a Laplace approximation are left out: they are of the same fits as the linearised ones.
    """
    from scipy.stats import spearmanr

    methods = [name for name, same in methods_of(rows, network).items() if same and not name.endswith(SAMPLED)]
    columns = [[values(rows, network, method, name) for method in methods] for name in (DISTANCE, "ll")]
    found = {}
    for key in sorted({key for one in columns[1] for key in one}):
        both = [(d[key], ll[key]) for d, ll in zip(*columns, strict=True) if key in d and key in ll]
        if len(both) >= FEWEST_METHODS:
            found[key] = float(spearmanr(*np.transpose(both)).statistic)
    words = "Spearman's rank correlation of W2 and log-likelihood across methods is {}"
    return [_tested(found, words, float)] if found else []


def _log_ratios(rows: Rows, network: str, first: str, second: str) -> dict[tuple[str, str], float]:
    """Return the log of the ratio of two methods' distances by data set and split."""
    a, b = (values(rows, network, method, DISTANCE) for method in (first, second))
    return {key: math.log(a[key] / b[key]) for key in sorted(a.keys() & b.keys())}


def _tested(
    found: Mapping[tuple[str, str], float], template: str, shown: Callable[[float], float] = math.exp
) -> MeanTest:
    """Return the two-sided t-test of values by data set and split.

    It is over the means of the data sets, because splits of one share their points.
    """
    from scipy.stats import ttest_1samp

    means = np.array(set_means(found))
    mean = float(means.mean())
    words = f"{template.format(f'{shown(mean):.3g}')} on average over {len(means)} data set{'s' * (len(means) > 1)}"
    return MeanTest(mean, float(ttest_1samp(means, 0.0).pvalue) if len(means) >= FEWEST else None, words)
