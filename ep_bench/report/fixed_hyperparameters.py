"""Approximations at fixed hyperparameters: predictions against Markov chains, and times of inference."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from ep_bench import published
from ep_bench.plotting.axes import canvas, log_axis, points
from ep_bench.plotting.page import Item, Picture, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report.conflicts import PAPER
from ep_bench.types import Array

ROWS = {  # what is compared: of its arrays, the panels' title
    "mean": "mean of f",
    "deviation": "deviation of f",
    "log_density": "density of y",
}
METRIC = "cputime-relative-fixed"


def predictions(arrays: Mapping[str, Any], study: str) -> Picture:
    """Return a column of panels a method: means, deviations and densities against those of the first method.

    Arrays: labels (M,); of method i mean_i, deviation_i, log_density_i (N,), NaN where it failed.
    """
    labels = [str(label) for label in arrays["labels"]]
    others = range(1, len(labels))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.6 + 1.65 * len(others), 0.4 + 1.6 * len(ROWS)), layout="constrained")
        axes = figure.subplots(len(ROWS), len(others), squeeze=False, sharex="row", sharey="row")
        for row, (name, title) in zip(axes, ROWS.items(), strict=True):
            values = [np.asarray(arrays[f"{name}_{i}"]) for i in range(len(labels))]
            if name == "log_density":
                values = [np.exp(each) for each in values]
            ends = _ends(values)
            for ax, i in zip(row, others, strict=True):
                _scatter(ax, values[0], values[i], ends)
                ax.set_xlabel(f"by {labels[0]}")
            row[0].set_ylabel(f"{title}\nby the method")
        for ax, i in zip(axes[0], others, strict=True):
            ax.set_title(labels[i])
    caption = (
        f"At the same hyperparameters, for every row left out: mean and standard deviation of the latent function and "
        f"the predictive density of the observation, by each method against {labels[0]}; standardised units. Dashed: "
        f"both agree. As in figure 5 of {PAPER}."
    )
    return finish(figure, f"fixed-predictions-{study}", caption)


def _scatter(ax: Axes, reference: Array, values: Array, ends: tuple[float, float]) -> None:
    ax.plot(ends, ends, color="black", linewidth=0.7, linestyle="--")
    ax.plot(reference, values, ".", color="#0072B2", markersize=3.0, markeredgewidth=0.0)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _ends(values: Sequence[Array]) -> tuple[float, float]:
    """Return a range that has room for all finite values."""
    known = np.concatenate([each[np.isfinite(each)] for each in values])
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def times(arrays: Mapping[str, Any], study: str) -> Picture:
    """Return a panel a data set: a tick each configuration, a marker at the mean of those that all methods solve.

    Arrays: labels (M,), datasets (D,), seconds (D, M, C), NaN where there is no solution.
    """
    labels, seconds = [str(label) for label in arrays["labels"]], np.asarray(arrays["seconds"])
    lines = np.arange(len(labels))
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(seconds), labels, width=2.2)
        for ax, dataset, found in zip(axes, arrays["datasets"], seconds, strict=True):
            whole = np.isfinite(found).all(axis=0)
            ax.plot(found.ravel(), np.repeat(lines, found.shape[1]), "|", color="0.5", markersize=6)
            if whole.any():
                points(ax, found[:, whole].mean(axis=1), lines, 5.0)
            _failures(ax, found)
            ax.set_title(f"{dataset} ({found.shape[1]} configurations)")
            ax.set_xlabel("seconds of an inference")
            if np.isfinite(found).any():
                log_axis(ax)
                ax.xaxis.set_major_locator(LogLocator(numticks=5))
    caption = (
        "Wall time on one core of an inference at given hyperparameters. Ticks: one configuration each; markers: means "
        "over the configurations at which every method finds a solution; a number at the right of a panel: at how many "
        f"a method finds none. As the third row of table 1 of {PAPER}."
    )
    return finish(figure, f"fixed-times-{study}", caption)


def _failures(ax: Axes, found: Array) -> None:
    for line, count in enumerate(np.isnan(found).sum(axis=1)):
        if count:
            ax.annotate(
                f"{count}", (1.0, line), xycoords=ax.get_yaxis_transform(), xytext=(2, 0),
                textcoords="offset points", ha="left", va="center", fontsize=7,
            )  # fmt: skip


def relative(summary: Path) -> tuple[list[str], list[list[Any]], str] | None:
    """Return head, body and caption of the table of times relative to the first method's, None without a summary."""
    if not summary.exists():
        return None
    with summary.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    datasets, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("dataset", "method"))
    known = {(row["method"], row["dataset"]): float(row["relative"]) for row in rows}
    published_rows = {row["method"]: row for row in published.described_rows() if row["metric"] == METRIC}
    body = []
    for method in methods:
        shares = [known.get((method, dataset), np.nan) for dataset in datasets]
        printed = published_rows[method]["printed_mean"] if method in published_rows else "–"
        body.append([method, *(_share(share) for share in shares), _share(float(np.mean(shares))), item(printed)])
    source = next(iter(published_rows.values()))
    caption = (
        f"Times of an inference relative to {methods[0]}, means over the configurations that every method solves, and "
        f"their mean over data sets. Published: {source['citation'].strip()} ({source['protocol'].strip()})"
    )
    return ["method", *datasets, "mean", "published"], body, caption


def _share(value: float) -> Item:
    return item(f"{value:.2g}", value) if np.isfinite(value) else item("–", "")
