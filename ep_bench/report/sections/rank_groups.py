"""Ranks of named groups of methods and the order of pairs, compared with published ranks.

A study defines groups with the key ``ranks``. A group's labels may be those of any study in the report. Ranks follow
Demsar (2006), over data sets and over data sets times splits. A block counts if every method of the group has a score.
With a published source (key ``beside``), a group is restricted to methods with a column there and to data sets of its
tables. Published ranks are those of the printed means over data sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.errors import nearest
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.published import matching
from ep_bench.report import rank_group_figure, summary
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.report.scores import BY_NAME, Score
from ep_bench.report.sections.ranks import friedman_line, withheld_lines
from ep_bench.report.summary import Ranking

ORDER = 50
STAR = "*"
SCORES = ("ll", "crps", "rmse", "ll-classes", "error_rate")  # the report uses those of its tasks
NOT_PUBLISHED = {"crps": "ll"}  # no source prints CRPS: ranks on the data sets with published log-likelihoods
HOLDS, REVERSED, WITHIN, TIED = "holds", "reversed", "within CD", "tied in print"
UNTESTED = "not tested"


@dataclass(frozen=True)
class RankedPair:
    """Two methods; ``first`` is better in the published ranks or, without these, in the study's pair.

    ``ahead`` has the fractions of blocks on which the first scores better (ties count half): published data sets, our
    data sets, our data sets times splits.
    """

    first: str
    second: str
    published: float  # average rank of the second minus that of the first, over data sets; NaN without a source
    ours: float  # the same difference of the ranks that are tested
    cd: float  # critical difference of these ranks, NaN if Nemenyi's test is withheld
    ahead: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """Return whether our ranks have the same order and differ by more than the critical difference."""
        if self.published == 0.0:
            return TIED
        if abs(self.ours) > self.cd:
            return HOLDS if self.ours > 0.0 else REVERSED
        way = " (same way)" if self.ours > 0.0 else " (other way)" if self.ours < 0.0 else ""
        return (UNTESTED if math.isnan(self.cd) else WITHIN) + way


@dataclass(frozen=True)
class RankGroupScore:
    """Ranks of a group by one score."""

    score: Score
    blocks: Ranking  # over data sets times splits
    datasets: Ranking
    published_ranks: Ranking | None  # over the same data sets
    printed: Mapping[str, str]  # average ranks as printed by the source, among all of its methods
    own: Mapping[str, int]  # number of blocks with a score, by method
    possible: int  # blocks in which some method of the group has a score

    @property
    def tested(self) -> Ranking:
        """Return the ranking whose blocks are independent: over independent draws or, else, over data sets."""
        return self.blocks if self.blocks.independent else self.datasets

    @property
    def withheld(self) -> str:
        """Return why pairs are not compared by Nemenyi's test over independent blocks, empty if they are."""
        return summary.no_nemenyi(self.tested)

    @property
    def cd(self) -> float:
        """Return the critical difference of the tested ranks, NaN if Nemenyi's test is withheld."""
        return math.nan if self.withheld else self.tested.cd

    def ordered(self) -> list[str]:
        """Return the methods sorted by published ranks or, without these, by ours. Ties keep the order of the group."""
        average = (self.published_ranks or self.tested).mean_ranks
        return sorted(average, key=lambda method: average[method])

    def order(self, pair: Sequence[str]) -> RankedPair:
        """Return the comparison of two methods."""
        first, second = pair
        printed, ours = self.published_ranks and self.published_ranks.mean_ranks, self.tested.mean_ranks
        if printed and printed[first] > printed[second]:
            first, second = second, first
        published = printed[second] - printed[first] if printed else math.nan
        rankings = (self.published_ranks, self.datasets, self.blocks)
        ahead = tuple(_fraction_ahead(ranking, first, second) for ranking in rankings)
        return RankedPair(first, second, published, ours[second] - ours[first], self.cd, ahead)


@dataclass(frozen=True)
class RankGroupResult:
    """A group of a study, and the ranks of its methods by each score."""

    name: str
    source: str
    pairs: Sequence[tuple[str, str]]  # that the study lists
    columns: Mapping[str, str]  # of the source, by method
    disputed: frozenset[str]  # methods whose column is known not to be reproducible
    standings: list[RankGroupScore]
    notes: list[str] = field(default_factory=list)  # why a method or score could not be ranked

    def starred(self, method: str) -> str:
        """Return a method's name with its mark of convergence, and a star if its published column is disputed."""
        mark = next((one.blocks.marks[method] for one in self.standings if method in one.blocks.marks), "")
        return method + mark + STAR * (method in self.disputed)


def collect(merged: MergedStudies) -> list[RankGroupResult]:
    """Return the groups of all studies. A group that several studies define counts once."""
    entries = [
        (tag, entry)
        for study, tag in zip(merged.studies, merged.tags, strict=True)
        for entry in study.lock.get("ranks") or ()
    ]
    found: list[RankGroupResult] = []
    seen: list[Any] = []
    for tag, entry in entries:
        if entry not in seen:
            seen.append(entry)
            found.append(_group(merged, tag, entry))
    return found


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
    """Return the name in the report of a group's label: the method of the group's own study, or else of another."""
    if (tag, label) in merged.names:
        return merged.names[tag, label]
    if label in merged.methods:
        return label
    candidates = {name for (_, other), name in merged.names.items() if other == label}
    if len(candidates) == 1:
        return candidates.pop()
    if candidates:
        notes.append(f"{label} is the label of several methods ({', '.join(sorted(candidates))}): not ranked.")
    else:
        near = None if label in _published_methods() else nearest(label, merged.methods)
        notes.append(f"{label} is no method of these studies: not ranked." + (f" Did you mean {near}?" if near else ""))
    return None


def _published_methods() -> frozenset[str]:
    return frozenset(str(row["method"]) for row in published.described_rows())


def _columns(merged: MergedStudies, methods: Sequence[str], source: str, notes: list[str]) -> dict[str, str]:
    """Return the source's column of each method: the column of its own name, or else one of its ``published`` names."""
    metrics = {score.source for score in _scores(merged)}
    rows = [row for row in published.described_rows() if row["source"] == source and row["metric"] in metrics]
    available = {row["method"] for _, row in _applicable(merged, rows)}
    found: dict[str, str] = {}
    for method in methods:
        column = next((name for name in (method, *_other_names(merged, method)) if name in available), None)
        if column is None:
            notes.append(f"{method} has no column in {source}: not ranked.")
        elif column in found.values():
            first = next(other for other, taken in found.items() if taken == column)
            notes.append(f"{method} corresponds to {column} of {source}, as does {first}: not ranked.")
        else:
            found[method] = column
    return found


def _other_names(merged: MergedStudies, method: str) -> Iterator[str]:
    """Yield a method's labels in the studies and the published columns that it corresponds to."""
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        for label, entry in study.lock.get("methods", {}).items():
            if merged.names.get((tag, label)) == method:
                yield label
                yield from entry.get("published") or ()


def _rows(source: str, column: str) -> list[Mapping[str, Any]]:
    """Return the published numbers of one column."""
    return [row for row in published.described_rows() if (row["source"], row["method"]) == (source, column)]


def _standing(
    merged: MergedStudies,
    score: Score,
    methods: Sequence[str],
    source: str,
    columns: Mapping[str, str],
    notes: list[str],
) -> RankGroupScore | None:
    """Return the ranks of the methods with a score, or None with fewer than two methods or no complete block."""
    table = summary.pivot(merged, score)
    scored = [method for method in methods if method in table]
    notes += [f"{method} has no {score.inline}: not ranked by it." for method in methods if method not in table]
    table = table[scored].dropna(how="all")
    metric = NOT_PUBLISHED.get(score.name, score.source)
    printed = _published_means(merged, metric, source, columns, scored, table) if source else None
    if printed is not None and printed.empty:
        notes.append(f"No ranks by {score.inline}: {source} has no data set with this score of all methods.")
        return None
    if printed is not None:
        table = table[table.index.get_level_values("dataset").isin(printed.index)]
    blocks = table.dropna()
    if len(scored) < 2 or blocks.empty:
        few = len(scored) < 2
        why = "fewer than two methods have it" if few else f"no split has scores of all {len(scored)} methods"
        notes.append(f"No ranks by {score.inline}: {why}.")
        return None
    over_datasets, over_splits = summary.rankings_of(merged, score, blocks, table)
    names = over_datasets.datasets
    published_ranks = None
    if printed is not None and score.name not in NOT_PUBLISHED:
        published_ranks = replace(over_datasets, scores=printed.loc[list(names)], incomplete=0, independent=True)
    return RankGroupScore(
        score=score,
        blocks=over_splits,
        datasets=over_datasets,
        published_ranks=published_ranks,
        printed=_printed(score, source, columns),
        own={method: int(table[method].count()) for method in scored},
        possible=len(table),
    )


def _published_means(
    merged: MergedStudies,
    metric: str,
    source: str,
    columns: Mapping[str, str],
    methods: Sequence[str],
    table: pd.DataFrame,
) -> pd.DataFrame:
    """Return the source's means on the data sets (index) for which it has all methods (columns), by our names."""
    means = pd.DataFrame(index=table.index.unique("dataset"), columns=list(methods), dtype=float)
    for method in methods:
        rows = [row for row in _rows(source, columns[method]) if row["metric"] == metric]
        numbers = {name: row["mean"] for name, row in _applicable(merged, rows)}
        means[method] = [numbers.get(str(name), math.nan) for name in means.index]
    return means.dropna()


def _applicable(merged: MergedStudies, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield published rows with the data sets, by their names in the report, whose data and splits are the same."""
    for row in rows:
        for study, tag in zip(merged.studies, merged.tags, strict=True):
            if matching.scheme_fits(row, study.lock.get("splits") or {}):
                for label in matching.datasets(row, study.lock):
                    yield merged.dataset_names.get((tag, label), label), row


def _printed(score: Score, source: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the average ranks that a source prints (all its methods and data sets), by our names."""
    return {
        method: " ± ".join(text for text in (row["printed_mean"], row["printed_stderr"]) if text)
        for method, column in columns.items()
        for row in _rows(source, column)
        if row["metric"] == f"{score.source}-rank"
    }


def _fraction_ahead(ranking: Ranking | None, first: str, second: str) -> float:
    """Return the fraction of blocks on which one method ranks above another (ties count half), NaN without ranks."""
    if ranking is None:
        return math.nan
    gap = ranking.ranks[second].to_numpy() - ranking.ranks[first].to_numpy()
    return float(np.mean((np.sign(gap) + 1.0) / 2.0))


# The section


def sections(report: ReportContext) -> list[Section]:
    """Return the section of rank groups, with one part per group."""
    groups = report.rank_groups
    if not groups:
        return []
    parts = [_part(place, group, report.styles) for place, group in enumerate(groups, 1)]
    return [Section("groups", "Ranks by group of methods", parts=parts)]


def _part(place: int, group: RankGroupResult, styles: Mapping[str, Any]) -> Section:
    """Return a group's figures and tables, or why there are none."""
    tables = [_averages(group, standing) for standing in group.standings]
    tables += [_orders(group, standing) for standing in group.standings if _listed_pairs(group, standing)]
    notes = [line for standing in group.standings for line in _lines(standing)]
    pictures = [rank_group_figure.draw(group, styles)] if group.standings else []
    return Section(f"group-{place}", group.name, pictures=pictures, tables=tables, notes=[*notes, *group.notes])


def _lines(standing: RankGroupScore) -> list[str]:
    """Return the test of a score, or why pairs are not compared."""
    name = standing.score.title
    withheld = (f"{name}: {line[0].lower()}{line[1:]}" for line in withheld_lines([standing.tested]))
    return [f"{name}: {friedman_line(standing.tested)}", *withheld]


def _averages(group: RankGroupResult, standing: RankGroupScore) -> Table:
    """Return the table of average ranks."""
    blocks = f"{standing.blocks.n} block{'s' * (standing.blocks.n > 1)}"
    head = ["method", f"ours, N = {blocks}", f"ours, N = {standing.datasets.count}"]
    columns = [standing.blocks.mean_ranks, standing.datasets.mean_ranks]
    if standing.published_ranks is not None:
        head.append(f"published, the same {standing.datasets.count.removeprefix('1 ')}")
        columns.append(standing.published_ranks.mean_ranks)
    head += ["printed average rank", "published as"] if group.source else []
    rows = []
    for method in standing.ordered():
        row: list[str | Item] = [group.starred(method)]
        row += [item(f"{column[method]:.2f}", column[method]) for column in columns]
        row += [item(standing.printed.get(method, "–")), group.columns[method]] if group.source else []
        rows.append([*row, item(f"{standing.own[method]} of {standing.possible}", standing.own[method])])
    caption = f"{group.name}, {standing.score.inline}: average ranks, 1 is the best"
    if group.source:
        caption += f". Printed: by {group.source}, among all of its methods on all of its data sets"
    return _folded([*head, "blocks with a score"], rows, caption, f"{standing.score.title}: average ranks", group)


def _folded(head: Sequence[str], rows: Sequence[Any], caption: str, title: str, group: RankGroupResult) -> Table:
    return Table(head, rows, caption + f". {STAR}: disputed columns" * bool(group.disputed), folded=title)


def _listed_pairs(group: RankGroupResult, standing: RankGroupScore) -> list[RankedPair]:
    """Return the pairs that the study lists or, without any, neighbours in the published order."""
    methods = standing.ordered()
    listed = [pair for pair in group.pairs if set(pair) <= set(methods)]
    if not listed and standing.published_ranks is not None:
        listed = list(pairwise(methods))
    return [standing.order(pair) for pair in listed]


def _orders(group: RankGroupResult, standing: RankGroupScore) -> Table:
    """Return the table of pairs."""
    rows = []
    for order in _listed_pairs(group, standing):
        published, datasets, blocks = order.ahead
        row: list[str | Item] = [f"{group.starred(order.first)} above {group.starred(order.second)}"]
        if standing.published_ranks is not None:
            row.append(item(f"{order.published:+.2f}", order.published))
            row.append(_fraction(published, standing.published_ranks.n))
        row += [item(f"{order.ours:+.2f}", order.ours), _fraction(datasets, standing.datasets.n)]
        rows.append([*row, _fraction(blocks, standing.blocks.n), item(order.verdict, kind="word")])
    published_head = ["published difference", "ahead on data sets"] if standing.published_ranks is not None else []
    head = ["order", *published_head, "our difference", "ahead on data sets, ours", "on blocks, ours", "our order"]
    whose = f"of {group.source}" if group.source else "of the study"
    limit = f"not tested: {standing.withheld}" if standing.withheld else f"our critical difference is {standing.cd:.2f}"
    caption = (
        f"{group.name}, {standing.score.inline}: orders {whose} and ours. Differences of average ranks over "
        f"{standing.tested.blocks}; {limit}. Ahead: blocks on which the first method scores better, ties count half"
    )
    return _folded(head, rows, caption, f"{standing.score.title}: order of pairs", group)


def _fraction(fraction: float, n: int) -> Item:
    return item(f"{fraction * n:g} of {n}", fraction)
