"""Figure of predictions at fixed hyperparameters, compared with Markov chains."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ep_bench.experiments.gp_t_2011 import PAPER
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

# Rows of panels: name of the array, title.
ROWS = {"mean": "mean of f", "deviation": "standard deviation of f", "log_density": "density of y"}


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one column of panels per method, each against the first method.

    The rows are mean and standard deviation of f, and density of y. Arrays: labels (M,); of method i mean_i,
    deviation_i, log_density_i (N,), NaN if it failed.
    """
    arrays = results.arrays
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
        "Predictions for all test points of the folds at the same hyperparameters: mean and standard deviation of the "
        f"latent function and predictive density of the observation, by each method against {labels[0]}; standardised "
        f"units. Dashed: both agree. As in figure 5 of {PAPER}."
    )
    return [finish(figure, f"fixed-predictions-{results.study}", caption)]


def _scatter(ax: Axes, reference: Array, values: Array, ends: tuple[float, float]) -> None:
    ax.plot(ends, ends, color="black", linewidth=0.7, linestyle="--")
    ax.plot(reference, values, ".", color="#0072B2", markersize=3.0, markeredgewidth=0.0)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _ends(values: Sequence[Array]) -> tuple[float, float]:
    """Return a range that contains all finite values, with a margin."""
    known = np.concatenate([each[np.isfinite(each)] for each in values])
    low, high = float(known.min()), float(known.max())
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 5; densities are compared with those of the chains."""
    arrays = results.arrays
    labels = [str(label) for label in arrays["labels"]]
    chains, *others = ({name: np.asarray(arrays[f"{name}_{i}"]) for name in ROWS} for i in range(len(labels)))
    by_label = dict(zip(labels[1:], others, strict=True))
    large = chains["log_density"] >= np.median(chains["log_density"])
    small = chains["log_density"] <= np.quantile(chains["log_density"], 0.1)
    found: dict[str, float] = {}
    errors: dict[str, dict[str, float]] = {name: {} for name in ROWS}
    for label, own in by_label.items():
        for name in ROWS:
            errors[name][label] = float(np.sqrt(np.nanmean((own[name] - chains[name]) ** 2)))
        gaps = own["log_density"] - chains["log_density"]
        found |= {
            f"error of means, {label}": errors["mean"][label],
            f"ratio of standard deviations, {label}": float(np.nanmean(own["deviation"] / chains["deviation"])),
            f"log density above the median, {label}": float(np.nanmean(gaps[large])),
            f"log density in the lowest decile, {label}": float(np.nanmean(gaps[small])),
        }
    words = {"mean": "means", "deviation": "standard deviations", "log_density": "log densities"}
    for name, word in words.items():
        best = min(error for label, error in errors[name].items() if label != "EP")
        found[f"error of {word}, EP relative to the best other"] = errors[name]["EP"] / best
    ratios = [found[f"ratio of standard deviations, {label}"] for label in ("LA", "VB")]
    return found | {"ratio of standard deviations, LA relative to VB": ratios[0] / ratios[1]}
