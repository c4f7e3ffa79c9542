"""Critical-difference diagrams of average ranks (Demsar 2006, figure 1), drawn with scikit-posthocs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import LETTER, STYLE, finish, no_window
from ep_bench.report.ranks import ALPHA
from ep_bench.report.summary import Ranking

LINE = 0.19  # inches per line of labels or crossbars
TITLE_LETTER = 0.071  # inches per letter of a title
HEAD = 0.8  # inches above the axis of ranks: title, critical difference, tick labels


def critical_difference(rankings: Sequence[Ranking], styles: Mapping[str, MethodStyle], name: str = "") -> Picture:
    """Return the diagrams of several rankings below one another, lines in the colours of the methods."""
    no_window()
    with mpl.rc_context(STYLE):
        figure = Figure()
        drawn = [(ranking, *_draw(figure, ranking, styles)) for ranking in rankings]
        side = 0.2 + LETTER * max(len(str(name)) + 6 for ranking in rankings for name in ranking.ranks)
        titles = max(len(_title(ranking)) for ranking in rankings) * TITLE_LETTER
        width = max(2 * side + max(4.5, 0.3 * rankings[0].test.k), side + titles + 0.1)
        height = sum(HEAD + LINE * (lines + 1) for _, _, lines in drawn)
        figure.set_size_inches(width, height)
        top = height
        for ranking, ax, lines in drawn:
            body = LINE * (lines + 0.5)
            ax.set_position((side / width, (top - HEAD - body) / height, 1 - 2 * side / width, body / height))
            _critical_bar(ax, ranking, body)
            top -= HEAD + LINE * (lines + 1)
    return finish(figure, name or f"critical-difference-{rankings[0].score.name}", _caption(rankings))


def _draw(figure: Figure, ranking: Ranking, styles: Mapping[str, MethodStyle]) -> tuple[Axes, float]:
    """Draw one diagram; return its axes and the number of lines below the axis of ranks."""
    from scikit_posthocs import critical_difference_diagram

    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    average = ranking.average
    right = max(float(ranking.test.k), 1.0 + ranking.cd)
    margin = 0.02 * (right - 1.0)
    artists = critical_difference_diagram(
        average,
        ranking.nemenyi,
        alpha=ALPHA,
        ax=ax,
        label_fmt_left="{label}  {rank:.2f}",
        label_fmt_right="{rank:.2f}  {label}",
        text_h_margin=margin,
        color_palette={name: styles[str(name)].colour for name in average.index},
        label_props={"size": 8},
        elbow_props={"linewidth": 0.9},
        marker_props={"s": 11, "clip_on": False},
        crossbar_props={"linewidth": 2.4, "solid_capstyle": "butt"},
    )
    lines = -min(label.get_position()[1] for label in artists["labels"])
    ax.set_ylim(-lines - 0.5, 0.0)
    ax.set_xlim(1.0 - margin, right + margin)
    ax.xaxis.set_major_locator(FixedLocator(range(1, ranking.test.k + 1, 1 + ranking.test.k // 12)))
    for label in artists["labels"]:
        label.set_color("black")
        label.set_x(label.get_position()[0] + (-0.25 if label.get_ha() == "right" else 0.25) * margin)
    for (bar,) in artists["crossbars"]:  # its points are in the order of a set, which differs between processes
        ends = [min(bar.get_xdata()), max(bar.get_xdata())]
        bar.set_data(ends, bar.get_ydata()[:2])
    ax.spines["top"].set_visible(True)
    ax.spines["top"].set_bounds(1.0, ranking.test.k)
    ax.tick_params(labelsize=7, length=3)
    return ax, float(lines)


def _critical_bar(ax: Axes, ranking: Ranking, body: float) -> None:
    """Write the title and draw the critical difference to scale above the axis of ranks; body is in inches."""
    end = 1.0 + ranking.cd
    transform = ax.get_xaxis_transform()
    y = 1.0 + 0.34 / body
    ax.plot([1.0, end], [y, y], transform=transform, color="black", linewidth=1.6, clip_on=False)
    ax.annotate(
        f"CD = {ranking.cd:.2f}", (end, y), xycoords=transform, xytext=(5, 0), textcoords="offset points",
        va="center", fontsize=8, annotation_clip=False,
    )  # fmt: skip
    ax.text(0.0, 1.0 + 0.58 / body, _title(ranking), transform=ax.transAxes, fontsize=8.5, ha="left", va="center")


def _title(ranking: Ranking) -> str:
    title = f"{ranking.score.title}: N = {ranking.n} {ranking.blocks}"
    return title + (" (splits of a data set are not independent)" if "splits" in ranking.blocks else "")


def _caption(rankings: Sequence[Ranking]) -> str:
    first = rankings[0]
    scores = " and ".join(dict.fromkeys(ranking.score.inline for ranking in rankings))
    text = (
        f"Average ranks by {scores}; 1 is the best (left). Methods joined by a bar do not differ at level {ALPHA} in "
        "Nemenyi's two-tailed test: their ranks differ by less than the critical difference CD."
    )
    parts = [text]
    for ranking in {(ranking.blocks, ranking.n): ranking for ranking in rankings}.values():
        if ranking.blocks == "data sets":
            parts.append(f"N = {ranking.n} data sets, as in Demsar (2006): each counts once, with its mean score.")
        else:
            parts.append(
                f"N = {ranking.n} data sets × splits, as in Bui et al. (2016): splits of one data set have most data "
                "points in common, so these blocks are not independent and the critical difference is too small."
            )
        if ranking.incomplete:
            parts.append(f"{ranking.incomplete} {ranking.blocks} without a score of every method are omitted.")
    if first.left_out:
        parts.append(f"Not ranked because of scores on fewer than half of the data sets: {', '.join(first.left_out)}.")
    return " ".join(parts)
