"""Named groups of methods ranked together, with the published ranks of the same methods on the same data sets beside.

A study asks for them with the key ``ranks``; a group's labels may be those of any study in the report, so that the
figures of a paper whose methods several studies run are drawn of all of them together. Ranks are Demsar's (2006): over
data sets times splits, the blocks that Bui et al. (2016) count in their figures, and over data sets.

A block counts where every method of the group has a score. With a source beside, a group is restricted to what both
sides have: methods with a column there, data sets of its tables. What a printed mean says of single splits is not
known: published ranks are those of means, over data sets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.report import summary
from ep_bench.report.merge import MergedStudies
from ep_bench.report.scores import BY_NAME, Score
from ep_bench.report.summary import Ranking
from ep_bench.types import nearest

SCORES = ("ll", "rmse", "ll-classes", "error_rate")  # of those, the ones of the tasks that there are
HOLDS, REVERSED, WITHIN, TIED = "holds", "reversed", "within CD", "tied in print"


@dataclass(frozen=True)
class RankedPair:
    """Two methods, ``first`` above ``second`` in the published ranks, or named so where there are none.

    ``published`` and ``ours`` are differences of average ranks, the second's less the first's: above 0 the first is the
    better one. ``published`` is over data sets, NaN without a source, ``ours`` over data sets times splits, with the
    critical difference ``cd``. ``ahead`` are the shares of blocks on which the first scores better, a tie counting
    half: published data sets, ours, and our blocks.
    """

    first: str
    second: str
    published: float
    ours: float
    cd: float
    ahead: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """Return whether our ranks are in the same order, apart by more than the critical difference."""
        if self.published == 0.0:
            return TIED
        if abs(self.ours) > self.cd:
            return HOLDS if self.ours > 0.0 else REVERSED
        way = " (same way)" if self.ours > 0.0 else " (other way)" if self.ours < 0.0 else ""
        return WITHIN + way


@dataclass(frozen=True)
class RankGroupScore:
    """A group's ranks by one score.

    ``blocks`` and ``datasets`` are our rankings over data sets times splits and over data sets, ``published_ranks`` the
    published one over the same data sets, ``printed`` the average ranks as the source prints them, among all of its
    methods. ``splits`` counts blocks by data set, ``own`` those that a method has, of all that any of the group has.
    """

    score: Score
    blocks: Ranking
    datasets: Ranking
    published_ranks: Ranking | None
    printed: Mapping[str, str]
    splits: Mapping[str, int]
    own: Mapping[str, int]
    possible: int

    def average(self, ranking: Ranking) -> dict[str, float]:
        """Return average ranks by method, in the group's order."""
        return {str(name): float(value) for name, value in ranking.ranks.mean(axis=0).items()}

    def ordered(self) -> list[str]:
        """Return the methods by published ranks, without these by ours; ties as the group names them."""
        average = self.average(self.published_ranks or self.blocks)
        return sorted(average, key=lambda method: average[method])

    def order(self, pair: Sequence[str]) -> RankedPair:
        """Return how two methods stand."""
        first, second = pair
        told, ours = self.published_ranks and self.average(self.published_ranks), self.average(self.blocks)
        if told and told[first] > told[second]:
            first, second = second, first
        return RankedPair(
            first,
            second,
            told[second] - told[first] if told else math.nan,
            ours[second] - ours[first],
            self.blocks.cd,
            (
                _fraction_ahead(self.published_ranks, first, second),
                _fraction_ahead(self.datasets, first, second),
                _fraction_ahead(self.blocks, first, second),
            ),
        )

    def orders(self) -> list[RankedPair]:
        """Return all pairs."""
        return [self.order(pair) for pair in combinations(self.ordered(), 2)]


@dataclass(frozen=True)
class RankGroupResult:
    """A group as a study names it, and how its methods stand by each score that all of them have.

    ``pairs`` are those to tell one by one; ``columns`` says what a method is called in the source, ``disputed`` which
    of these columns are known not to be reproducible; ``notes`` what was named and could not be ranked.
    """

    name: str
    source: str
    pairs: Sequence[tuple[str, str]]
    columns: Mapping[str, str]
    disputed: frozenset[str]
    standings: list[RankGroupScore]
    notes: list[str] = field(default_factory=list)


def collect(merged: MergedStudies) -> list[RankGroupResult]:
    """Return the groups that the studies ask for; the same group of several studies counts once."""
    asked = [(tag, entry) for study, tag in zip(merged.studies, merged.tags, strict=True) for entry in _asked(study)]
    found: list[RankGroupResult] = []
    seen: list[Any] = []
    for tag, entry in asked:
        if entry not in seen:
            seen.append(entry)
            found.append(_group(merged, tag, entry))
    return found


def _asked(study: Any) -> Sequence[Mapping[str, Any]]:
    return study.lock.get("ranks") or ()


def _group(merged: MergedStudies, tag: str, entry: Mapping[str, Any]) -> RankGroupResult:
    notes: list[str] = []
    names = {label: name for label in entry["methods"] if (name := _found(merged, tag, label, notes)) is not None}
    methods = list(dict.fromkeys(names.values()))
    source = str(entry.get("beside") or "")
    columns: dict[str, str] = {}
    if source:
        columns = _columns(merged, methods, source, notes)
        methods = list(columns)
    standings = [
        standing
        for score in _scores(merged)
        if (standing := _standing(merged, score, methods, source, columns, notes)) is not None
    ]
    ranked = {method for standing in standings for method in standing.own}
    disputed = frozenset(
        method for method, column in columns.items() for row in _rows(source, column) if row["trust"] == "disputed"
    )
    pairs = [(names[a], names[b]) for a, b in entry.get("pairs") or () if {names.get(a), names.get(b)} <= ranked]
    return RankGroupResult(str(entry["name"]), source, pairs, columns, disputed, standings, list(dict.fromkeys(notes)))


def _scores(merged: MergedStudies) -> list[Score]:
    return [BY_NAME[name] for name in SCORES if BY_NAME[name].task in set(merged.tasks().values())]


def _found(merged: MergedStudies, tag: str, label: str, notes: list[str]) -> str | None:
    """Return what a label of a group is called in the report: the asking study's own method first, then any other."""
    if (tag, label) in merged.names:
        return merged.names[tag, label]
    if label in merged.methods:
        return label
    called = {name for (_, other), name in merged.names.items() if other == label}
    if len(called) == 1:
        return called.pop()
    if called:
        notes.append(f"{label} stands for several methods here ({', '.join(sorted(called))}): not ranked.")
    else:
        near = nearest(label, merged.methods)
        notes.append(f"{label} is no method of these studies: not ranked." + (f" {near} is." if near else ""))
    return None


def _columns(merged: MergedStudies, methods: Sequence[str], source: str, notes: list[str]) -> dict[str, str]:
    """Return the source's column of each method that has one: that of its own name, else one that it answers to."""
    datasets, metrics = set(_datasets(merged).values()), {score.source for score in _scores(merged)}
    there = {
        row["method"]
        for row in published.described_rows()
        if row["source"] == source and row["metric"] in metrics and _dataset(row) in datasets
    }
    found: dict[str, str] = {}
    for method in methods:
        column = next((name for name in (method, *_other_names(merged, method)) if name in there), None)
        if column is None:
            notes.append(f"{method} has no column in {source}: not ranked.")
        elif column in found.values():
            first = next(other for other, taken in found.items() if taken == column)
            notes.append(f"{method} answers to {column} of {source}, as {first} does: not ranked.")
        else:
            found[method] = column
    return found


def _other_names(merged: MergedStudies, method: str) -> Iterator[str]:
    """Yield a method's other labels and the published columns that it answers to."""
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        for label, entry in study.lock.get("methods", {}).items():
            if merged.names.get((tag, label)) == method:
                yield label
                yield from entry.get("published") or ()


def _rows(source: str, column: str) -> list[Mapping[str, Any]]:
    return [row for row in published.described_rows() if (row["source"], row["method"]) == (source, column)]


def _standing(
    merged: MergedStudies,
    score: Score,
    methods: Sequence[str],
    source: str,
    columns: Mapping[str, str],
    notes: list[str],
) -> RankGroupScore | None:
    """Return the ranks of those methods that have a score, None where fewer than two have or no block is complete."""
    table = summary.pivot(merged, score)
    there = [method for method in methods if method in table]
    notes += [f"{method} has no {score.inline}: not ranked by it." for method in methods if method not in table]
    table = table[there].dropna(how="all")
    told = _published_ranking(merged, score, source, columns, there, table) if source else None
    if told is not None and told.empty:
        notes.append(f"No ranks by {score.inline}: {source} has it of no data set that all have.")
        return None
    if told is not None:
        table = table[table.index.get_level_values("dataset").isin(told.index)]
    blocks = table.dropna()
    if len(there) < 2 or blocks.empty:
        lacks = f"no data set and split of which all {len(there)} methods have scores"
        lacks = lacks if len(there) > 1 else "fewer than two of these methods have it"
        notes.append(f"No ranks by {score.inline}: {lacks}.")
        return None
    means = blocks.groupby(level="dataset", sort=False).mean()
    names = tuple(str(name) for name in means.index)
    missing = len(table.index.unique("dataset")) - len(means), len(table) - len(blocks)

    def ranked(what: str, incomplete: int, scores: pd.DataFrame) -> Ranking:
        return summary.ranking_of(score, what, names, (), incomplete, scores, pairwise=False)

    return RankGroupScore(
        score=score,
        blocks=ranked("data sets × splits", missing[1], blocks),
        datasets=ranked("data sets", missing[0], means),
        published_ranks=None if told is None else ranked("data sets", 0, told.loc[list(names)]),
        printed=_printed(score, source, columns),
        splits=dict(Counter(str(name) for name in blocks.index.get_level_values("dataset"))),
        own={method: int(table[method].count()) for method in there},
        possible=len(table),
    )


def _published_ranking(
    merged: MergedStudies,
    score: Score,
    source: str,
    columns: Mapping[str, str],
    methods: Sequence[str],
    table: pd.DataFrame,
) -> pd.DataFrame:
    """Return the source's means of the data sets (rows) of which it has all methods (columns), by our names."""
    datasets = _datasets(merged)
    means = pd.DataFrame(index=table.index.unique("dataset"), columns=list(methods), dtype=float)
    for method in methods:
        numbers = {
            _dataset(row): row["mean"] for row in _rows(source, columns[method]) if row["metric"] == score.source
        }
        means[method] = [numbers.get(datasets.get(str(name), ("", 0, "")), math.nan) for name in means.index]
    return means.dropna()


def _dataset(row: Mapping[str, Any]) -> tuple[str, int, str]:
    return row["name"], row["irrelevant_inputs"], row["scheme"]


def _datasets(merged: MergedStudies) -> dict[str, tuple[str, int, str]]:
    """Return each data set's name on its card, irrelevant inputs and split scheme; files of users have none."""
    found = {}
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        scheme = study.lock.get("splits", {}).get("scheme", "standard")
        for label, entry in study.lock.get("datasets", {}).items():
            if entry.get("csv") is None and entry.get("target") is None:
                known = (str(entry.get("name", label)), int(entry.get("irrelevant_inputs") or 0), str(scheme))
                found[f"{label} [{tag}]"] = known
                found.setdefault(label, known)
    return found


def _printed(score: Score, source: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the average ranks that a source prints, by our names: among all of its methods, over all its data sets."""
    return {
        method: " ± ".join(text for text in (row["printed_mean"], row["printed_stderr"]) if text)
        for method, column in columns.items()
        for row in _rows(source, column)
        if row["metric"] == f"{score.source}-rank"
    }


def _fraction_ahead(ranking: Ranking | None, first: str, second: str) -> float:
    """Return the share of blocks on which one method ranks above another, ties counting half; NaN without ranks."""
    if ranking is None:
        return math.nan
    gap = ranking.ranks[second].to_numpy() - ranking.ranks[first].to_numpy()
    return float(np.mean((np.sign(gap) + 1.0) / 2.0))
