"""Figure and table of times of inference at fixed hyperparameters."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from ep_bench import published
from ep_bench.experiments.gp_t_2011 import PAPER
from ep_bench.experiments.record import ExperimentResults, uses
from ep_bench.plotting.axes import canvas, data_ticks, log_axis, points
from ep_bench.plotting.method_style import method_styles
from ep_bench.plotting.page import Item, Picture, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

METRIC = "cputime-relative-fixed"  # of the published table


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one panel per data set: one tick per configuration, one marker per mean.

    The mean is over the configurations at which all methods find a solution. Arrays: labels (M,), datasets (D,),
    seconds (D, M, C), NaN without a solution.
    """
    arrays = results.arrays
    labels, seconds = [str(label) for label in arrays["labels"]], np.asarray(arrays["seconds"])
    lines, styles = np.arange(len(labels)), list(method_styles(labels, uses(results.options)).values())
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(seconds), labels, width=2.2)
        for ax, dataset, found in zip(axes, arrays["datasets"], seconds, strict=True):
            whole = np.isfinite(found).all(axis=0)
            data_ticks(ax, found.T, lines)
            if whole.any():
                points(ax, found[:, whole].mean(axis=1), lines, 5.0, styles)
            _failures(ax, found)
            ax.set_title(f"{dataset} ({found.shape[1]} configurations)")
            ax.set_xlabel("seconds of an inference")
            if np.isfinite(found).any():
                log_axis(ax)
                ax.xaxis.set_major_locator(LogLocator(numticks=5))
    caption = (
        "Wall time on one core of one inference at fixed hyperparameters. Ticks: single configurations. Markers: means "
        "over the configurations at which every method finds a solution. Number at the right of a panel: "
        f"configurations at which a method finds none. As the third row of table 1 of {PAPER}."
    )
    return [finish(figure, f"fixed-times-{results.study}", caption)]


def _failures(ax: Axes, found: Array) -> None:
    for line, count in enumerate(np.isnan(found).sum(axis=1)):
        if count:
            ax.annotate(
                f"{count}", (1.0, line), xycoords=ax.get_yaxis_transform(), xytext=(2, 0),
                textcoords="offset points", ha="left", va="center", fontsize=7,
            )  # fmt: skip


def tables(results: ExperimentResults) -> list[Table]:
    """Return the table of times relative to the first method, with the published means."""
    rows = results.summary
    datasets, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("dataset", "method"))
    known = {(row["method"], row["dataset"]): float(row["relative"]) for row in rows}
    published_rows = {row["method"]: row for row in published.described_rows() if row["metric"] == METRIC}
    body: list[list[Any]] = []
    for method in methods:
        relative = [known.get((method, dataset), np.nan) for dataset in datasets]
        printed = published_rows[method]["printed_mean"] if method in published_rows else "–"
        body.append([method, *(_ratio(value) for value in (*relative, float(np.mean(relative)))), item(printed)])
    source = next(iter(published_rows.values()))
    caption = (
        f"Times of inference relative to {methods[0]}: means over the configurations at which all methods find a "
        f"solution, and their mean over the data sets. Published: {source['citation'].strip()} "
        f"({source['protocol'].strip()})"
    )
    return [Table(["method", *datasets, "mean", "published"], body, caption)]


def _ratio(value: float) -> Item:
    return item(f"{value:.2g}", value) if np.isfinite(value) else item("–", "")


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the times relative to the first method, as means over the data sets, and failures of EP."""
    first, *others = dict.fromkeys(row["method"] for row in results.summary)
    found = {
        f"time relative to {first}, {name}": float(
            np.mean([float(row["relative"]) for row in results.summary if row["method"] == name])
        )
        for name in others
    }
    missing = sum(int(row["without_solution"]) for row in results.summary if row["method"] == "EP1")
    return found | {"configurations without a solution by EP1": float(missing)}
