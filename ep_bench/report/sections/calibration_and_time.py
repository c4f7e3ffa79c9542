"""Calibration and time: figures over all data sets, and the tables of the further scores."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ep_bench.convergence import mark_note
from ep_bench.plotting.axes import canvas, log_axis, points
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.numbers import plain_ticks
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report import score_table_formats as formats
from ep_bench.report import significance
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import CPU_TIMES
from ep_bench.report.sections.score_tables import score_table
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

ORDER = 90
CALIBRATION = ("coverage50", "coverage90", "coverage95", "pit_error")


def sections(report: ReportContext) -> list[Section]:
    """Return the figures of calibration (regression only) and time, and the section of the further scores."""
    known, times = (
        [report.further_scores[n] for n in names if n in report.further_scores] for names in (CALIBRATION, CPU_TIMES)
    )
    pictures = [calibration_figure(known, report.labels, report.styles)] if known else []
    pictures += [time_figure(times, report.labels, report.styles)] if times else []
    notes = report.time_notes if times else []
    title = "Calibration and time" if known else "Time"
    plots = [Section("plots", title, pictures=pictures, notes=notes)] if pictures else []
    return [*plots, *_further(report)]


def calibration_figure(
    tables: Sequence[ScoreTable], labels: Mapping[str, str], styles: Mapping[str, MethodStyle]
) -> Picture:
    """Return one panel per coverage (50, 90, 95 %) and one for the PIT."""
    methods, common = _all_methods(tables), _common(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), [labels[method] for method in methods])
        for table, ax in zip(tables, axes, strict=True):
            nominal = re.search(r"\d+", table.score.name)
            ax.set_title(f"central {nominal.group()} %" if nominal else "PIT")
            ax.set_xlabel("fraction of test data inside" if nominal else "calibration error")
            ax.xaxis.set_major_locator(MaxNLocator(3))
            plain_ticks(ax.xaxis)
            if nominal:
                ax.axvline(float(nominal.group()) / 100.0, color="black", linewidth=0.8, linestyle="--")
            _spread(ax, table, methods, table.mean, _means(table, table.mean, common), styles)
    caption = (
        "Calibration on test data. Coverage of the central 50, 90 and 95 % intervals compared with the nominal value "
        "(dashed), and the calibration error of the probability integral transform (PIT; 0 is perfect). Ticks: means "
        f"over splits on each data set. Markers: means over {_words(common)}."
    )
    return finish(
        figure, "calibration", caption + mark_note({labels[method].removeprefix(method) for method in methods})
    )


def time_figure(tables: Sequence[ScoreTable], labels: Mapping[str, str], styles: Mapping[str, MethodStyle]) -> Picture:
    """Return one logarithmic panel each for tuning, fit and prediction."""
    methods, common = _all_methods(tables), _common(tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), [labels[method] for method in methods], width=3.0)
        for table, ax in zip(tables, axes, strict=True):
            ax.set_title(table.score.title)
            ax.set_xlabel("CPU seconds per split")
            shortest = np.min(table.mean, where=table.mean > 0.0, initial=math.inf)  # 0 has no place on the axis
            positive = np.maximum(table.mean, shortest)
            _spread(ax, table, methods, positive, np.exp(_means(table, np.log(positive), common)), styles)
            log_axis(ax)
    caption = (
        "CPU time, without compilation. Ticks: means over splits on each data set. Markers: geometric means over "
        f"{_words(common)}."
    )
    return finish(figure, "times", caption + mark_note({labels[method].removeprefix(method) for method in methods}))


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


class CommonSets(NamedTuple):
    """Data sets over which methods are averaged, and the methods that are complete on all of them."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]


def _common(tables: Sequence[ScoreTable]) -> CommonSets:
    """Return the largest complete subset of the scores that every cell has; of one method, its complete data sets."""
    of_all = [one for one in tables if one.score.name != "tune_cpu_seconds"] or tables
    table = max(of_all, key=lambda one: int(one.complete.sum()))
    subset = significance.largest_complete_subset(table.complete)
    if len(table.methods) == 1 and table.complete.any():
        subset = significance.CompleteSubset(tuple(np.flatnonzero(table.complete[:, 0]).tolist()), (0,))
    return CommonSets(
        tuple(table.datasets[i] for i in subset.datasets), tuple(table.methods[j] for j in subset.methods)
    )


def _words(common: CommonSets) -> str:
    """Return the data sets of the means in words."""
    if not common.datasets:
        return "the data sets on which two methods are complete, of which there are none"
    return f"{', '.join(common.datasets)}, of the methods that are complete on them"


def _rows(table: ScoreTable, common: CommonSets) -> list[int]:
    """Return the rows of the common data sets, none if the table lacks one of them."""
    known = set(common.datasets) <= set(table.datasets)
    return [table.datasets.index(name) for name in common.datasets] if known else []


def _means(table: ScoreTable, values: Array, common: CommonSets) -> Array:
    """Return the means (M,) of values (D, M) over the common data sets, NaN for a method that lacks one of them."""
    shown = [method in common.methods for method in table.methods]
    rows = _rows(table, common)
    if not rows:
        return np.full(len(table.methods), math.nan)
    return np.asarray(np.where(shown, values[rows].mean(axis=0), math.nan))


def _all_methods(tables: Sequence[ScoreTable]) -> list[str]:
    """Return the methods of all tables: a method with quantiles may have one coverage and not another."""
    return list(dict.fromkeys(method for table in tables for method in table.methods))


def _further(report: ReportContext) -> list[Section]:
    """Return the section of the further scores. Its tables are folded."""
    further = report.further_scores
    every = [*(one.table for one in report.scores), *further.values()]
    if not every:
        return []
    files = {"scores.csv": formats.long_csv(every)}
    shown = [score_table(table, folded=table.score.axis) for table in further.values()]
    return [Section("more", "Further scores", tables=shown, files=files)]
