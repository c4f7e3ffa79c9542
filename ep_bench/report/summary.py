"""Scores by method and data set: means, standard errors, marks, and rankings over data sets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ep_bench.convergence import ConvergedSplits
from ep_bench.report import significance
from ep_bench.report.merge import MergedStudies, few_target_values, independent_draws, same_data, unranked
from ep_bench.report.scores import TARGET, Score
from ep_bench.report.significance import ALPHA, FEWEST_BLOCKS, Friedman, PairedTest, compare_with_best
from ep_bench.types import Array

DATASETS, SPLITS, DRAWS = "data sets", "data sets × splits", "independent draws"  # kinds of blocks


@dataclass(frozen=True)
class ScoreTable:
    """One score of D data sets and M methods, over the finished splits. Means are in the unit of the score.

    An entry is complete if it has the score on every split that any method of the report has planned on the data set.
    Only complete entries are compared and ranked.
    """

    score: Score
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean: Array  # (D, M), NaN without any split
    stderr: Array  # (D, M), standard deviation over splits (ddof 0) / sqrt(n)
    n: NDArray[np.int64]  # (D, M), splits with this score
    planned: NDArray[np.int64]  # (D, M), 0 if no study has the entry
    without: NDArray[np.int64]  # (D, M), splits that ended ok without this score: points have no log-likelihood
    converged: tuple[tuple[ConvergedSplits, ...], ...]  # (D, M)
    tests: tuple[PairedTest, ...]  # (D,)
    best: NDArray[np.int64]  # (D,), column of the best complete entry, the first of equal ones, -1 without any
    equal: NDArray[np.bool_]  # (D, M), complete entries that the paired test does not distinguish from the best
    p: Array  # (D, M), Holm-corrected p-values against the best
    unranked: Mapping[str, str] = field(default_factory=dict)  # why rankings leave data sets out
    unbounded: Mapping[str, str] = field(default_factory=dict)  # data sets on which this log-likelihood has no upper
    # bound, and their names with the reason in words

    @cached_property
    def plan(self) -> NDArray[np.int64]:
        """Return the number of splits (D,) planned on each data set."""
        return np.asarray(self.planned.max(axis=1))

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Return which entries (D, M) are complete."""
        return complete(self.n, self.planned)

    @cached_property
    def ranks(self) -> Array:
        """Return the ranks (D, M) of the complete entries of each data set, 1 the best, NaN for others."""
        found = np.full(self.mean.shape, math.nan)
        for i, whole in enumerate(self.complete):
            means = self.mean[None, i, whole]
            found[i, whole] = significance.block_ranks(means, higher_is_better=self.score.better == "higher")[0]
        return found

    @cached_property
    def is_best(self) -> NDArray[np.bool_]:
        """Return which complete entries (D, M) have the best mean; several if they tie."""
        best = np.where(self.best >= 0, np.nanmin(self.ranks, axis=1, initial=math.inf), 0.0)
        return np.asarray(self.ranks == best[:, None])

    @cached_property
    def is_alone(self) -> NDArray[np.bool_]:
        """Return which data sets (D,) have a single complete entry, which has no competitor."""
        return np.asarray(self.complete.sum(axis=1) == 1)

    @cached_property
    def marked(self) -> NDArray[np.bool_]:
        """Return which entries (D, M) are the best or not distinguished from it."""
        return np.asarray(self.equal | self.is_best)

    def test_of(self, dataset: str) -> PairedTest:
        """Return the test of a data set."""
        return self.tests[self.datasets.index(dataset)]

    def ranked_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the data sets among ``rows`` that count in ranks.

        Those on which the log-likelihood has no upper bound and those that rankings leave out do not count, unless
        there is no other.
        """
        out = self.unbounded.keys() | self.unranked.keys()
        return [i for i in rows if self.datasets[i] not in out] or list(rows)


@dataclass(frozen=True)
class Ranking:
    """Ranks of k methods over N blocks, with their tests; ``blocks`` names the blocks in words."""

    score: Score
    blocks: str
    datasets: tuple[str, ...]
    scores: pd.DataFrame  # (N, k), one row per block and one named column per method, without NaN
    incomplete: int = 0  # blocks omitted because a method has no score there
    independent: bool = True  # whether no two blocks have data points in common
    marks: Mapping[str, str] = field(default_factory=dict)  # marks of convergence by method, over the ranked blocks
    repeated: str = ""  # data sets that contain the same data points, in words; there is no test then
    left_out: tuple[str, ...] = ()  # methods that are not complete on all of these data sets

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The ranks (N, k) within each block, 1 the best."""
        higher = self.score.better == "higher"
        values = significance.block_ranks(self.scores.to_numpy(dtype=float), higher_is_better=higher)
        return pd.DataFrame(values, columns=[str(name) for name in self.scores.columns])

    @cached_property
    def test(self) -> Friedman:
        """Friedman's test of equal ranks."""
        return significance.friedman(self.ranks.to_numpy())

    @cached_property
    def q(self) -> float:
        """The quantile of Nemenyi's test."""
        return significance.nemenyi_q(self.ranks.shape[1])

    @cached_property
    def cd(self) -> float:
        """The critical difference of two average ranks, NaN for one block."""
        return significance.critical_difference(self.q, self.ranks.shape[1], self.n) if self.n > 1 else math.nan

    @cached_property
    def nemenyi(self) -> pd.DataFrame | None:
        """Return the p-values of Nemenyi's test, None for one block."""
        return significance.nemenyi_p(self.ranks) if self.n > 1 else None

    @cached_property
    def wilcoxon(self) -> pd.DataFrame | None:
        """Return the p-values of Wilcoxon's tests with Holm's correction, None for one block."""
        return significance.wilcoxon_p(comparable(self.scores, self.score)) if self.n > 1 else None

    @property
    def n(self) -> int:
        """Return the number of blocks."""
        return len(self.ranks)

    @property
    def count(self) -> str:
        """Return the number of blocks with their kind, such as ``5 data sets``."""
        return self.counted(self.n)

    def counted(self, n: int) -> str:
        """Return a number of blocks with their kind."""
        words = " ".join(word.removesuffix("s") for word in self.blocks.split()) if n == 1 else self.blocks
        return f"{n} {words}"

    @cached_property
    def mean_ranks(self) -> dict[str, float]:
        """Return the average ranks by method, in the order of the columns."""
        return {str(name): float(value) for name, value in self.ranks.mean(axis=0).items()}

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
    def headline(self) -> Ranking | None:
        """Return the ranking over data sets or, if there is only one, over its independent draws."""
        return next((one for one in self.rankings if one.n > 1 and one.independent), None)


def ranked_score(merged: MergedStudies, score: Score) -> RankedScore | None:
    """Return one score with its rankings, or None if no cell has it."""
    table = score_table(merged, score)
    return None if table is None else RankedScore(table, rankings(merged, table))


def pivot(merged: MergedStudies, score: Score) -> pd.DataFrame:
    """Return one score of the finished cells of its task, indexed by (dataset, split), with one column per method."""
    if score.name not in merged.pivots:
        merged.pivots[score.name] = _pivot(merged, score)
    return merged.pivots[score.name]


def _pivot(merged: MergedStudies, score: Score) -> pd.DataFrame:
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
    lacking = _cells_without(merged, score.source)
    methods = tuple(m for m in merged.methods if m in table or any((m, d) in lacking for d in datasets))
    table = table.reindex(columns=list(methods))
    groups = table.groupby(level="dataset", sort=False)
    n = groups.count().to_numpy(dtype=np.int64)
    planned, without = (
        np.array([[counts.get((m, d), 0) for m in methods] for d in datasets]) for counts in (merged.planned, lacking)
    )
    tests = _paired_tests(merged, datasets)
    unbounded = _unbounded(merged, score, datasets)
    untested = unbounded if len(unbounded) < len(datasets) else {}
    best, p, equal = _compared(table, datasets, score, complete(n, planned), tests, untested)
    return ScoreTable(
        score=score,
        datasets=datasets,
        methods=methods,
        mean=groups.mean().to_numpy(dtype=float),
        stderr=groups.std(ddof=0).to_numpy(dtype=float) / np.sqrt(np.where(n, n, 1)),
        n=n,
        planned=planned,
        without=without,
        converged=tuple(tuple(merged.convergence.get((m, d), ConvergedSplits()) for m in methods) for d in datasets),
        tests=tests,
        best=best,
        equal=equal,
        p=p,
        unbounded=unbounded,
        unranked=unranked(merged),
    )


def _unbounded(merged: MergedStudies, score: Score, datasets: Sequence[str]) -> dict[str, str]:
    """Return the data sets of few target values, with the reason, if the score is a log-likelihood of real targets."""
    if not score.source.startswith("ll") or score.task == "classification":
        return {}
    few = few_target_values(merged)
    return {name: f"{name} ({few[name][0]} target values)" for name in datasets if name in few}


def complete(n: NDArray[np.int64], planned: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which entries (D, M) have every planned split of their data set."""
    return np.asarray((n > 0) & (n == planned.max(axis=1, keepdims=True)))


def _compared(
    table: pd.DataFrame,
    datasets: Sequence[str],
    score: Score,
    whole: NDArray[np.bool_],
    tests: Sequence[PairedTest],
    untested: Collection[str],
) -> tuple[NDArray[np.int64], Array, NDArray[np.bool_]]:
    """Return the best entry (D,), p-values (D, M) and equal entries (D, M).

    There are none for a score without direction and for ``untested`` data sets, on which the score has no bound.
    """
    best, p, equal = np.full(len(datasets), -1), np.full(whole.shape, math.nan), np.zeros(whole.shape, dtype=bool)
    sign = {"lower": 1.0, "higher": -1.0, "": 0.0}[score.better]
    for i, dataset in enumerate(datasets if sign else ()):
        if dataset in untested:
            continue
        losses = sign * table.loc[dataset].to_numpy(dtype=float)
        best[i], p[i], equal[i] = compare_with_best(losses, whole[i], tests[i])
    return best, p, equal


def _cells_without(merged: MergedStudies, name: str) -> dict[tuple[str, str], int]:
    """Return the number of cells that ended ok without a score, by (method, data set)."""
    rows = merged.ok()
    lacking = rows.loc[rows[name].isna(), ["method", "dataset"]]
    return dict(Counter((str(method), str(dataset)) for method, dataset in lacking.itertuples(index=False)))


def _paired_tests(merged: MergedStudies, datasets: Sequence[str]) -> tuple[PairedTest, ...]:
    """Return the test of each data set."""
    ratios, independent = significance.split_ratios(merged.ok()), independent_draws(merged)
    return tuple(PairedTest(dataset in independent, ratios[dataset]) for dataset in datasets)


# Over data sets


def rankings(merged: MergedStudies, table: ScoreTable) -> list[Ranking]:
    """Return the rankings over data sets (Demsar 2006) and over data sets times splits (Bui et al. 2016).

    Ranked are the methods of the largest complete subset, on its data sets. There are no rankings
    if no two methods are complete on a common data set.
    """
    rows = table.ranked_rows(range(len(table.datasets)))
    subset = significance.largest_complete_subset(table.complete[rows])
    if not table.score.better or not subset.methods:
        return []
    methods = [table.methods[j] for j in subset.methods]
    left_out = tuple(method for method in table.methods if method not in methods)
    datasets = [table.datasets[rows[i]] for i in subset.datasets]
    every = pivot(merged, table.score)[methods]
    places = every.index.get_level_values("dataset")
    every, splits = (every[places.isin(names)] for names in ([table.datasets[i] for i in rows], datasets))
    return list(rankings_of(merged, table.score, splits, every, left_out=left_out))


def rankings_of(
    merged: MergedStudies, score: Score, splits: pd.DataFrame, every: pd.DataFrame, **about: Any
) -> tuple[Ranking, Ranking]:
    """Return the rankings over data sets, with their means over splits, and over data sets times splits.

    Parameters
    ----------
    splits : (N, k), scores without NaN by (dataset, split)
    every : all splits that were considered
    about : further fields of the rankings
    """
    means = splits.groupby(level="dataset", sort=False).mean()
    datasets, methods = tuple(map(str, means.index)), [str(name) for name in means.columns]
    is_drawn, repeated = set(datasets) <= independent_draws(merged), same_data(merged, datasets)
    marks = {method: merged.converged([method], datasets).mark for method in methods}
    ranked = partial(Ranking, score=score, datasets=datasets, marks=marks, repeated=repeated, **about)
    missing = len(every.index.unique("dataset")) - len(means), len(every) - len(splits)
    return (
        ranked(blocks=DATASETS, scores=means, incomplete=missing[0], independent=not repeated),
        ranked(
            blocks=DRAWS if is_drawn else SPLITS, scores=splits, incomplete=missing[1],
            independent=is_drawn and not repeated,
        ),
    )  # fmt: skip


def comparable(scores: pd.DataFrame, score: Score) -> pd.DataFrame:
    """Return scores (N, k) whose differences have one unit in all blocks: the logs of those in units of the target."""
    if score.unit != TARGET:
        return scores
    with np.errstate(divide="ignore"):
        return pd.DataFrame(np.log(scores.to_numpy()), scores.index, scores.columns)


# Tests that are withheld


def no_nemenyi(ranking: Ranking) -> str:
    """Return why there is no diagram by Nemenyi's test, empty if there is one."""
    if reason := _no_pairs(ranking):
        return reason
    k = ranking.test.k
    if ranking.cd >= k - 1:
        return (
            f"the critical difference {ranking.cd:.2f} is not below {k - 1}, the largest possible difference of ranks"
        )
    return ""


def no_wilcoxon(ranking: Ranking) -> str:
    """Return why there is no diagram by Wilcoxon's signed-rank tests, empty if there is one."""
    if reason := _no_pairs(ranking):
        return reason
    smallest = significance.smallest_wilcoxon_p(ranking.test.k, ranking.n)
    if smallest >= ALPHA:
        pairs = ranking.test.k * (ranking.test.k - 1) // 2
        return (
            f"with {ranking.count} and Holm's correction for {pairs} pairs, the smallest attainable "
            f"p-value is {smallest:.2g}"
        )
    return ""


def _no_pairs(ranking: Ranking) -> str:
    """Return why average ranks may not be compared pair by pair, empty if they may."""
    if ranking.repeated:
        return f"{ranking.repeated} contain the same data points"
    if len(ranking.datasets) == 1 and not ranking.independent:
        return "the splits of a single data set are compared by the paired test"
    if ranking.n < FEWEST_BLOCKS:
        return f"at least {FEWEST_BLOCKS} blocks are needed, here N = {ranking.count}"
    p = ranking.test.p_decisive
    if not p < ALPHA:
        return f"Friedman's test does not reject equal ranks (p = {p:.2g})"
    return ""
