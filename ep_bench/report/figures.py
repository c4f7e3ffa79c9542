"""Point-and-error-bar panels, calibration and time plots; drawn on Figure objects, with no window or global state."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

# Okabe and Ito's colours, told apart by colour-blind eyes; the dark ones first, the yellow left out.
LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#000000", "^"), ("#009E73", "D"), ("#CC79A7", "v"), ("#56B4E9", "P"))
# Colour, stroke and width of curves side by side: in grey the stroke tells them apart.
STROKES = (
    ("#D55E00", (0, (6, 4)), 1.4),
    ("#0072B2", (0, (1, 1.2)), 1.4),
    ("#009E73", (0, (5, 1.5, 1, 1.5)), 1.2),
    ("#CC79A7", (0, (7, 1.2)), 1.2),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), 1.4),
)
STYLE: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "svg.hashsalt": "ep-bench",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial", "sans-serif"],  # none wider than the first
    "pdf.fonttype": 3,
    "lines.linewidth": 1.0,
    "text.parse_math": False,  # labels are the user's, and may have dollars in them
}
COLUMNS = 5  # panels side by side
ROW = 0.17  # inches a method
LETTER = 0.062  # inches a letter of a label
LINE = 0.18  # inches a line of a legend


@dataclass(frozen=True)
class Picture:
    """A finished figure: its file name without ending, caption, SVG text, and the figure itself."""

    name: str
    caption: str
    svg: str
    figure: Figure

    def write(self, folder: Path, *, pdf: bool = False) -> list[Path]:
        """Write ``<name>.svg`` and, if asked, ``<name>.pdf``; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.svg"]
        paths[0].write_text(self.svg, encoding="utf-8")
        if pdf:
            paths.append(folder / f"{self.name}.pdf")
            with mpl.rc_context(STYLE):
                self.figure.savefig(paths[1], format="pdf", metadata={"CreationDate": None})
        return paths


def finish(figure: Figure, name: str, caption: str) -> Picture:
    """Return a figure as SVG, the same text for the same picture."""
    svg = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return Picture(re.sub(r"[^\w.-]+", "-", name), caption, svg.getvalue(), figure)


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


def canvas(panels: int, methods: Sequence[str], *, width: float = 1.75) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels whose left column has room for the methods' names, one row of a panel a method."""
    columns = min(panels, COLUMNS)
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


def panels(table: ScoreTable) -> Picture:
    """Return one panel a data set: each method's mean and standard error, as in Bui et al. 2016, figure 3."""
    score = table.score
    cut = []
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(table.datasets), table.methods)
        for i, (dataset, ax) in enumerate(zip(table.datasets, axes, strict=True)):
            splits = int(table.n[i].max())
            ax.set_title(f"{dataset} ({splits} split{'s' if splits != 1 else ''})")
            cut.append(_points(ax, table.mean[i], table.stderr[i]))
            if i + COLUMNS >= len(axes):
                ax.set_xlabel(score.axis)
    uneven = np.any((table.n > 0) & (table.n < table.n.max(axis=1, keepdims=True)))
    caption = (
        f"{score.title} by data set: mean over test splits and one standard error (ddof 0). "
        f"{score.direction.capitalize()}."
        + (" An open triangle with a number stands for a mean outside the panel." if any(cut) else "")
        + (" Some means rest on fewer splits than the title says: see the table." if uneven else "")
    )
    return finish(figure, f"panels-{score.name}", caption)


def _points(ax: Axes, mean: Array, stderr: Array) -> bool:
    """Draw means and standard errors (M,), NaN where there is none; return whether any lies outside the panel."""
    low, high = fences(mean, stderr)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    shown = np.flatnonzero((mean >= low) & (mean <= high))
    ax.plot(*strokes((mean - stderr)[shown], (mean + stderr)[shown], shown), color="0.2", linewidth=1.1)
    points(ax, mean[shown], shown, 4.0)
    ax.margins(x=0.08)
    left, right = ax.get_xlim()
    outside = np.flatnonzero((mean < low) | (mean > high))
    for j in outside:
        above = mean[j] > high
        edge, marker = (right, ">") if above else (left, "<")
        ax.plot(edge, j, marker=marker, markersize=5, color="0.2", fillstyle="none", clip_on=False)
        ax.annotate(
            f"{mean[j]:.3g}", (edge, j), xytext=(-5 if above else 5, 0), textcoords="offset points",
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


def spread(ax: Axes, table: ScoreTable, methods: Sequence[str], values: Array, centres: Array) -> None:
    """Draw a small tick a data set, values (D, M), and a large point at the centre (M,) on each method's line."""
    lines = np.array([methods.index(method) for method in table.methods])
    ax.plot(values.ravel(), np.broadcast_to(lines, values.shape).ravel(), "|", color="0.5", markersize=6)
    points(ax, centres, lines, 5.0)


def _means(values: Array) -> Array:
    """Return the means (M,) of values (D, M) without the NaNs; NaN for a column of them."""
    found = ~np.isnan(values)
    counts = np.where(found.any(axis=0), found.sum(axis=0), math.nan)
    return np.asarray(np.where(found, values, 0.0).sum(axis=0) / counts)


def _all_methods(tables: Sequence[ScoreTable]) -> list[str]:
    """Return the methods of any table; a method that gives quantiles may have one coverage and not another."""
    return list(dict.fromkeys(method for table in tables for method in table.methods))


def calibration(tables: Sequence[ScoreTable]) -> Picture:
    """Return one panel a coverage (50, 90, 95 %) and one for the PIT: a tick a data set, a marker their mean."""
    methods = _all_methods(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), methods)
        for table, ax in zip(tables, axes, strict=True):
            nominal = re.search(r"\d+", table.score.name)
            ax.set_title(f"central {nominal.group()} %" if nominal else "PIT")
            ax.set_xlabel("fraction of test rows inside" if nominal else "calibration error")
            ax.xaxis.set_major_locator(MaxNLocator(3))
            if nominal:
                ax.axvline(float(nominal.group()) / 100.0, color="black", linewidth=0.8, linestyle="--")
            spread(ax, table, methods, table.mean, _means(table.mean))
    caption = (
        "Calibration on test rows. Coverage of the central 50, 90 and 95 % intervals against the nominal value "
        "(dashed), and the calibration error of the probability integral transform (0 is perfect). Ticks: means over "
        "splits on each data set; markers: their mean."
    )
    return finish(figure, "calibration", caption)


def times(tables: Sequence[ScoreTable]) -> Picture:
    """Return a logarithmic panel each for tuning, fit and prediction: ticks are data sets, markers geometric means."""
    methods = _all_methods(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), methods, width=3.0)
        for table, ax in zip(tables, axes, strict=True):
            ax.set_title(table.score.title)
            ax.set_xlabel("seconds a split")
            positive = np.where(table.mean > 0.0, table.mean, math.nan)
            spread(ax, table, methods, positive, np.exp(_means(np.log(positive))))
            log_axis(ax)
    caption = (
        "Wall time on one core, compilation left out. Ticks: means over splits on each data set; markers: their "
        "geometric mean."
    )
    return finish(figure, "times", caption)


def log_axis(ax: Axes) -> None:
    """Make the horizontal axis logarithmic with plain numbers; the fewer decades, the more of them."""
    low, high = ax.dataLim.intervalx
    ax.set_xscale("log")
    subs = (1.0,) if high > 300.0 * low else (1.0, 2.0, 5.0) if high > 8.0 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=7))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def no_window() -> None:
    """Keep libraries that ask for pyplot from opening a window system."""
    os.environ.setdefault("MPLBACKEND", "Agg")
