"""Panels with one line per method, and their axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from ep_bench.plotting.style import COLUMNS, LETTER, LOOKS, ROW
from ep_bench.types import Array


def side_by_side(figure: Figure, named: Sequence[str]) -> int:
    """Return how many names of a legend fit into one line."""
    room = float(figure.get_figwidth()) / (0.65 + LETTER * max(len(name) for name in named))
    return min(len(named), max(1, int(room)))


def points(ax: Axes, x: Array, lines: NDArray[np.intp], size: float) -> None:
    """Draw one point a method, at x (m,) on the lines (m,) that name it; colour and marker guide the eye."""
    for place, (colour, marker) in enumerate(LOOKS):
        mine = lines % len(LOOKS) == place
        if mine.any():
            ax.plot(x[mine], lines[mine], marker, color=colour, markersize=size)


def canvas(
    panels: int, methods: Sequence[str], *, width: float = 1.75, most: int = COLUMNS
) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels, at most so many side by side, whose left column has room for the methods' names.

    One row of a panel a method.
    """
    columns = min(panels, most)
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
    """Give each method a line of its own, the first on top; ticks and their grid would be slower."""
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
    """Return x and y of horizontal strokes as one line with gaps: one object is quicker to draw than many."""
    gaps = np.full(len(heights), math.nan)
    return np.stack([left, right, gaps], axis=1).ravel(), np.repeat(heights.astype(float), 3)


def intervals(ax: Axes, mean: Array, low: Array, high: Array, lines: NDArray[np.intp]) -> bool:
    """Draw means with intervals (M,), NaN where there is none, on lines (M,); return whether any lies outside."""
    least, most = fences(mean, 0.5 * (high - low))
    ax.xaxis.set_major_locator(MaxNLocator(3))
    shown = np.flatnonzero((mean >= least) & (mean <= most))
    ax.plot(*strokes(low[shown], high[shown], lines[shown]), color="0.2", linewidth=1.1)
    points(ax, mean[shown], lines[shown], 4.0)
    ax.margins(x=0.08)
    left, right = ax.get_xlim()
    outside = np.flatnonzero((mean < least) | (mean > most))
    for j in outside:
        above = mean[j] > most
        edge, marker = (right, ">") if above else (left, "<")
        ax.plot(edge, lines[j], marker=marker, markersize=5, color="0.2", fillstyle="none", clip_on=False)
        ax.annotate(
            f"{mean[j]:.3g}", (edge, lines[j]), xytext=(-5 if above else 5, 0), textcoords="offset points",
            ha="right" if above else "left", va="center", fontsize=7,
        )  # fmt: skip
    ax.set_xlim(left, right)
    return len(outside) > 0


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
    """Make the horizontal axis logarithmic with plain numbers; the fewer decades, the more of them."""
    low, high = ax.dataLim.intervalx
    ax.set_xscale("log")
    subs = (1.0,) if high > 300.0 * low else (1.0, 2.0, 5.0) if high > 8.0 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=7))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
