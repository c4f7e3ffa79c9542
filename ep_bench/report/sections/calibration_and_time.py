"""Calibration and time: figures over all data sets, and the tables of the further scores."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ep_bench.plotting.axes import canvas, data_ticks, line_legend, log_axis, points, shared_label, small_multiples
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
COVERAGES = {"coverage50": 50.0, "coverage90": 90.0, "coverage95": 95.0}  # per cent
CALIBRATION = (*COVERAGES, "pit_error")
PIT_BINS = np.arange(0.05, 1.0, 0.1)  # centres
CHOSEN = 6  # methods of a panel of histograms


def sections(report: ReportContext) -> list[Section]:
    """Return the figures of calibration (regression only) and time, and the section of the further scores."""
    calibration, times = _known(report, CALIBRATION), _known(report, CPU_TIMES)
    pictures = [calibration_figure(report), *pit_figures(report)] if calibration else []
    pictures += [time_figure(report, times)] if times else []
    notes = report.time_notes if times else []
    title = "Calibration and time" if calibration else "Time"
    plots = [Section("plots", title, pictures=pictures, notes=notes)] if pictures else []
    return [*plots, *_further(report)]


def _known(report: ReportContext, names: Iterable[str]) -> list[ScoreTable]:
    return [report.further_scores[name] for name in names if name in report.further_scores]


def calibration_figure(report: ReportContext) -> Picture:
    """Return one panel per coverage, as the difference from 50, 90 and 95 %, and one for the PIT."""
    tables = _known(report, CALIBRATION)
    common = _common(tables)
    methods = _all_methods(report, tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), methods, [report.styles[m] for m in methods], width=1.35, columns=4)
        for table, ax in zip(tables, axes, strict=True):
            nominal = COVERAGES.get(table.score.name)
            ax.set_title(f"central {nominal:g} %" if nominal else "PIT")
            ax.set_xlabel("coverage − nominal (%)" if nominal else "calibration error")
            ax.xaxis.set_major_locator(MaxNLocator(3))
            plain_ticks(ax.xaxis)
            values = 100.0 * table.mean - nominal if nominal else table.mean
            ax.axvline(0.0, color="black", linewidth=0.8, linestyle="--")
            _spread(ax, table, methods, values, _means(table, values, common), report)
    caption = (
        "Calibration on test data. Coverage of central intervals minus the nominal one in per cent (0 is perfect; "
        "right: intervals are too wide, left: too narrow), and the calibration error of the probability integral "
        "transform (PIT; 0 is perfect). Ticks: means over splits on each data set. Markers: means over "
        f"{_words(common)}.{report.hollow_note}"
    )
    return finish(figure, "calibration", caption)


def pit_figures(report: ReportContext) -> list[Picture]:
    """Return histograms of the PIT, with a panel per data set, of the results that have them."""
    by_cell = report.merged.curves.pits
    counts = {
        place: np.sum(found, axis=0)
        for place, cells in report.merged.cells.items()
        if (found := [by_cell[key] for key in cells.values() if key in by_cell])
    }
    datasets = [name for name in report.merged.datasets if any(name == dataset for _, dataset in counts)]
    methods = {method for method, _ in counts}
    chosen = _chosen(report, methods)
    if not chosen:
        return []
    with mpl.rc_context(STYLE):
        figure, axes = small_multiples(len(datasets))
        for dataset, ax in zip(datasets, axes, strict=True):
            ax.axhline(1.0, color="0.6", linewidth=0.8)
            for method in chosen:
                if (method, dataset) in counts:
                    density = 10.0 * counts[method, dataset] / counts[method, dataset].sum()
                    style = report.styles[method]
                    ax.plot(
                        PIT_BINS, density, style.line, drawstyle="steps-mid", label=method, color=style.colour,
                        marker=style.marker, markersize=3.0,
                    )  # fmt: skip
            ax.set_title(dataset)
            ax.set_ylim(bottom=0.0)
        line_legend(figure, axes, "PIT", "density")
    caption = (
        "Histograms of the probability integral transform (PIT) of all test data in ten bins; 1 is perfect. A hump: "
        "predictions are too wide; a valley: too narrow; a slope: biased."
    )
    if len(chosen) < len(methods):
        caption += f" Of {len(methods)} methods, the best ranked ones."
    return [finish(figure, "pit", caption)]


def _chosen(report: ReportContext, known: Collection[str]) -> list[str]:
    """Return the known methods by rank; of many, the best one of each family, and others up to ``CHOSEN``."""
    methods = [method for method in report.by_rank() if method in known]
    best = {report.styles[method].family: method for method in reversed(methods)}.values()
    chosen = sorted(methods, key=lambda method: method not in best)[:CHOSEN]
    return sorted(chosen, key=methods.index)


def time_figure(report: ReportContext, tables: Sequence[ScoreTable]) -> Picture:
    """Return one logarithmic panel each for tuning, fit and prediction."""
    common = _common(tables)
    methods = _all_methods(report, tables)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(tables), methods, [report.styles[m] for m in methods], width=1.75)
        for table, ax in zip(tables, axes, strict=True):
            ax.set_title(table.score.title)
            shortest = np.min(table.mean, where=table.mean > 0.0, initial=math.inf)  # 0 has no place on the axis
            positive = np.maximum(table.mean, shortest)
            _spread(ax, table, methods, positive, np.exp(_means(table, np.log(positive), common)), report)
            log_axis(ax)
        shared_label(figure, "CPU seconds per split")
    caption = (
        "CPU time, without compilation. Ticks: means over splits on each data set. Markers: geometric means over "
        f"{_words(common)}.{report.hollow_note}"
    )
    return finish(figure, "times", caption)


def _spread(
    ax: Axes,
    table: ScoreTable,
    methods: Sequence[str],
    values: Array,  # (D, M)
    centres: Array,  # (M,)
    report: ReportContext,
) -> None:
    """Draw on each method's line a small tick per data set and a large marker at the centre."""
    lines = np.array([methods.index(method) for method in table.methods])
    data_ticks(ax, values, lines)
    points(ax, centres, lines, 5.0, [report.marked_styles[method] for method in table.methods])


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


def _means(table: ScoreTable, values: Array, common: CommonSets) -> Array:
    """Return the means (M,) of values (D, M) over the common data sets, NaN for a method that lacks one of them."""
    if not common.datasets or not set(common.datasets) <= set(table.datasets):
        return np.full(len(table.methods), math.nan)
    rows = [table.datasets.index(name) for name in common.datasets]
    shown = [method in common.methods for method in table.methods]
    return np.asarray(np.where(shown, values[rows].mean(axis=0), math.nan))


def _all_methods(report: ReportContext, tables: Sequence[ScoreTable]) -> list[str]:
    """Return the methods of all tables by rank: a method with quantiles may have one coverage and not another."""
    known = {method for table in tables for method in table.methods}
    return [method for method in report.by_rank() if method in known]


def _further(report: ReportContext) -> list[Section]:
    """Return the section of the further scores. Its tables are folded."""
    further = report.further_scores
    every = [*(one.table for one in report.scores), *further.values()]
    if not every:
        return []
    files = {"scores.csv": formats.long_csv(every)}
    shown = [score_table(table, folded=table.score.axis) for table in further.values()]
    return [Section("more", "Further scores", tables=shown, files=files)]
