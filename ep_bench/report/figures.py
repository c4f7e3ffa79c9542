"""Point-and-error-bar panels, calibration and time plots; drawn on Figure objects, with no window or global state."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ep_bench.plotting.axes import canvas, intervals, log_axis, points
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import COLUMNS, STYLE, finish
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array


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
    return intervals(ax, mean, mean - stderr, mean + stderr, np.arange(len(mean)))


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
