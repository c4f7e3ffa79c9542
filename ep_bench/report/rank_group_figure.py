"""Figure of the ranks of a group of methods: one panel per score, with our average ranks and the published ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from ep_bench.convergence import mark_note
from ep_bench.plotting.axes import method_axis, strokes
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import LETTER, STYLE, finish, towards_better
from ep_bench.report.significance import ALPHA
from ep_bench.report.summary import DATASETS

if TYPE_CHECKING:
    from ep_bench.report.sections.rank_groups import RankGroupResult, RankGroupScore

ROW = 0.24  # inches per method: two lines of marks
WIDTH, AROUND = 4.4, 0.8  # inches of a panel, and above and below it
LEGEND = 5.4  # inches of the legend
SHIFT = 0.17  # our marks are above a method's line, published ones below
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


def draw(group: RankGroupResult, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return one panel per score, with our average ranks and the published ones.

    The ranks that are tested have bars of ± CD / 2, unless the test is withheld.
    """
    names = [[group.starred(method) for method in _by_rank(standing)] for standing in group.standings]
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
        text += " *: a disputed column, known not to be reproducible, and not used as a reference."
    return text
