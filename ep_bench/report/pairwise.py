"""Comparison of two methods on each data set, and over all data sets.

===========  ==============================================================================
symbol       meaning
===========  ==============================================================================
d_j          score of the first method minus that of the second on split j = 1, ..., J
s^2          variance of the d_j, ddof 1
r            n_test / n_train of splits with common data points, 0 of independent draws
v            (1 / J + r) s^2, the squared standard error of the mean of the d_j
===========  ==============================================================================

The corrected resampled t-test has J - 1 degrees of freedom and the standard error sqrt(v) (Nadeau and Bengio 2003,
Inference for the generalization error, Machine Learning 52). The posterior distribution of the mean difference in the
Bayesian correlated t-test is a Student t distribution with the same degrees of freedom, mean and scale (Corani and
Benavoli 2015, A Bayesian approach for comparing cross-validated algorithms on multiple data sets, Machine Learning
100, with correlation n_test / (n_train + n_test)). Over data sets, the blocks are the data sets with their mean
scores, and r = 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats

from ep_bench.errors import UserError
from ep_bench.report.merge import MergedStudies, few_target_values, independent_draws, repeated_data, unranked
from ep_bench.report.scores import BY_NAME, MAIN, MORE, TARGET, Score
from ep_bench.report.significance import ALPHA, holm, split_ratios, standard_error, t_p
from ep_bench.types import Array

ALL = "all data sets"
POWER = 0.8
COLUMNS = (
    "score", "first", "second", "dataset", "blocks", "mean_first", "mean_second", "difference", "low", "high", "p",
    "p_holm", "wins", "losses", "p_better", "p_equivalent", "p_worse", "detectable",
)  # fmt: skip


def compare(
    results: pd.DataFrame,
    first: str,
    second: str,
    *,
    score: str = "ll",
    rope: float = 0.0,
    independent: Collection[str] = (),
    left_out: Collection[str] = (),
) -> pd.DataFrame:
    """Compare two methods on their common splits of each data set, and over all data sets.

    Parameters
    ----------
    results : DataFrame
        Finished cells, as `load_results` or `run` returns them.
    first, second : str
        Labels of the methods.
    score : str
        A score of which lower or higher values are better, such as ``ll``, ``rmse``, ``crps`` or ``error_rate``.
    rope : float
        Half the width of the region of practical equivalence, in the units of ``difference``.
    independent : collection of str
        Data sets whose splits are independent draws, without common data points. Their test is not corrected.
    left_out : collection of str
        Data sets that do not count in the row over all data sets, such as those on which the score has no upper bound,
        or that contain the data points of another one.

    Returns
    -------
    DataFrame
        One row per data set and, of several data sets, a last row ``all data sets``, whose blocks are the data sets.
        ``difference`` is the mean of the first minus the second method in units of the score. Scores in units of the
        target are compared by their logarithms over all data sets, and ``mean_first`` is a geometric mean there.
        ``low`` and ``high`` are the 95 % interval of the difference, ``p`` is the p-value of the corrected resampled
        t-test, and ``p_holm`` has Holm's correction over the data sets. ``wins`` and ``losses`` are numbers of blocks.
        ``p_better``, ``p_equivalent`` and ``p_worse`` are the posterior probabilities that the mean of the first
        method is better by more than ``rope``, equal within it, and worse. ``detectable`` is the mean difference that
        the test, with this number and variance of blocks, finds with a probability of 80 %. One block has no interval
        and no test (NaN).

    Raises
    ------
    UserError
        A method has no finished cell with the score, no split is common, or there is no such score or region.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.
    Corani and Benavoli (2015), A Bayesian approach for comparing cross-validated algorithms on multiple data sets,
    Machine Learning 100.
    """
    table = compare_all(results, (first, second), score=score, rope=rope, independent=independent, left_out=left_out)
    if table.empty:
        raise UserError(f"{first} and {second} have no common split", where="compare")
    single = table["dataset"] != ALL
    table.loc[single, "p_holm"] = holm(table.loc[single, "p"].to_numpy())
    return table


def compare_all(
    results: pd.DataFrame,
    methods: Sequence[str],
    *,
    score: str = "ll",
    rope: float = 0.0,
    independent: Collection[str] = (),
    left_out: Collection[str] = (),
) -> pd.DataFrame:
    """Return the rows of `compare` of all pairs of methods with a common split.

    Holm's correction is over the pairs, for each data set apart.
    """
    if rope < 0.0 or not math.isfinite(rope):
        raise UserError("wrong region of practical equivalence", where="compare", found=rope, allowed="0 or more")
    chosen = score_named(score)
    scores = _finished(results, chosen)
    for method in methods:
        if method not in scores.columns:
            known = [str(name) for name in scores.columns]
            raise UserError("no finished cell with this score", where=f"compare: {method}", allowed=known, name=method)
    ratios = {name: 0.0 if name in independent else ratio for name, ratio in split_ratios(results).items()}
    table = _differences(scores, methods, chosen, ratios, left_out)
    if table.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    _add_tests(table, rope, 1.0 if chosen.better == "higher" else -1.0)
    table["p_holm"] = table.groupby("dataset", sort=False)["p"].transform(lambda p: holm(p.to_numpy()))
    return table.assign(score=score)[list(COLUMNS)]


def facts(merged: MergedStudies, score: str) -> dict[str, Any]:
    """Return ``independent`` and ``left_out`` of `compare` for merged studies and the column of a score."""
    left_out = {*repeated_data(merged, merged.datasets), *unranked(merged)}
    if score == "ll":
        left_out |= few_target_values(merged).keys()
    return {"independent": independent_draws(merged), "left_out": left_out}


def score_named(name: str) -> Score:
    """Return the score of a column with a better side. Raises UserError for any other name."""
    ranked = {score.source: score for score in (*reversed(MAIN), *MORE) if score.better}
    if name not in ranked:
        problem = "score without a better side" if name in BY_NAME else "unknown score"
        raise UserError(problem, where="compare", found=name, allowed=ranked, name=name)
    return ranked[name]


def _finished(results: pd.DataFrame, score: Score) -> pd.DataFrame:
    """Return the scores of the finished cells, a row per data set and split and a column per method."""
    done = results[(results["status"] == "ok") & results[score.source].notna()]
    require_one_row_per_split(done, "compare")
    return done.pivot_table(score.source, ["dataset", "split"], "method", aggfunc="first", sort=False)


def require_one_row_per_split(rows: pd.DataFrame, where: str) -> None:
    """Raise UserError if a method has several rows for a split of a data set."""
    repeated = rows[rows.duplicated(["method", "dataset", "split"])]
    if len(repeated):
        method, dataset = repeated.iloc[0][["method", "dataset"]]
        allowed = "one seed, and one meaning of each label"
        raise UserError(f"{method} on {dataset} has several rows per split", where=where, allowed=allowed)


def _differences(
    scores: pd.DataFrame, methods: Sequence[str], score: Score, ratios: dict[str, float], left_out: Collection[str]
) -> pd.DataFrame:
    """Return what the tests need of each pair of methods: of each data set, and of all if there are several."""
    sign = 1.0 if score.better == "higher" else -1.0
    first, second = np.triu_indices(len(methods), 1)
    found, means = [], []
    for name, part in scores.groupby(level="dataset", sort=False):
        values = part[list(methods)].to_numpy(dtype=float)
        of_set = _paired(values[:, first], values[:, second], sign, ratios[str(name)])
        found.append(of_set.assign(dataset=str(name)))
        if str(name) not in left_out:
            means.append(of_set.reindex(range(len(first)))[["mean_first", "mean_second"]].to_numpy())
    if len(means) > 1:
        found.append(_over_all(np.array(means, dtype=float), score, sign).assign(dataset=ALL))
    table = pd.concat(found).sort_index(kind="stable")
    names = np.array(methods, dtype=object)
    return table.assign(first=names[first[table.index]], second=names[second[table.index]]).reset_index(drop=True)


def _over_all(means: Array, score: Score, sign: float) -> pd.DataFrame:
    """Return the comparison of pairs by their means (D, P, 2) on the data sets, NaN where a pair has none.

    A pair needs two data sets and, if the units differ, no error of 0.
    """
    if score.unit == TARGET:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.log(np.where((means <= 0.0).any(axis=(0, 2), keepdims=True), math.nan, means))
    table = _paired(means[..., 0], means[..., 1], sign, 0.0)
    if score.unit == TARGET:
        table[["mean_first", "mean_second"]] = np.exp(table[["mean_first", "mean_second"]])
    return table[table["blocks"] > 1]


def _paired(a: Array, b: Array, sign: float, ratio: float) -> pd.DataFrame:
    """Return one row for each pair with a common block, from the scores (J, P) of both methods, NaN without one."""
    gaps = a - b
    patterns, of_pair = np.unique(~np.isnan(gaps), axis=1, return_inverse=True)
    parts = []
    for place, common in enumerate(patterns.T):
        pairs = np.flatnonzero(of_pair.ravel() == place)
        own = gaps[np.ix_(common, pairs)]
        if not common.any():
            continue
        columns = {
            "blocks": np.full(len(pairs), len(own)),
            "mean_first": a[np.ix_(common, pairs)].mean(axis=0),
            "mean_second": b[np.ix_(common, pairs)].mean(axis=0),
            "difference": own.mean(axis=0),
            "wins": (sign * own > 0.0).sum(axis=0),
            "losses": (sign * own < 0.0).sum(axis=0),
            "error": standard_error(own, ratio),
        }
        parts.append(pd.DataFrame(columns, index=pairs))
    if parts:
        return pd.concat(parts)
    types = {"blocks": int, "wins": int, "losses": int, "mean_first": float, "mean_second": float}
    return pd.DataFrame(columns=list(types)).astype(types)  # counts of other data sets remain integers


def _add_tests(table: pd.DataFrame, rope: float, sign: float) -> None:
    """Add intervals, p-values, probabilities and detectable differences to rows with means and standard errors."""
    freedom, mean, error = table["blocks"].to_numpy() - 1, table["difference"].to_numpy(), table["error"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        half = error * stats.t.isf(ALPHA / 2.0, freedom)
        table["low"], table["high"] = mean - half, mean + half
        table["p"] = t_p(mean, error, freedom)
        for column, distance in (("p_better", sign * mean - rope), ("p_worse", -sign * mean - rope)):
            certain = np.where(distance > 0.0, 1.0, 0.0)
            table[column] = np.where(error == 0.0, certain, stats.t.cdf(distance / error, freedom))
    table["p_equivalent"] = (1.0 - table["p_better"] - table["p_worse"]).round(14).clip(lower=0.0)
    table["detectable"] = error * np.array([_detectable_errors(J) for J in table["blocks"].astype(int)])


@cache
def _detectable_errors(J: int) -> float:
    """Return the mean difference, in standard errors, that a two-sided t-test of J differences finds with ``POWER``."""
    if J < 2:
        return math.nan
    limit = float(stats.t.isf(ALPHA / 2.0, J - 1))

    def missing_power(shift: float) -> float:
        return float(stats.nct.sf(limit, J - 1, shift)) - POWER  # a difference found on the wrong side does not count

    return float(optimize.brentq(missing_power, 0.0, 1.5 * limit + 3.0))
