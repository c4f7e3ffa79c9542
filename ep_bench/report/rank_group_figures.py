"""Groups of methods in figures and tables: average ranks of ours and published ones side by side, and their orders."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from scipy import stats

from ep_bench.plotting.axes import method_axis, strokes
from ep_bench.plotting.page import Item, Picture, item
from ep_bench.plotting.style import LETTER, STYLE, finish
from ep_bench.report import rank_diagrams
from ep_bench.report.experiments import ExperimentTable
from ep_bench.report.page_rows import friedman_line
from ep_bench.report.rank_groups import HOLDS, RankedPair, RankGroupResult, RankGroupScore
from ep_bench.report.ranks import ALPHA

ROW = 0.24  # inches a method: two lines of marks
WIDTH, GAP = 3.0, 0.25  # inches of a panel and between a panel and the next one's names
LEGEND = 5.4  # inches that it needs
SHIFT = 0.17  # of ours above a method's line and of the published ones below
STAR = "*"


@dataclass(frozen=True)
class DrawnRankGroup:
    """A group as the pages show it."""

    title: str
    lines: list[str]
    pictures: list[Picture]
    tables: list[ExperimentTable]


def show(group: RankGroupResult) -> DrawnRankGroup:
    """Return a group's figures and tables, or why there are none."""
    pictures, tables = [], []
    if group.standings:
        pictures.append(ranks(group))
        testable = [standing.blocks for standing in group.standings if standing.blocks.nemenyi is not None]
        if testable:
            pictures.append(rank_diagrams.critical_difference(testable, f"critical-difference-group-{group.name}"))
        tables += [_averages(group, standing) for standing in group.standings]
        tables += [_orders(group, standing) for standing in group.standings if _listed_pairs(group, standing)]
    lines = [line for standing in group.standings for line in _lines(group, standing)]
    return DrawnRankGroup(group.name, [*lines, *group.notes], pictures, tables)


def starred(group: RankGroupResult, method: str) -> str:
    """Return a method's name, with a star where its published column is disputed."""
    return method + STAR * (method in group.disputed)


# The figure


def ranks(group: RankGroupResult) -> Picture:
    """Return a panel a score: average ranks of ours with bars of half a critical difference, and the published ones."""
    names = [[starred(group, method) for method in standing.ordered()] for standing in group.standings]
    sides = [0.15 + LETTER * max(len(name) for name in column) for column in names]
    top, bottom, height = 0.55, 0.5, 0.1 + ROW * max(4, *(len(column) for column in names))
    size = (max(LEGEND, sum(sides) + len(names) * (WIDTH + GAP)), top + height + bottom)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size)
        x = 0.0
        for standing, column, side in zip(group.standings, names, sides, strict=True):
            x += side
            box = (x / size[0], bottom / size[1], WIDTH / size[0], height / size[1])
            _panel(figure.add_axes(box), group, standing, column)
            x += WIDTH + GAP
        handles = _marks(has_published=bool(group.source), several=any(s.datasets.n > 1 for s in group.standings))
        figure.legend(
            handles=handles, loc="upper center", ncols=len(handles), frameon=False, handletextpad=0.5, columnspacing=1.6
        )
    return finish(figure, f"ranks-{group.name}", _caption(group))


def _panel(ax: Axes, group: RankGroupResult, standing: RankGroupScore, names: Sequence[str]) -> None:
    methods = standing.ordered()
    method_axis(ax, names, named=True)
    lines = np.arange(len(methods), dtype=float)
    ours, by_set = (np.array([standing.average(r)[m] for m in methods]) for r in (standing.blocks, standing.datasets))
    half = 0.0 if math.isnan(standing.blocks.cd) else 0.5 * standing.blocks.cd
    above = lines - (SHIFT if group.source else 0.0)
    ax.plot(*strokes(ours - half, ours + half, above), color="0.45", linewidth=1.6, solid_capstyle="butt")
    ax.plot(ours, above, "o", color="black", markersize=4.5)
    ax.plot(by_set, above, "|", color="black", markersize=8, markeredgewidth=1.1)
    if standing.published_ranks is not None:
        told = np.array([standing.average(standing.published_ranks)[m] for m in methods])
        ax.plot(told, lines + SHIFT, "s", color="#D55E00", markersize=4.5, markerfacecolor="white", markeredgewidth=1.2)
    most = len(methods)
    low, high = min(1.0, float((ours - half).min())), max(float(most), float((ours + half).max()))
    ax.set_xlim(low - 0.02 * (high - low) - 0.1, high + 0.02 * (high - low) + 0.1)
    ax.xaxis.set_major_locator(FixedLocator(range(1, most + 1, 1 + most // 12)))
    ax.set_xlabel("average rank, 1 the best")
    cd = "" if math.isnan(standing.blocks.cd) else f", CD = {standing.blocks.cd:.2f}"
    sets = f"{standing.datasets.n} data set{'s' * (standing.datasets.n > 1)}"
    ax.set_title(f"{standing.score.title}: {standing.blocks.n} blocks of {sets}{cd}", fontsize=8)


def _marks(*, has_published: bool, several: bool) -> list[Line2D]:
    """Return the handles of the legend."""
    named = [Line2D([], [], color="0.45", marker="o", markersize=4.5, markerfacecolor="black", label="ours ± CD / 2")]
    named[0].set_markeredgecolor("black")
    if several:
        mark = {"color": "black", "linestyle": "none", "marker": "|", "markersize": 8}
        named.append(Line2D([], [], **mark, label="ours, by data set"))  # type: ignore[arg-type]
    if has_published:
        mark = {"color": "#D55E00", "linestyle": "none", "marker": "s", "markersize": 4.5, "markerfacecolor": "white"}
        named.append(Line2D([], [], **mark, label="published, by data set"))  # type: ignore[arg-type]
    return named


def _caption(group: RankGroupResult) -> str:
    text = (
        f"{group.name}: average ranks, 1 the best, over the data sets and splits of which all of these methods have "
        "scores (points). Bars are a critical difference wide: two methods whose bars do not overlap differ at "
        f"{ALPHA} by Nemenyi's test, as far as splits that share rows can be taken for independent blocks. Ticks: "
        "ranks of the means, each data set once."
    )
    if group.source:
        text += f" Squares: ranks of the means of {group.source} on the same data sets, among the same methods."
        text += " The order down is theirs."
    if group.disputed:
        text += f" {STAR}: a disputed column, known not to be reproducible; shown, and no measure of ours."
    return text


# Tables and lines


def _lines(group: RankGroupResult, standing: RankGroupScore) -> list[str]:
    """Return what a score's ranks rest on, their tests, and how far the published order is met."""
    counts = ", ".join(f"{name} {count}" for name, count in standing.splits.items())
    told = f"{standing.score.title}: blocks by data set: {counts}. {friedman_line(standing.blocks)}"
    lines = [told]
    if standing.published_ranks is not None:
        lines.append(_tally(group, standing))
    return lines


def _tally(group: RankGroupResult, standing: RankGroupScore) -> str:
    """Return how many of all pairs are in the published order, those with a disputed column by themselves."""
    assert standing.published_ranks is not None  # noqa: S101 asked for where there is a source
    methods = standing.ordered()
    told, ours = standing.average(standing.published_ranks), standing.average(standing.blocks)
    parts = []
    for disputed in (False, True):
        orders = [o for o in standing.orders() if bool({o.first, o.second} & group.disputed) is disputed]
        if orders:
            found = Counter(order.verdict for order in orders)
            words = ", ".join(
                f"{count} {'hold' if verdict == HOLDS else verdict}" for verdict, count in sorted(found.items())
            )
            kind = "with a disputed column" if disputed else "of columns that are not disputed"
            parts.append(f"{len(orders)} {kind}: {words}")
    tau = stats.kendalltau([told[m] for m in methods], [ours[m] for m in methods]).statistic
    head = f"{standing.score.title}, pairs in the order of {group.source}"
    return f"{head}: {'; '.join(parts)}. Kendall's tau of the average ranks: {tau:.2f}."


def _averages(group: RankGroupResult, standing: RankGroupScore) -> ExperimentTable:
    """Return the table of average ranks."""
    head = ["method", f"ours, N = {standing.blocks.n} blocks", f"ours, N = {standing.datasets.n} data sets"]
    columns = [standing.average(standing.blocks), standing.average(standing.datasets)]
    if standing.published_ranks is not None:
        head.append(f"published, the same {standing.datasets.n} data sets")
        columns.append(standing.average(standing.published_ranks))
    head += ["printed average rank", "published as"] if group.source else []
    rows = []
    for method in standing.ordered():
        row: list[str | Item] = [starred(group, method)]
        row += [item(f"{column[method]:.2f}", column[method]) for column in columns]
        row += [item(standing.printed.get(method, "–")), group.columns[method]] if group.source else []
        rows.append([*row, item(f"{standing.own[method]} of {standing.possible}", standing.own[method])])
    caption = f"{group.name}, {standing.score.inline}: average ranks, 1 the best"
    if group.source:
        caption += f". Printed: by {group.source}, among all of its methods on all of its data sets"
    return ExperimentTable([*head, "blocks that it has"], rows, caption + _star_caption(group))


def _star_caption(group: RankGroupResult) -> str:
    return f". {STAR}: disputed columns" if group.disputed else ""


def _listed_pairs(group: RankGroupResult, standing: RankGroupScore) -> list[RankedPair]:
    """Return the pairs that a group names; without any, neighbours in the published order."""
    methods = standing.ordered()
    named = [pair for pair in group.pairs if set(pair) <= set(methods)]
    if not named and standing.published_ranks is not None:
        named = list(pairwise(methods))
    return [standing.order(pair) for pair in named]


def _orders(group: RankGroupResult, standing: RankGroupScore) -> ExperimentTable:
    """Return the table of orders, pair by pair."""
    rows = []
    for order in _listed_pairs(group, standing):
        told, sets, blocks = order.ahead
        first, second = starred(group, order.first), starred(group, order.second)
        row: list[str | Item] = [f"{first} above {second}"]
        if standing.published_ranks is not None:
            row += [item(f"{order.published:+.2f}", order.published), _share(told, standing.published_ranks.n)]
        row += [item(f"{order.ours:+.2f}", order.ours), _share(sets, standing.datasets.n)]
        rows.append([*row, _share(blocks, standing.blocks.n), item(order.verdict, kind="word")])
    told_head = ["published difference", "ahead on data sets"] if standing.published_ranks is not None else []
    head = ["order", *told_head, "our difference", "ahead on data sets, ours", "on blocks, ours", "our order"]
    whose = f"of {group.source}" if group.source else "as named"
    cd = standing.blocks.cd
    limit = "on one block nothing is tested" if math.isnan(cd) else f"the critical difference of ours {cd:.2f}"
    caption = (
        f"{group.name}, {standing.score.inline}: orders {whose} and ours. Differences of average ranks, {limit}; "
        "ahead: where the first scores better, ties half"
    )
    return ExperimentTable(head, rows, caption + _star_caption(group))


def _share(share: float, n: int) -> Item:
    return item(f"{share * n:g} of {n}", share)


def orders_csv(found: Sequence[RankGroupResult]) -> str:
    """Return all pairs of all groups, one line a score and pair."""
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
    pd.DataFrame(lines).round(6).to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()
