"""Scores by method and data set: means, standard errors, marks, and rankings over data sets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ep_bench.report import ranks
from ep_bench.report.merge import MergedStudies
from ep_bench.report.ranks import Friedman
from ep_bench.report.scores import Score
from ep_bench.types import UNCONVERGED, Array


@dataclass(frozen=True)
class ScoreTable:
    """One score of D data sets and M methods, over the finished splits. Means are in the unit of the score."""

    score: Score
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean: Array  # (D, M), NaN without any split
    stderr: Array  # (D, M), standard deviation over splits (ddof 0) / sqrt(n)
    n: NDArray[np.int64]  # (D, M), splits with this score
    planned: NDArray[np.int64]  # (D, M)
    without: NDArray[np.int64]  # (D, M), splits that ended ok without this score: points have no log-likelihood
    unconverged: NDArray[np.int64]  # (D, M), splits whose method warned that it had not converged
    marked: NDArray[np.bool_]  # (D, M), the best method and those that the paired test does not find worse
    best: NDArray[np.int64]  # (D,), column of the best method, -1 without any
    p: Array  # (D, M), Holm-corrected p-values against the best method


@dataclass(frozen=True)
class Ranking:
    """Ranks of k methods over N blocks, with their tests; ``blocks`` names the blocks in words."""

    score: Score
    blocks: str
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]  # methods with scores on too few data sets
    incomplete: int  # blocks omitted because a method has no score there
    ranks: pd.DataFrame  # (N, k)
    test: Friedman
    q: float
    cd: float
    nemenyi: pd.DataFrame | None
    wilcoxon: pd.DataFrame | None

    @property
    def n(self) -> int:
        """Return the number of blocks."""
        return len(self.ranks)

    @property
    def average(self) -> pd.Series[float]:
        """Return the average ranks, best first."""
        return self.ranks.mean(axis=0).sort_values(kind="stable")


@dataclass(frozen=True)
class RankedScore:
    """One score: its table, and its rankings over data sets and over data sets times splits (none for one method)."""

    table: ScoreTable
    rankings: list[Ranking]

    @property
    def score(self) -> Score:
        """Return the score."""
        return self.table.score

    @property
    def over_datasets(self) -> Ranking | None:
        """Return the ranking over data sets, None with fewer than two of them."""
        return self.rankings[0] if self.rankings and self.rankings[0].n > 1 else None


def ranked_score(merged: MergedStudies, score: Score) -> RankedScore | None:
    """Return one score with its rankings, or None if no cell has it."""
    table = score_table(merged, score)
    return None if table is None else RankedScore(table, rankings(merged, score))


def pivot(merged: MergedStudies, score: Score) -> pd.DataFrame:
    """Return one score of the finished cells of its task, indexed by (dataset, split), with one column per method."""
    datasets = [name for name, task in merged.tasks().items() if score.task in {None, task}]
    rows = merged.ok()
    rows = rows[rows[score.source].notna() & rows["dataset"].isin(datasets)]
    table = rows.pivot(  # noqa: PD010 (raises for duplicates, which pivot_table would average)
        index=["dataset", "split"], columns="method", values=score.source
    )
    places = {dataset: place for place, dataset in enumerate(merged.datasets)}
    table = table.sort_index(key=lambda level: level.map(places) if level.name == "dataset" else level)
    return table[[method for method in merged.methods if method in table]]


def score_table(merged: MergedStudies, score: Score) -> ScoreTable | None:
    """Return the table of one score, or None if no cell has it."""
    table = pivot(merged, score)
    if table.empty:
        return None
    datasets = tuple(table.index.unique("dataset"))
    without = _cells_without(merged, score.source)
    methods = tuple(m for m in merged.methods if m in table or any((m, d) in without for d in datasets))
    table = table.reindex(columns=list(methods))
    groups = table.groupby(level="dataset", sort=False)
    n = groups.count().to_numpy(dtype=np.int64)
    stderr = groups.std(ddof=0).to_numpy(dtype=float) / np.sqrt(np.where(n, n, 1))
    mean = groups.mean().to_numpy(dtype=float)
    planned = np.array([[merged.planned.get((m, d), 0) for m in methods] for d in datasets])
    lacking = np.array([[without.get((m, d), 0) for m in methods] for d in datasets])
    counts = _unconverged(merged)
    unconverged = np.array([[counts.get((m, d), 0) for m in methods] for d in datasets])
    fractions = _test_fractions(merged)
    best, p, marked = np.full(len(datasets), -1), np.full(mean.shape, math.nan), np.zeros(mean.shape, dtype=bool)
    if score.better:
        for i, dataset in enumerate(datasets):
            block = table.loc[dataset].to_numpy(dtype=float)
            sign = 1.0 if score.better == "lower" else -1.0
            best[i], p[i], marked[i] = compare_with_best(sign * block, fractions.get(dataset, 0.0))
    return ScoreTable(score, datasets, methods, mean, stderr, n, planned, lacking, unconverged, marked, best, p)


def _cells_without(merged: MergedStudies, name: str) -> dict[tuple[str, str], int]:
    """Return the number of cells that ended ok without a score, by (method, data set)."""
    rows = merged.ok()
    lacking = rows.loc[rows[name].isna(), ["method", "dataset"]]
    return dict(Counter((str(method), str(dataset)) for method, dataset in lacking.itertuples(index=False)))


def _unconverged(merged: MergedStudies) -> dict[tuple[str, str], int]:
    """Return the number of finished cells with a convergence warning, by (method, data set)."""
    rows = merged.ok()
    rows = rows.loc[rows["reason"].fillna("").str.startswith(UNCONVERGED), ["method", "dataset"]]
    return dict(Counter((str(method), str(dataset)) for method, dataset in rows.itertuples(index=False)))


def _test_fractions(merged: MergedStudies) -> dict[str, float]:
    """Return n_test / n_train by data set, averaged over splits."""
    rows = merged.ok()
    ratio = rows["n_test"].astype(float) / rows["n_train"].astype(float)
    means = ratio.groupby(rows["dataset"]).mean().fillna(0.0)
    return {str(dataset): float(value) for dataset, value in means.items()}


def compare_with_best(losses: Array, test_fraction: float) -> tuple[int, Array, NDArray[np.bool_]]:
    """Return the best of M methods on one data set, p-values (M,) against it, and which methods to mark (M,).

    Only methods with the largest number of finished splits can be the best, so that no method wins by failing on hard
    splits. The best is compared with each other method on their common splits; the p-values have Holm's correction.
    With one split there is no test, and only the best is marked. A t-test is used because the smallest two-sided p of
    Wilcoxon's test with 5 splits is 1/16: it could never find a difference.

    Parameters
    ----------
    losses : (splits, M) array, lower is better, NaN for missing cells
    test_fraction : n_test / n_train
    """
    counts = np.sum(~np.isnan(losses), axis=0)
    full = np.flatnonzero(counts == counts.max())
    best = int(full[np.argmin(np.nanmean(losses[:, full], axis=0))])
    p = np.full(losses.shape[1], math.nan)
    worse = np.zeros(losses.shape[1], dtype=bool)
    for j in range(losses.shape[1]):
        gap = losses[:, j] - losses[:, best]
        gap = gap[~np.isnan(gap)]
        if j != best and len(gap) > 1:
            p[j], worse[j] = ranks.resampled_t_p(gap, test_fraction), float(np.mean(gap)) > 0.0
    tested = ~np.isnan(p)
    p[tested] = ranks.holm(p[tested])
    marked = tested & ~(worse & (p < ranks.ALPHA))
    marked[best] = True
    return best, p, marked


# Over data sets


def rankings(merged: MergedStudies, score: Score) -> list[Ranking]:
    """Return the rankings over data sets (Demsar 2006) and over data sets times splits (Bui et al. 2016).

    A data set's score is the mean over the splits that all ranked methods finished. Methods with scores on fewer than
    half of the data sets are not ranked. Blocks in which a ranked method has no score are omitted. With fewer than two
    methods there are no rankings.
    """
    table = pivot(merged, score)
    if not score.better or table.shape[1] < 2:
        return []
    covered = table.groupby(level="dataset", sort=False).count().gt(0)
    kept = covered.columns[2 * covered.sum() >= len(covered)]
    datasets_covered = set(covered.index)
    lacking = {method for method, dataset in _cells_without(merged, score.source) if dataset in datasets_covered}
    left_out = tuple(m for m in merged.methods if m not in kept and (m in covered or m in lacking))
    if len(kept) < 2:
        return []
    splits = table[kept].dropna()
    means = splits.groupby(level="dataset", sort=False).mean()
    datasets = tuple(str(name) for name in means.index)
    missing = len(covered) - len(means), len(table) - len(splits)
    return [
        ranking_of(score, "data sets", datasets, left_out, missing[0], means, pairwise=True),
        ranking_of(score, "data sets × splits", datasets, left_out, missing[1], splits, pairwise=False),
    ]


def ranking_of(
    score: Score,
    blocks: str,
    datasets: Sequence[str],
    left_out: tuple[str, ...],
    incomplete: int,
    scores: pd.DataFrame,
    *,
    pairwise: bool,
) -> Ranking:
    """Return the ranking of scores (N, k), with one row per block and one named column per method, without NaN."""
    values = scores.to_numpy(dtype=float)
    names = [str(name) for name in scores.columns]
    table = pd.DataFrame(ranks.block_ranks(values, higher_is_better=score.better == "higher"), columns=names)
    k, n = len(names), len(table)
    q = ranks.nemenyi_q(k)
    several = n > 1
    return Ranking(
        score=score,
        blocks=blocks,
        datasets=tuple(datasets),
        left_out=left_out,
        incomplete=incomplete,
        ranks=table,
        test=ranks.friedman(table.to_numpy()),
        q=q,
        cd=ranks.critical_difference(q, k, n) if several else math.nan,
        nemenyi=ranks.nemenyi_p(table) if several else None,
        wilcoxon=ranks.wilcoxon_p(pd.DataFrame(values, columns=names)) if several and pairwise else None,
    )
