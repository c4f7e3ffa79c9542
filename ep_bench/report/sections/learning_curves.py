"""Learning curves: scores against the number of training points, of data sets with the key ``train_points``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from ep_bench.plotting.axes import fences, line_legend, log_axis, small_multiples
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import listed
from ep_bench.report.summary import ScoreTable

ORDER = 47
SCORES = ("ll", "rmse")
Curves = Mapping[str, Mapping[int, str]]  # labels by data set and number of training points


def sections(report: ReportContext) -> list[Section]:
    """Return the section, empty without data sets of several numbers of training points."""
    curves = curves_of(report)
    tables = [one.table for one in report.scores if one.score.source in SCORES]
    if not curves or not tables:
        return []
    pictures = [figure(report, table, curves) for table in tables]
    best = [best_table(table, curves) for table in tables]
    return [Section("learning-curves", "Learning curves", pictures=pictures, tables=best)]


def curves_of(report: ReportContext) -> dict[str, dict[int, str]]:
    """Return the data sets of at least two numbers of training points, with their labels."""
    found: dict[str, dict[int, str]] = {}
    for label, entry, _ in report.merged.dataset_entries():
        if entry.get("train_points") and label in report.merged.datasets:
            found.setdefault(str(entry["name"]), {})[int(entry["train_points"])] = label
    return {name: dict(sorted(labels.items())) for name, labels in found.items() if len(labels) > 1}


def figure(report: ReportContext, table: ScoreTable, curves: Curves) -> Picture:
    """Return one panel per data set with a curve per method."""
    with mpl.rc_context(STYLE):
        drawn, axes = small_multiples(len(curves))
        for (name, labels), ax in zip(curves.items(), axes, strict=True):
            _panel(ax, report, table, labels)
            ax.set_title(name)
        line_legend(drawn, axes, "training points", table.score.axis)
    caption = (
        f"{table.score.title} against the number of training points; means and standard errors over splits. "
        f"A panel does not show methods that are far worse than the others.{report.hollow_note}"
    )
    return finish(drawn, f"learning-curves-{table.score.name}", caption)


def _panel(ax: Axes, report: ReportContext, table: ScoreTable, labels: Mapping[int, str]) -> None:
    points, rows = _finished(table, labels)
    for j, method in enumerate(table.methods):
        style = report.marked_styles[method]
        look: dict[str, Any] = {"markerfacecolor": "none"} if style.is_hollow else {}
        ax.errorbar(
            points, table.mean[rows, j], table.stderr[rows, j], color=style.colour, marker=style.marker, markersize=3.0,
            linestyle=style.line, linewidth=0.9, label=method, **look,
        )  # fmt: skip
    means, controls = table.mean[rows], [report.styles[method].is_control for method in table.methods]
    lower, upper = fences(means.ravel(), table.stderr[rows].ravel(), np.tile(controls, len(rows)))
    inside = means[np.isfinite(means) & (means >= lower) & (means <= upper)]
    if len(inside) and np.ptp(inside) > 0.0:
        ax.set_ylim(inside.min() - 0.08 * np.ptp(inside), inside.max() + 0.08 * np.ptp(inside))
    log_axis(ax)


def _finished(table: ScoreTable, labels: Mapping[int, str]) -> tuple[list[int], list[int]]:
    """Return the numbers of training points with finished cells, and their rows of the table."""
    known = {points: table.datasets.index(label) for points, label in labels.items() if label in table.datasets}
    return list(known), list(known.values())


def best_table(table: ScoreTable, curves: Curves) -> Table:
    """Return the best method by data set and number of training points, and those not distinguished from it."""
    numbers = sorted({points for labels in curves.values() for points in labels})
    rows = [
        [name, *(_best(table, labels[points]) if points in labels else "" for points in numbers)]
        for name, labels in curves.items()
    ]
    caption = (
        f"The best method by {table.score.inline}, and below it those that the paired test over splits does not "
        "distinguish from it"
    )
    return Table(["data set", *map(str, numbers)], rows, caption)


def _best(table: ScoreTable, label: str) -> Item | str:
    row = table.datasets.index(label) if label in table.datasets else -1
    if row < 0 or table.best[row] < 0:
        return ""
    best = int(table.best[row])
    equal: Sequence[str] = [table.methods[j] for j in np.flatnonzero(table.marked[row]) if j != best]
    return item(table.methods[best], small=listed(equal), kind="word")
