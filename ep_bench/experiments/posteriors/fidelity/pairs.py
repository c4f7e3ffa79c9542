"""Paired comparisons of distances over data sets, whose splits are averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

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
    ("the full Hessian is closer to the posterior than the diagonal", "relu", "LA, full", "LA, diagonal"),
    ("the full Hessian is closer to the posterior than the diagonal", "probit", "LA, full", "LA, diagonal"),
    ("EP is closer to the posterior than Laplace", "probit", "NN-EP", "LA, full"),
)
BETWEEN = "the distance of alpha = 0.5 is between those of alpha near 0 and 1"
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


def claims(results: ExperimentResults) -> list[Claim]:
    """Return the claims whose methods have results, with paired tests over data sets."""
    rows = results.summary
    found = [_closer(rows, *claim) for claim in CLAIMS]
    found += [_between(rows)] + [_correlated(rows, network) for network in sorted({row["network"] for row in rows})]
    return [claim for claim in found if claim is not None]


def _closer(rows: Rows, text: str, network: str, closer: str, other: str) -> Claim | None:
    """Return the claim that one method is closer than another, None without results of both."""
    ratios = _log_ratios(rows, network, closer, other)
    return (
        Claim(f"{text} ({network} network)", *_negative(ratios, "W2 is {} times that of the other")) if ratios else None
    )


def _between(rows: Rows) -> Claim | None:
    """Return the claim on alpha = 0.5: both neighbouring differences have the same sign, whichever that is."""
    steps = [_log_ratios(rows, "relu", *pair) for pair in pairwise(ALPHAS)]
    if not all(steps):
        return None
    template, names = "W2 with alpha {} is {{}} times that with {}", (("near 0", "0.5"), ("0.5", "1"))
    judged = [_negative(step, template.format(*pair)) for step, pair in zip(steps, names, strict=True)]
    (first, words), (second, more) = judged
    return Claim(BETWEEN, None if None in (first, second) else first == second, f"{words}; {more}")


def _correlated(rows: Rows, network: str) -> Claim | None:
    """Return the claim that methods that aim at the posterior and are closer have a higher log-likelihood.

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
    if not found:
        return None
    judged = _negative(found, "Spearman's rank correlation of W2 and log-likelihood across methods is {}", float)
    return Claim(f"methods closer to the posterior have a higher log-likelihood ({network} network)", *judged)


def _log_ratios(rows: Rows, network: str, first: str, second: str) -> dict[tuple[str, str], float]:
    """Return the log of the ratio of two methods' distances by data set and split."""
    a, b = (values(rows, network, method, DISTANCE) for method in (first, second))
    return {key: math.log(a[key] / b[key]) for key in sorted(a.keys() & b.keys())}


def _negative(
    found: Mapping[tuple[str, str], float], template: str, shown: Callable[[float], float] = math.exp
) -> tuple[bool | None, str]:
    """Return whether values by data set and split have a negative mean, None if the test decides nothing; in words.

    The two-sided t-test is over the means of the data sets, because splits of one share their points.
    """
    from scipy.stats import ttest_1samp

    means = np.array(set_means(found))
    mean = float(means.mean())
    words = f"{template.format(f'{shown(mean):.3g}')} on average over {len(means)} data set{'s' * (len(means) > 1)}"
    if len(means) < FEWEST:
        return None, f"{words}; a test needs {FEWEST}"
    p = float(ttest_1samp(means, 0.0).pvalue)
    return (mean < 0.0 if p < LEVEL else None), f"{words}, p = {p:.2g}"
