"""Panels with one line per method, and their axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ep_bench.plotting.method_style import COLOURS, MethodStyle
from ep_bench.plotting.numbers import fitting, log_tick_texts, plain_ticks, with_minus
from ep_bench.plotting.style import COLUMNS, LETTER, LINE, ROW
from ep_bench.types import Array

HOLLOW = " Hollow markers: some splits have not converged."  # part of captions
FAINT = "0.7"  # grey of incomplete entries
TICK = 0.28  # half the height of a tick, as a fraction of a line
FENCE = 3.0  # interquartile ranges beyond the quartiles that a panel shows


def side_by_side(figure: Figure, names: Sequence[str], handle: float = 0.65) -> int:
    """Return how many names of a legend fit into one line, with handles of so many inches."""
    columns = float(figure.get_figwidth()) / (handle + LETTER * max((len(name) for name in names), default=1))
    return max(1, min(len(names), int(columns)))


def points(ax: Axes, x: Array, lines: NDArray[np.intp], size: float, styles: Sequence[MethodStyle]) -> None:
    """Draw one point per method at x (m,) on the lines (m,), in the styles of the methods."""
    for style in dict.fromkeys(styles):
        mine = np.array([other == style for other in styles])
        face = "none" if style.is_hollow else style.colour
        ax.plot(x[mine], lines[mine], style.marker, color=style.colour, markersize=size, markerfacecolor=face)


def canvas(
    panels: int,
    methods: Sequence[str],
    styles: Iterable[MethodStyle] = (),
    *,
    width: float = 1.75,
    columns: int = COLUMNS,
) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels with one line per method; the left column shows the methods' names.

    A row of the grid has at most ``columns`` panels, each ``width`` inches wide or wider. The families of ``styles``
    are at the top, if there are several.
    """
    left = 0.25 + LETTER * max(len(name) for name in methods)
    size = (max(width, 4.0 / min(panels, columns)), 0.25 + ROW * max(len(methods), 4))
    figure = Figure()
    axes = _grid(figure, panels, columns, size, left=left, gap=0.22, bottom=0.55)
    _make_room(figure, axes, family_legend(figure, styles))
    for place, ax in enumerate(axes):
        method_axis(ax, methods, named=place % columns == 0)
    return figure, axes


def _grid(
    figure: Figure, panels: int, columns: int, size: tuple[float, float], *, left: float, gap: float, bottom: float
) -> list[Axes]:
    """Add rows of panels of a size to a figure, which gets the size that it needs; all lengths in inches."""
    columns = min(panels, columns)
    width, height, top = *size, 0.3
    rows = math.ceil(panels / columns)
    whole = (left + columns * (width + gap), rows * (top + height + bottom))
    figure.set_size_inches(whole)
    boxes = [
        (left + i % columns * (width + gap), (rows - i // columns) * (top + height + bottom) - top - height)
        for i in range(panels)
    ]
    return [figure.add_axes((x / whole[0], y / whole[1], width / whole[0], height / whole[1])) for x, y in boxes]


def _make_room(figure: Figure, axes: Iterable[Axes], above: float, below: float = 0.0) -> None:
    """Make a figure higher, by some inches above and below its panels."""
    before = float(figure.get_figheight())
    after = before + above + below
    figure.set_figheight(after)
    for ax in axes:
        x, y, width, height = ax.get_position().bounds
        ax.set_position((x, (y * before + below) / after, width, height * before / after))


def shared_label(figure: Figure, text: str) -> None:
    """Write the label of the horizontal axes of all panels below them."""
    figure.supxlabel(text, y=0.08 / float(figure.get_figheight()), va="bottom", fontsize=8)


def family_legend(figure: Figure, styles: Iterable[MethodStyle]) -> float:
    """Write the families of methods at the top of a figure, if there are several; return the inches that it takes."""
    found = {style.family for style in styles}
    families = [family for family in COLOURS if family in found]
    if len(families) < 2:
        return 0.0
    handles = [
        Line2D([], [], color=COLOURS[one], marker="o", markersize=4, linestyle="none", label=one) for one in families
    ]
    columns = side_by_side(figure, families, 0.35)
    figure.legend(handles=handles, loc="upper left", ncols=columns, frameon=False, handletextpad=0.2, columnspacing=1.0)
    return 0.1 + LINE * math.ceil(len(families) / columns)


def small_multiples(panels: int) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels of equal size."""
    figure = Figure()
    return figure, _grid(figure, panels, COLUMNS, (1.7, 1.4), left=0.75, gap=0.5, bottom=0.3)


def line_legend(figure: Figure, axes: Sequence[Axes], x_label: str = "", y_label: str = "") -> None:
    """Write the labels of the axes, and above all panels a legend of their labelled lines, each label once."""
    lines = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    columns = side_by_side(figure, list(lines))
    _make_room(figure, axes, 0.1 + LINE * math.ceil(len(lines) / columns), 0.25 * bool(x_label))
    figure.legend(list(lines.values()), list(lines), loc="upper center", ncols=columns, frameon=False)
    shared_label(figure, x_label)
    figure.supylabel(y_label, x=0.1 / float(figure.get_figwidth()), ha="left", fontsize=8)


def method_axis(ax: Axes, methods: Sequence[str], *, named: bool) -> None:
    """Assign one line to each method, the first on top. Grid lines are drawn by hand: ticks would be slower."""
    ax.set_ylim(len(methods) - 0.4, -0.6)
    ax.set_yticks([])
    transform = ax.get_yaxis_transform()
    rows = np.arange(len(methods), dtype=float)
    x, y = strokes(np.zeros(len(rows)), np.ones(len(rows)), rows)
    ax.add_line(Line2D(x, y, transform=transform, color="0.9", linewidth=0.5, zorder=0))
    for j, method in enumerate(methods if named else ()):
        ax.annotate(
            method, (0.0, j), xycoords=transform, xytext=(-4, 0), textcoords="offset points", ha="right", va="center"
        )


def strokes(left: Array, right: Array, heights: NDArray[Any]) -> tuple[Array, Array]:
    """Return x and y (3 m,) of m horizontal strokes as one line with gaps: one object is drawn faster than many."""
    gaps = np.full(len(heights), math.nan)
    return np.stack([left, right, gaps], axis=1).ravel(), np.repeat(heights.astype(float), 3)


def data_ticks(ax: Axes, values: Array, lines: NDArray[np.intp]) -> None:
    """Draw a small tick for each value (D, M) on the lines (M,) of the methods."""
    heights = np.broadcast_to(lines, values.shape).ravel().astype(np.float64)
    y, x = strokes(heights - TICK, heights + TICK, values.ravel())
    ax.plot(x, y, color="0.5", linewidth=0.8)


def intervals(
    ax: Axes,
    mean: Array,
    low: Array,
    high: Array,
    lines: NDArray[np.intp],
    styles: Sequence[MethodStyle],
    faint: NDArray[np.bool_] | None = None,
) -> bool:
    """Draw means with intervals (M,) on lines (M,); NaN leaves a line empty.

    Means that are ``faint`` (M,) are grey. Returns whether some mean is outside the panel. An open triangle with its
    value is drawn at the edge then.
    """
    controls = np.array([style.is_control for style in styles], dtype=bool)
    lower, upper = fences(mean, 0.5 * (high - low), controls)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    plain_ticks(ax.xaxis)
    shown = np.flatnonzero((mean >= lower) & (mean <= upper))
    grey = np.zeros(len(mean), dtype=bool) if faint is None else faint
    for part, colour in ((shown[~grey[shown]], "0.2"), (shown[grey[shown]], FAINT)):
        if len(part):
            looks = [styles[j] if colour != FAINT else styles[j]._replace(colour=FAINT) for j in part.tolist()]
            ax.plot(*strokes(low[part], high[part], lines[part]), color=colour, linewidth=1.1)
            points(ax, mean[part], lines[part], 4.0, looks)
    ax.margins(x=0.08)
    left, right = ax.get_xlim()
    outside = np.flatnonzero((mean < lower) | (mean > upper)).tolist()
    for j in outside:
        above = bool(mean[j] > upper)
        colour = FAINT if grey[j] else styles[j].colour
        _outside(ax, (right if above else left, float(lines[j])), float(mean[j]), colour, above=above)
    ax.set_xlim(left, right)
    return len(outside) > 0


def _outside(ax: Axes, edge: tuple[float, float], value: float, colour: str, *, above: bool) -> None:
    """Draw an open triangle with a value outside the panel at the place ``edge``, where it is above or below."""
    ax.plot(*edge, ">" if above else "<", markersize=5, color=colour, fillstyle="none", clip_on=False)
    ax.annotate(
        with_minus(f"{value:.3g}"), edge, xytext=(-5 if above else 5, 0), textcoords="offset points",
        ha="right" if above else "left", va="center", fontsize=7,
    )  # fmt: skip


def fences(mean: Array, stderr: Array, controls: NDArray[np.bool_] | bool = False) -> tuple[float, float]:
    """Return the range of means (M,) that a panel shows, so that controls and one failure do not flatten all others."""
    found = np.isfinite(mean)
    others = found & np.logical_not(controls)
    if others.sum() < 2 or found.sum() < 4:
        return -math.inf, math.inf
    first, third = np.quantile(mean[others], [0.25, 0.75])
    errors = stderr[np.isfinite(stderr)]
    span = max(float(third - first), 4.0 * float(np.median(errors)) if len(errors) else 0.0)
    return (float(first) - FENCE * span, float(third) + FENCE * span) if span > 0.0 else (-math.inf, math.inf)


def log_axis(ax: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers and more ticks for fewer decades.

    Below a factor of eight, ticks are at equal steps: those of a decade would be too few or too close.
    """
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    subs = (1.0,) if high > 300.0 * low else (1.0, 2.0, 5.0)
    locator = LogLocator(subs=subs, numticks=7) if high > 8.0 * low else MaxNLocator(4)
    places = [float(place) for place in locator.tick_values(low, high) if low <= place <= high]
    ax.xaxis.set_major_locator(FixedLocator(places))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(low, high)
    ax.set_xticks(places, fitting(ax, places, log_tick_texts(places)))
