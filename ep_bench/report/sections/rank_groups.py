"""Ranks by group of methods: figures, average ranks, and the order of pairs compared with the published order."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pandas as pd
from scipy import stats

from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.report import rank_diagrams, rank_group_figures
from ep_bench.report.context import ReportContext
from ep_bench.report.rank_group_figures import STAR, starred
from ep_bench.report.rank_groups import HOLDS, RankedPair, RankGroupResult, RankGroupScore
from ep_bench.report.sections.ranks import friedman_line
from ep_bench.results.spreadsheets import harmless


def sections(report: ReportContext) -> list[Section]:
    """Return the section of rank groups, with one part per group."""
    groups = report.rank_groups
    if not groups:
        return []
    parts = [_part(place, group, report.styles) for place, group in enumerate(groups, 1)]
    files = {"orders.csv": orders_csv(groups)} if any(group.standings for group in groups) else {}
    return [Section("groups", "Ranks by group of methods", parts=parts, files=files)]


def _part(place: int, group: RankGroupResult, styles: Mapping[str, MethodStyle]) -> Section:
    """Return a group's figures and tables, or why there are none."""
    tables = [_averages(group, standing) for standing in group.standings]
    tables += [_orders(group, standing) for standing in group.standings if _listed_pairs(group, standing)]
    notes = [line for standing in group.standings for line in _lines(group, standing)]
    pictures = _pictures(group, styles)
    return Section(f"group-{place}", group.name, pictures=pictures, tables=tables, notes=[*notes, *group.notes])


def _pictures(group: RankGroupResult, styles: Mapping[str, MethodStyle]) -> list[Picture]:
    if not group.standings:
        return []
    pictures = [rank_group_figures.ranks(group, styles)]
    diagrams = rank_diagrams.possible([one for both in group.standings for one in (both.datasets, both.blocks)])
    if diagrams:
        name = f"critical-difference-group-{group.name}"
        pictures.append(rank_diagrams.critical_difference(diagrams, styles, name))
    return pictures


def _lines(group: RankGroupResult, standing: RankGroupScore) -> list[str]:
    """Return the blocks and tests of a score, and the agreement with the published order."""
    counts = ", ".join(f"{name} {count}" for name, count in standing.splits.items())
    lines = [f"{standing.score.title}: blocks by data set: {counts}. {friedman_line(standing.tested)}"]
    if standing.published_ranks is not None:
        published = standing.published_ranks.mean_ranks
        lines.append(_tally(group, standing, published))
    withheld = rank_diagrams.withheld_lines([standing.tested])
    return [*lines, *(f"{standing.score.title}: {line[0].lower()}{line[1:]}" for line in withheld)]


def _tally(group: RankGroupResult, standing: RankGroupScore, published: Mapping[str, float]) -> str:
    """Return how many of all pairs have the published order; pairs with a disputed column are counted separately."""
    methods, ours = standing.ordered(), standing.tested.mean_ranks
    parts = []
    for disputed in (False, True):
        orders = [o for o in standing.orders() if bool({o.first, o.second} & group.disputed) is disputed]
        if orders:
            found = Counter(order.verdict for order in orders)
            words = ", ".join(
                f"{count} {'hold' if verdict == HOLDS else verdict}" for verdict, count in sorted(found.items())
            )
            kind = "with a disputed column" if disputed else "without disputed columns"
            parts.append(f"{len(orders)} {kind}: {words}")
    tau = stats.kendalltau([published[m] for m in methods], [ours[m] for m in methods]).statistic
    head = f"{standing.score.title}, pairs in the order of {group.source}"
    return f"{head}: {'; '.join(parts)}. Kendall's tau of the average ranks: {tau:.2f}."


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
        row: list[str | Item] = [starred(group, method)]
        row += [item(f"{column[method]:.2f}", column[method]) for column in columns]
        row += [item(standing.printed.get(method, "–")), group.columns[method]] if group.source else []
        rows.append([*row, item(f"{standing.own[method]} of {standing.possible}", standing.own[method])])
    caption = f"{group.name}, {standing.score.inline}: average ranks, 1 is the best"
    if group.source:
        caption += f". Printed: by {group.source}, among all of its methods on all of its data sets"
    return Table([*head, "blocks with a score"], rows, caption + _star_caption(group))


def _star_caption(group: RankGroupResult) -> str:
    return f". {STAR}: disputed columns" if group.disputed else ""


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
        row: list[str | Item] = [f"{starred(group, order.first)} above {starred(group, order.second)}"]
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
    return Table(head, rows, caption + _star_caption(group))


def _fraction(fraction: float, n: int) -> Item:
    return item(f"{fraction * n:g} of {n}", fraction)


def orders_csv(found: Sequence[RankGroupResult]) -> str:
    """Return all pairs of all groups as CSV, one line per score and pair."""
    lines = [
        {
            "group": group.name,
            "source": group.source,
            "score": standing.score.name,
            "first": order.first,
            "second": order.second,
            "disputed": int(bool({order.first, order.second} & group.disputed)),
            "published_difference": order.published,
            "difference": order.ours,
            "critical_difference": order.cd,
            "tested_blocks": standing.tested.n,
            "blocks": standing.blocks.n,
            "datasets": standing.datasets.n,
            "published_ahead": order.ahead[0],
            "ahead_datasets": order.ahead[1],
            "ahead_blocks": order.ahead[2],
            "order": order.verdict,
        }
        for group in found
        for standing in group.standings
        for order in standing.orders()
    ]
    out = io.StringIO()
    pd.DataFrame(lines).round(6).map(harmless).to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()
