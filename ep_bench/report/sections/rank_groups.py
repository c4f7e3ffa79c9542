"""Average ranks of the groups of methods that a study lists with the key ``ranks``: one table per group.

Ranks follow Demsar (2006), over the data sets that count and on which every method of the group has all scores. With a
published source (key ``beside``), a group is restricted to methods with a column there and to data sets of its tables,
of which all count. Published ranks are those of the printed means over the same data sets. For each listed pair, a
second table states whether our ranks have its order and differ by more than the critical difference, next to the
difference of the published ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.plotting.page import Section, Table, item
from ep_bench.published import matching
from ep_bench.report import summary
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies, few_target_values, unranked
from ep_bench.report.scores import BY_NAME, Score
from ep_bench.report.sections.ranks import friedman_line
from ep_bench.report.summary import Ranking

ORDER = 50
STAR = "*"
SCORES = ("ll", "rmse", "ll-classes", "error_rate")  # the report uses those of its tasks
CAPTION = "Average ranks over the ranked data sets on which all of these methods have scores; 1 is the best"
PUBLISHED = "ranks of the means of {source} on the same data sets, among the same methods"
PAIRS = "Whether our ranks have the order of the study's pairs, by more than the critical difference (CD)"


@dataclass(frozen=True)
class GroupRanks:
    """Our ranks of a group by one score, and the published ones over the same data sets."""

    ours: Ranking
    theirs: Ranking | None

    def verdict(self, first: str, second: str) -> str:
        """Return whether the first method has a lower rank than the second one by more than the critical difference.

        Without a critical difference, because Nemenyi's test is withheld, the order is not tested.
        """
        gap = _gap(self.ours, first, second)
        withheld = summary.no_nemenyi(self.ours)
        if not withheld and abs(gap) > self.ours.cd:
            return "holds" if gap > 0.0 else "reversed"
        way = " (same way)" if gap > 0.0 else " (other way)" if gap < 0.0 else ""
        return ("not tested" if withheld else "within CD") + way

    def published(self, first: str, second: str) -> str:
        """Return the difference of the published ranks, positive if the first method is better; empty without any."""
        return "" if self.theirs is None else f"published {_gap(self.theirs, first, second):+.2f}"


def _gap(ranking: Ranking, first: str, second: str) -> float:
    return ranking.mean_ranks[second] - ranking.mean_ranks[first]


@dataclass(frozen=True)
class RankGroupResult:
    """A group of a study: its methods by name in the report with their published columns, and ranks by score."""

    name: str
    source: str
    columns: Mapping[str, str]  # empty without a source
    disputed: frozenset[str]  # methods whose column is known not to be reproducible
    pairs: Sequence[tuple[str, str]]
    ranks: Sequence[GroupRanks]
    notes: list[str] = field(default_factory=list)  # why methods or scores are not ranked


def sections(report: ReportContext) -> list[Section]:
    """Return the section of rank groups, with one part per group."""
    groups = collect(report.merged)
    parts = [_part(place, group) for place, group in enumerate(groups, 1)]
    return [Section("groups", "Ranks by group of methods", parts=parts)] if parts else []


def collect(merged: MergedStudies) -> list[RankGroupResult]:
    """Return the groups of all studies that have ranks. A group that several studies define counts once."""
    groups = [_group(merged, tag, entry) for tag, entry in _listed(merged)]
    return [group for group in groups if group.ranks]


def listed_pairs(merged: MergedStudies) -> list[tuple[str, str]]:
    """Return the pairs of all groups, by the names of methods in the report, even if a group cannot be ranked."""
    pairs = [
        (_found(merged, tag, first), _found(merged, tag, second))
        for tag, entry in _listed(merged)
        for first, second in entry.get("pairs") or ()
    ]
    return list(dict.fromkeys((first, second) for first, second in pairs if first and second))


def _listed(merged: MergedStudies) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the groups that the studies define, each once, with the tag of the study."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        found += [(tag, entry) for entry in study.lock.get("ranks") or () if entry not in [one for _, one in found]]
    return found


def _group(merged: MergedStudies, tag: str, entry: Mapping[str, Any]) -> RankGroupResult:
    names = {label: name for label in entry["methods"] if (name := _found(merged, tag, label))}
    unknown = [label for label in entry["methods"] if label not in names]
    notes = [f"Not in these studies: {', '.join(unknown)}."] if unknown else []
    methods, source = list(dict.fromkeys(names.values())), str(entry.get("beside") or "")
    columns: dict[str, str] = {}
    if source:
        columns = _columns(merged, methods, source)
        notes += [f"{name} has no column of its own in {source}." for name in methods if name not in columns]
        methods = list(columns)
    scores = [BY_NAME[name] for name in SCORES if BY_NAME[name].task in set(merged.tasks().values())]
    ranked = {score.name: _ranks(merged, score, methods, source, columns) for score in scores}
    notes += [f"No data set has {BY_NAME[name].inline} of all methods." for name, one in ranked.items() if not one]
    pairs = [(names[a], names[b]) for a, b in entry.get("pairs") or () if {names.get(a), names.get(b)} <= set(methods)]
    disputed = frozenset(
        name for name, column in columns.items() for row in _rows(source, column) if row["trust"] == "disputed"
    )
    shown = [one for one in ranked.values() if one]
    return RankGroupResult(str(entry["name"]), source, columns, disputed, pairs, shown, notes)


def _found(merged: MergedStudies, tag: str, label: str) -> str:
    """Return the method of a group's label: that of its own study, or else the only one of this name; else empty."""
    if own := merged.names.get((tag, label)):
        return own
    others = {label} & set(merged.methods) or {name for (_, other), name in merged.names.items() if other == label}
    return others.pop() if len(others) == 1 else ""


def _columns(merged: MergedStudies, methods: Sequence[str], source: str) -> dict[str, str]:
    """Return the source's column of each method, by its name, a label or ``published``; each column is used once."""
    available = {row["method"] for _, row in _applicable(merged, source)}
    found: dict[str, str] = {}
    for method in methods:
        labels = [label for (_, label), name in merged.names.items() if name == method]
        names = (method, *labels, *merged.published_columns().get(method, ()))
        column = next((name for name in names if name in available), "")
        if column and column not in found.values():
            found[method] = column
    return found


def _rows(source: str, column: str) -> list[Mapping[str, Any]]:
    return [row for row in published.described_rows() if (row["source"], row["method"]) == (source, column)]


def _applicable(merged: MergedStudies, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a source's values with the data sets, by name in the report, whose data and splits are the same."""
    for row in (row for row in published.described_rows() if row["source"] == source):
        for study, tag in zip(merged.studies, merged.tags, strict=True):
            if matching.scheme_fits(row, study.lock.get("splits") or {}):
                for label in matching.datasets(row, study.lock):
                    yield merged.dataset_names.get((tag, label), label), row


def _ranks(
    merged: MergedStudies, score: Score, methods: Sequence[str], source: str, columns: Mapping[str, str]
) -> GroupRanks | None:
    """Return the ranks of methods by a score, None if no data set has the score of all, or there is one method."""
    cells = summary.pivot(merged, score)
    if len(methods) < 2 or not set(methods) <= set(cells):
        return None
    cells = cells[list(methods)]
    printed = _printed(merged, score, source, columns) if source else None
    names = cells.index.get_level_values("dataset")
    cells = cells[names.isin(_counted(merged, score, set(names)) if printed is None else printed.index)]
    blocks = cells.dropna()
    if blocks.empty:
        return None
    ours, _ = summary.rankings_of(merged, score, blocks, cells)
    theirs = None
    if printed is not None:
        theirs = replace(ours, scores=printed.loc[list(ours.datasets)], incomplete=0, independent=True)
    return GroupRanks(ours, theirs)


def _counted(merged: MergedStudies, score: Score, names: set[str]) -> set[str]:
    """Return the data sets that count in ranks by a score, as on the first screen; all if no other is there."""
    few = few_target_values(merged).keys() if score.source == "ll" else set()
    return names - unranked(merged).keys() - few or names


def _printed(merged: MergedStudies, score: Score, source: str, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return the source's means on the data sets for which it has all methods, by our names."""
    names = {column: method for method, column in columns.items()}
    found: dict[str, dict[str, float]] = {method: {} for method in columns}
    for dataset, row in _applicable(merged, source):
        if row["method"] in names and row["metric"] == score.source:
            found[names[row["method"]]][dataset] = row["mean"]
    return pd.DataFrame(found, columns=list(columns)).dropna()


def _part(place: int, group: RankGroupResult) -> Section:
    lines = [f"{one.ours.score.title}: {friedman_line(one.ours)}" for one in group.ranks]
    tables = [_averages(group)] if group.ranks else []
    tables += [_orders(group)] if group.ranks and group.pairs else []
    return Section(f"group-{place}", group.name, tables=tables, notes=[*lines, *group.notes])


def _name(group: RankGroupResult, method: str) -> str:
    return method + group.ranks[0].ours.marks.get(method, "") + STAR * (method in group.disputed)


def _averages(group: RankGroupResult) -> Table:
    """Return the average ranks by score, ours and the published ones, sorted by ours of the first score."""
    head, columns = [], []
    for one in group.ranks:
        for ranking, whose in ((one.ours, ""), (one.theirs, ", published")):
            if ranking is not None:
                head.append(f"{one.ours.score.title}{whose}")
                columns.append(ranking.mean_ranks)
    rows = [
        [_name(group, str(method)), *(item(f"{column[str(method)]:.2f}", column[str(method)]) for column in columns)]
        for method in group.ranks[0].ours.average.index
    ]
    caption = CAPTION + f". Published: {PUBLISHED.format(source=group.source)}" * bool(group.source)
    return Table(["method", *head], rows, caption + f". {STAR}: a disputed column" * bool(group.disputed))


def _orders(group: RankGroupResult) -> Table:
    rows = [
        [f"{_name(group, first)} above {_name(group, second)}",
         *(item(one.verdict(first, second), small=one.published(first, second), kind="word") for one in group.ranks)]
        for first, second in group.pairs
    ]  # fmt: skip
    limits = dict.fromkeys(f"{one.ours.cd:.2f}" for one in group.ranks if not summary.no_nemenyi(one.ours))
    caption = PAIRS + f": {' and '.join(limits)}" * bool(limits)
    return Table(["pair", *(one.ours.score.title for one in group.ranks)], rows, caption)
