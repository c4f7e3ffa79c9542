"""Ranks by group of methods: figures, average ranks, and the order of pairs compared with the published order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from ep_bench.convergence import mark_note
from ep_bench.plotting.axes import method_axis, strokes
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import LETTER, STYLE, finish, towards_better
from ep_bench.report.context import ReportContext
from ep_bench.report.group_ranks import RankedPair, RankGroupResult, RankGroupScore
from ep_bench.report.sections.ranks import friedman_line, withheld_lines
from ep_bench.report.significance import ALPHA
from ep_bench.report.summary import DATASETS

ORDER = 50
ROW = 0.24  # inches per method: two lines of marks
WIDTH, AROUND = 4.4, 0.8  # inches of a panel, and above and below it
LEGEND = 5.4  # inches of the legend
SHIFT = 0.17  # our marks are above a method's line, published ones below
STAR = "*"
OURS: dict[str, Any] = {"color": "black", "marker": "o", "markersize": 4.5}
OURS_BY_DATASET: dict[str, Any] = {
    "color": "black",
    "linestyle": "none",
    "marker": "|",
    "markersize": 8,
    "markeredgewidth": 1.1,
}
PUBLISHED: dict[str, Any] = {
    "color": "black", "linestyle": "none", "marker": "s", "markersize": 4.5, "fillstyle": "none",
    "markeredgewidth": 1.2,
}  # fmt: skip


def starred(group: RankGroupResult, method: str) -> str:
    """Return a method's name with its mark of convergence, and a star if its published column is disputed."""
    mark = next((one.blocks.marks[method] for one in group.standings if method in one.blocks.marks), "")
    return method + mark + STAR * (method in group.disputed)


def rank_figure(group: RankGroupResult, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return one panel per score, with our average ranks and the published ones.

    The ranks that are tested have bars of ± CD / 2, unless the test is withheld.
    """
    names = [[starred(group, method) for method in _by_rank(standing)] for standing in group.standings]
    left = 0.15 + LETTER * max(len(name) for column in names for name in column)
    heights = [0.1 + ROW * max(4, len(column)) for column in names]
    size = (max(LEGEND, left + WIDTH + 0.2), 0.25 + sum(heights) + len(names) * AROUND)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size)
        y = size[1] - 0.25
        for standing, column, height in zip(group.standings, names, heights, strict=True):
            y -= AROUND + height
            box = (left / size[0], (y + 0.5) / size[1], WIDTH / size[0], height / size[1])
            _panel(figure.add_axes(box), group, standing, column, styles)
        handles = _marks(
            tested={one.tested.blocks for one in group.standings if not one.withheld},
            has_published=bool(group.source),
            several=any(one.datasets.n > 1 for one in group.standings),
        )
        figure.legend(
            handles=handles, loc="upper center", ncols=len(handles), frameon=False, handletextpad=0.5, columnspacing=1.6
        )
    return finish(figure, f"ranks-{group.name}", _caption(group))


def _by_rank(standing: RankGroupScore) -> list[str]:
    """Return the methods by our average ranks, the best first."""
    return sorted(standing.ordered(), key=lambda method: standing.tested.mean_ranks[method])


def _panel(
    ax: Axes,
    group: RankGroupResult,
    standing: RankGroupScore,
    names: Sequence[str],
    styles: Mapping[str, MethodStyle],
) -> None:
    methods = _by_rank(standing)
    method_axis(ax, names, named=True)
    lines = np.arange(len(methods), dtype=float)
    ours, by_set = (np.array([r.mean_ranks[m] for m in methods]) for r in (standing.blocks, standing.datasets))
    half = 0.0 if standing.withheld else 0.5 * standing.cd
    above = lines - (SHIFT if group.source else 0.0)
    centre = np.array([standing.tested.mean_ranks[method] for method in methods])
    if half:
        ax.plot(*strokes(centre - half, centre + half, above), color="0.45", linewidth=1.6, solid_capstyle="butt")
    for method, rank, line in zip(methods, ours, above, strict=True):
        ax.plot(rank, line, **OURS | {"color": styles[method].colour})
    ax.plot(by_set, above, **OURS_BY_DATASET)
    if standing.published_ranks is not None:
        printed = standing.published_ranks.mean_ranks
        ax.plot([printed[method] for method in methods], lines + SHIFT, **PUBLISHED)
    worst = len(methods)
    low, high = min(1.0, float((centre - half).min())), max(float(worst), float((centre + half).max()))
    ax.set_xlim(low - 0.02 * (high - low) - 0.1, high + 0.02 * (high - low) + 0.1)
    ax.xaxis.set_major_locator(FixedLocator(range(1, worst + 1, 1 + worst // 12)))
    ax.set_xlabel(towards_better("average rank", "lower"))
    cd = ", not tested" if standing.withheld else f", CD = {standing.cd:.2f}"
    blocks = f"{standing.blocks.n} block{'s' * (standing.blocks.n > 1)}"
    ax.set_title(f"{standing.score.title}: {blocks} of {standing.datasets.count}{cd}", fontsize=8)


def _marks(*, tested: Collection[str], has_published: bool, several: bool) -> list[Line2D]:
    """Return the handles of the legend; ``tested`` are the kinds of blocks of the ranks with bars."""
    by_block, by_set = (_handle(style, has_bars=bars) for style, bars in (
        (OURS | {"label": "ours"}, bool(set(tested) - {DATASETS})),
        (OURS_BY_DATASET | {"label": "ours, by data set"}, DATASETS in tested),
    ))  # fmt: skip
    handles = [by_block, *([by_set] * several)]
    if has_published:
        handles.append(Line2D([], [], **PUBLISHED, label="published, by data set"))
    return handles


def _handle(style: dict[str, Any], *, has_bars: bool) -> Line2D:
    """Return the handle of our ranks, with the line of a bar if they have bars."""
    line = {"color": "0.45", "linestyle": "-"} if has_bars else {"linestyle": "none"}
    label = style["label"] + " ± CD / 2" * has_bars
    return Line2D([], [], **style | line | {"label": label, "markerfacecolor": "black", "markeredgecolor": "black"})


def _caption(group: RankGroupResult) -> str:
    text = (
        f"{group.name}: average ranks (1 is the best) over the data sets and splits on which all of these methods have "
        "scores (points, in the colours of the methods)."
    )
    if any(not one.withheld for one in group.standings):
        text += (
            " Bars are one critical difference wide: methods whose bars do not overlap differ at level "
            f"{ALPHA} in Nemenyi's test, which assumes independent blocks."
        )
        if any(not one.withheld and one.tested is one.datasets for one in group.standings):
            text += " Each data set is one block, because splits of one data set are not independent."
    for one in group.standings:
        text += f" No bars for {one.score.inline}: {one.withheld}." if one.withheld else ""
    if any(one.datasets.n > 1 for one in group.standings):
        text += " Ticks: ranks of the means, each data set once."
    if group.source:
        text += f" Squares: ranks of the means of {group.source} on the same data sets, among the same methods."
    text += mark_note({mark for one in group.standings for mark in one.blocks.marks.values()})
    if group.disputed:
        text += f" {STAR}: a disputed column, known not to be reproducible, and not used as a reference."
    return text


def sections(report: ReportContext) -> list[Section]:
    """Return the section of rank groups, with one part per group."""
    groups = report.rank_groups
    if not groups:
        return []
    parts = [_part(place, group, report.styles) for place, group in enumerate(groups, 1)]
    return [Section("groups", "Ranks by group of methods", parts=parts)]


def _part(place: int, group: RankGroupResult, styles: Mapping[str, MethodStyle]) -> Section:
    """Return a group's figures and tables, or why there are none."""
    tables = [_averages(group, standing) for standing in group.standings]
    tables += [_orders(group, standing) for standing in group.standings if _listed_pairs(group, standing)]
    notes = [line for standing in group.standings for line in _lines(standing)]
    pictures = [rank_figure(group, styles)] if group.standings else []
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
