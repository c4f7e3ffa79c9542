"""Figure of predictions at fixed hyperparameters, compared with Markov chains."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ep_bench.experiments.gp_t_2011 import PAPER
from ep_bench.experiments.record import Claim, ExperimentResults, by_method, in_words
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


def claims(results: ExperimentResults) -> list[Claim]:
    """Return the statement of the paper on its figure 5."""
    gaps, ratios = (by_method(results.summary, name) for name in ("mean_rms", "deviation_ratio"))
    others = {name: gap for name, gap in gaps.items() if name not in {"EP", "MCMC"}}
    if "EP" not in gaps or not others:
        return []
    holds = gaps["EP"] < min(others.values()) and all(ratios[name] < ratios["EP"] for name in others)
    text = "EP is the most accurate, and the other approximations underestimate standard deviations"
    shown = {name: ratio for name, ratio in ratios.items() if name != "MCMC"}
    return [Claim(text, holds, f"standard deviations relative to those of chains are {in_words(shown)}")]
