"""Figure of black-box alpha on two data points: variance against alpha, and the fits with the posterior."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.record import Arrays, ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish
from ep_bench.types import Array

# The posterior is drawn as a thick grey line behind the fits.
POSTERIOR: dict[str, Any] = {"color": "0.72", "linewidth": 3.2}
SMALL = 0.1  # alpha from which the fits differ from the posterior, if they do
EXAMPLES = {1: "example 1: x = (1, 0), (0, 1)", 2: "example 2: x = (1, -1), (-1, 1)"}


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure of two panels per example: fitted variance against alpha, and ellipses of one standard deviation.

    Arrays: grid (G,), alphas (A,), ellipses (E,); of example i: curve_i (G,), fitted_i (A,), mean_i (E, 2),
    covariance_i (E, 2, 2), posterior_mean_i (2,), posterior_covariance_i (2, 2).
    """
    arrays = results.arrays
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 5.9), layout="constrained")
        axes = figure.subplots(2, 2, gridspec_kw={"width_ratios": [1.15, 1.0]})
        for example, (left, right) in zip(EXAMPLES, axes, strict=True):
            _variances(left, arrays, example)
            _ellipses(right, arrays, example)
        curves, contours = axes[0, 0].get_legend_handles_labels(), axes[0, 1].get_legend_handles_labels()
        handles, labels = (one + other for one, other in zip(curves, contours, strict=True))
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, handlelength=3.2)
    caption = (
        "Linear regression on two data points with targets 0 by black-box alpha. Left: diagonal element of the fitted "
        "covariance against alpha, closed form (line) and fits (points). Right: mean and ellipse of one "
        "standard deviation of the posterior (thick, grey) and of the fits with diagonal covariance. As in figures 1 "
        "to 4 of the supplement of Hernández-Lobato and others (2016)."
    )
    return [finish(figure, f"alpha-linear-{results.study}", caption)]


def _variances(ax: Axes, arrays: Arrays, example: int) -> None:
    ax.plot(arrays["grid"], arrays[f"curve_{example}"], color="black", linewidth=1.0, label="closed form")
    ax.plot(
        arrays["alphas"], arrays[f"fitted_{example}"], "o", color="#0072B2", fillstyle="none", markersize=5, label="fit"
    )
    ax.set_title(EXAMPLES[example])
    ax.set_xlabel("alpha")
    ax.set_ylabel("fitted variance of a weight")
    ax.set_xlim(-0.04, 2.04)


def _ellipses(ax: Axes, arrays: Arrays, example: int) -> None:
    truth = np.asarray(arrays[f"posterior_covariance_{example}"])
    ax.plot(*ellipse(np.asarray(arrays[f"posterior_mean_{example}"]), truth), **POSTERIOR, label="posterior")
    fits = zip(arrays["ellipses"], arrays[f"mean_{example}"], arrays[f"covariance_{example}"], strict=True)
    for place, (alpha, mean, covariance) in enumerate(fits):
        colour, stroke, width = STROKES[place % len(STROKES)]
        label = f"alpha = {float(alpha):g}"
        ax.plot(*ellipse(mean, covariance), color=colour, linestyle=stroke, linewidth=width, label=label)
    ax.plot(*arrays[f"posterior_mean_{example}"], "+", color="black", markersize=6)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_title(EXAMPLES[example])
    ax.set_xlabel("first weight")
    ax.set_ylabel("second weight")


def ellipse(mean: Array, covariance: Array) -> Array:
    """Return points (2, 181) at one standard deviation from mean (2,), for covariance (2, 2)."""
    values, vectors = np.linalg.eigh(covariance)
    turn = np.linspace(0.0, 2.0 * math.pi, 181)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    return np.asarray(mean[:, None] + vectors @ (np.sqrt(values)[:, None] * circle))


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return differences from the closed forms, and of each example how the variance depends on alpha."""
    differences = [float(row["relative_difference"]) for row in results.summary if row.get("relative_difference")]
    found = {"largest relative difference": max(differences, default=math.nan)}
    return found | {
        f"{name}, example {example}": value
        for example in EXAMPLES if results.arrays
        for name, value in _of_example(results.arrays, example).items()
    }  # fmt: skip


def _of_example(arrays: Arrays, example: int) -> dict[str, float]:
    """Return how the fitted variance increases, and how fits differ from the posterior, relative to its variance."""
    order = np.argsort(arrays["alphas"])
    alphas, fitted, full = (
        np.asarray(arrays[name])[order] for name in ("alphas", f"fitted_{example}", f"full_{example}")
    )
    posterior = np.asarray(arrays[f"posterior_covariance_{example}"])
    apart = np.abs(full - posterior).max(axis=(1, 2)) / posterior[0, 0]
    return {
        "smallest increase of the variance": float(np.diff(fitted).min()),
        "smallest variance relative to the variational one": float(fitted[0] * np.linalg.inv(posterior)[0, 0]),
        "smallest variance relative to the posterior": float(fitted[0] / posterior[0, 0]),
        "difference at the smallest alpha, full covariance": float(apart[0]),
        "smallest difference for alpha of 0.1 and more, full covariance": float(apart[alphas >= SMALL].min()),
    }
