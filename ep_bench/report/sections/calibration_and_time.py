"""Figures of calibration and time over all data sets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ep_bench.plotting.axes import canvas, log_axis, points
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report.context import ReportContext
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

CALIBRATION = ("coverage50", "coverage90", "coverage95", "pit_error")
TIMES = ("tune_cpu_seconds", "fit_cpu_seconds", "predict_cpu_seconds")


def sections(report: ReportContext) -> list[Section]:
    """Return the figures of calibration (regression only) and time."""
    known, times = (
        [report.further_scores[n] for n in names if n in report.further_scores] for names in (CALIBRATION, TIMES)
    )
    pictures = [calibration_figure(known, report)] if known else []
    pictures += [time_figure(times, report)] if times else []
    notes = report.time_notes if times else []
    title = "Calibration and time" if known else "Time"
    return [Section("plots", title, pictures=pictures, notes=notes)] if pictures else []


def calibration_figure(tables: Sequence[ScoreTable], report: ReportContext) -> Picture:
    """Return one panel per coverage (50, 90, 95 %) and one for the PIT."""
    methods = _all_methods(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), [report.label(method) for method in methods])
        for table, ax in zip(tables, axes, strict=True):
            nominal = re.search(r"\d+", table.score.name)
            ax.set_title(f"central {nominal.group()} %" if nominal else "PIT")
            ax.set_xlabel("fraction of test data inside" if nominal else "calibration error")
            ax.xaxis.set_major_locator(MaxNLocator(3))
            if nominal:
                ax.axvline(float(nominal.group()) / 100.0, color="black", linewidth=0.8, linestyle="--")
            _spread(ax, table, methods, table.mean, _means(table.mean), report.styles)
    caption = (
        "Calibration on test data. Coverage of the central 50, 90 and 95 % intervals compared with the nominal value "
        "(dashed), and the calibration error of the probability integral transform (PIT; 0 is perfect). Ticks: means "
        "over splits on each data set. Markers: means over data sets."
    )
    return finish(figure, "calibration", caption + report.mark_note(methods))


def time_figure(tables: Sequence[ScoreTable], report: ReportContext) -> Picture:
    """Return one logarithmic panel each for tuning, fit and prediction."""
    methods = _all_methods(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), [report.label(method) for method in methods], width=3.0)
        for table, ax in zip(tables, axes, strict=True):
            ax.set_title(table.score.title)
            ax.set_xlabel("CPU seconds per split")
            positive = np.where(table.mean > 0.0, table.mean, math.nan)
            _spread(ax, table, methods, positive, np.exp(_means(np.log(positive))), report.styles)
            log_axis(ax)
    caption = (
        "CPU time, without compilation. Ticks: means over splits on each data set. Markers: geometric "
        "means over data sets."
    )
    return finish(figure, "times", caption + report.mark_note(methods))


def _spread(
    ax: Axes,
    table: ScoreTable,
    methods: Sequence[str],
    values: Array,  # (D, M)
    centres: Array,  # (M,)
    styles: Mapping[str, MethodStyle],
) -> None:
    """Draw on each method's line a small tick per data set and a large marker at the centre."""
    lines = np.array([methods.index(method) for method in table.methods])
    ax.plot(values.ravel(), np.broadcast_to(lines, values.shape).ravel(), "|", color="0.5", markersize=6)
    points(ax, centres, lines, 5.0, [styles[method] for method in table.methods])


def _means(values: Array) -> Array:
    """Return the means (M,) of the finite values (D, M) of each column, NaN for a column without any."""
    found = ~np.isnan(values)
    counts = np.where(found.any(axis=0), found.sum(axis=0), math.nan)
    return np.asarray(np.where(found, values, 0.0).sum(axis=0) / counts)


def _all_methods(tables: Sequence[ScoreTable]) -> list[str]:
    """Return the methods of all tables: a method with quantiles may have one coverage and not another."""
    return list(dict.fromkeys(method for table in tables for method in table.methods))
