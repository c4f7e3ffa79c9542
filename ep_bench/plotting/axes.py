"""Panels with one line per method, and their axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ep_bench.plotting.method_style import MethodStyle, style_at
from ep_bench.plotting.numbers import fitting, log_tick_texts, plain_ticks, with_minus
from ep_bench.plotting.style import COLUMNS, LETTER, ROW
from ep_bench.types import Array

FAINT = "0.7"  # grey of incomplete entries


def side_by_side(figure: Figure, names: Sequence[str]) -> int:
    """Return how many names of a legend fit into one line."""
    columns = float(figure.get_figwidth()) / (0.65 + LETTER * max(len(name) for name in names))
    return min(len(names), max(1, int(columns)))


def in_groups(names: Sequence[str], limit: int) -> list[Sequence[str]]:
    """Return names in groups of at most ``limit``, as equal in size as possible: one figure for each."""
    size = math.ceil(len(names) / math.ceil(len(names) / limit)) if names else 1
    return [names[start : start + size] for start in range(0, len(names), size)]


def points(ax: Axes, x: Array, lines: NDArray[np.intp], size: float, styles: Sequence[MethodStyle] = ()) -> None:
    """Draw one point per method at x (m,) on the lines (m,).

    ``styles`` are those of the m methods. Without them a line's number decides.
    """
    chosen = styles or [style_at(int(line)) for line in lines]
    for style in dict.fromkeys(chosen):
        mine = np.array([other == style for other in chosen])
        ax.plot(x[mine], lines[mine], style.marker, color=style.colour, markersize=size)


def canvas(
    panels: int, methods: Sequence[str], *, width: float = 1.75, columns: int = COLUMNS
) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels with one line per method; the left column shows the methods' names.

    A row of the grid has at most ``columns`` panels, each ``width`` inches wide or wider.
    """
    columns = min(panels, columns)
    rows = math.ceil(panels / columns)
    left = 0.25 + LETTER * max(len(name) for name in methods)
    width, height = max(width, 4.0 / columns), 0.25 + ROW * max(len(methods), 4)
    gap, top, bottom = 0.22, 0.3, 0.55
    size = (left + columns * width + (columns - 1) * gap + 0.15, rows * (top + height + bottom))
    figure = Figure(figsize=size)
    axes = []
    for place in range(panels):
        row, column = divmod(place, columns)
        x, y = left + column * (width + gap), size[1] - row * (top + height + bottom) - top - height
        axes.append(figure.add_axes((x / size[0], y / size[1], width / size[0], height / size[1])))
        method_axis(axes[-1], methods, named=column == 0)
    return figure, axes


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


def intervals(
    ax: Axes,
    mean: Array,
    low: Array,
    high: Array,
    lines: NDArray[np.intp],
    styles: Sequence[MethodStyle] = (),
    marks: Sequence[str] = (),
    faint: NDArray[np.bool_] | None = None,
) -> bool:
    """Draw means with intervals (M,) on lines (M,); NaN leaves a line empty.

    ``marks`` (M,) are texts after the intervals; means that are ``faint`` (M,) are grey. Returns whether some mean is
    outside the panel. An open triangle with its value is drawn at the edge then.
    """
    lower, upper = fences(mean, 0.5 * (high - low))
    ax.xaxis.set_major_locator(MaxNLocator(3))
    plain_ticks(ax.xaxis)
    shown = np.flatnonzero((mean >= lower) & (mean <= upper))
    grey = np.zeros(len(mean), dtype=bool) if faint is None else faint
    for part, colour in ((shown[~grey[shown]], "0.2"), (shown[grey[shown]], FAINT)):
        looks = [styles[j] if colour != FAINT else styles[j]._replace(colour=FAINT) for j in part.tolist() if styles]
        if len(part):
            ax.plot(*strokes(low[part], high[part], lines[part]), color=colour, linewidth=1.1)
            points(ax, mean[part], lines[part], 4.0, looks)
    for place in shown.tolist() if marks else ():
        ax.annotate(
            marks[place],
            (high[place], lines[place]),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    ax.margins(x=0.08)
    left, right = ax.get_xlim()
    outside = np.flatnonzero((mean < lower) | (mean > upper)).tolist()
    for j in outside:
        above = bool(mean[j] > upper)
        words = with_minus(f"{mean[j]:.3g}") + (marks[j] if marks else "")
        _outside(ax, right if above else left, int(lines[j]), words, FAINT if grey[j] else "0.2", above=above)
    ax.set_xlim(left, right)
    return len(outside) > 0


def _outside(ax: Axes, edge: float, line: int, words: str, colour: str, *, above: bool) -> None:
    """Draw an open triangle with the value of a mean outside the panel at the edge, where it is above or below."""
    ax.plot(edge, line, ">" if above else "<", markersize=5, color=colour, fillstyle="none", clip_on=False)
    ax.annotate(
        words, (edge, line), xytext=(-5 if above else 5, 0), textcoords="offset points",
        ha="right" if above else "left", va="center", fontsize=7,
    )  # fmt: skip


def fences(mean: Array, stderr: Array) -> tuple[float, float]:
    """Return the range of means (M,) that a panel shows, so that one failure does not flatten all others."""
    found = mean[np.isfinite(mean)]
    if len(found) < 4:
        return -math.inf, math.inf
    first, third = np.quantile(found, [0.25, 0.75])
    errors = stderr[np.isfinite(stderr)]
    span = max(float(third - first), 4.0 * float(np.median(errors)) if len(errors) else 0.0)
    return (float(first) - 6.0 * span, float(third) + 6.0 * span) if span > 0.0 else (-math.inf, math.inf)


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
