"""Figure of a noisy step: the latent function by each method, over all data and close to the discontinuity."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ep_bench.experiments.ep_nn_2014 import PAPER
from ep_bench.experiments.ep_nn_2014 import network_panels as panels
from ep_bench.experiments.record import Arrays, ExperimentResults, by_method
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish

CLOSE = 0.5  # units of x on each side of the discontinuity
STRIDE = 5  # elsewhere, every fifth point of the grid is drawn
MARGIN = 0.35  # units of y beyond the true function


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one column of panels per method: f over all data, and close to the discontinuity.

    Arrays: labels, unconverged (M,), grid, truth, mean_i, std_i (G,), x, y (n,); shaped (K,), shapes (D, M, K).
    """
    arrays = results.arrays
    labels = [str(label) for label in arrays["labels"]]
    grid, truth = np.asarray(arrays["grid"]), np.asarray(arrays["truth"])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(0.6 + 2.9 * len(labels), 5.2), 4.7), layout="constrained")
        axes = figure.subplots(2, len(labels), sharex="row", sharey=True, squeeze=False)
        for i, (label, column) in enumerate(zip(labels, axes.T, strict=True)):
            close = np.abs(grid) <= CLOSE
            for ax, shown in zip(column, (close | (np.arange(len(grid)) % STRIDE == 0), close), strict=True):
                _panel(ax, arrays, i, shown)
            column[0].set_title(f"({chr(97 + i)}) {label}")
            column[0].set_xlim(grid[0], grid[-1])
            column[1].set_xlim(-CLOSE, CLOSE)
            column[1].set_xlabel("input x")
        axes[0, 0].set_ylim(float(truth.min()) - MARGIN, float(truth.max()) + MARGIN)
        axes[0, 0].set_ylabel("target y, all data")
        axes[1, 0].set_ylabel("target y, close to 0")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=4, frameon=False, handlelength=2.6)
    return [finish(figure, f"discontinuity-{results.study}", _caption(arrays, labels))]


def _panel(ax: Axes, arrays: Arrays, place: int, shown: NDArray[np.bool_]) -> None:
    """Draw f at the points of the grid that are shown (G,), and the data."""
    grid, mean, std, truth = (
        np.asarray(arrays[name])[shown] for name in ("grid", f"mean_{place}", f"std_{place}", "truth")
    )
    panels.band(ax, grid, mean, std, truth)
    ax.plot(arrays["x"], arrays["y"], "o", color="black", markersize=2.4, label="data")
    ax.xaxis.set_major_locator(panels.ticks(5))
    ax.yaxis.set_major_locator(panels.ticks(5))


def _caption(arrays: Arrays, labels: list[str]) -> str:
    shapes, names = np.asarray(arrays["shapes"]), [str(name) for name in arrays["shaped"]]
    widths = "; ".join(
        f"{label} {shapes[0, i, names.index('fluctuation')]:.2g} and {shapes[0, i, names.index('width')]:.2g}"
        for i, label in enumerate(labels)
    )
    return (
        f"f by {' and '.join(labels)} from {len(arrays['y'])} noisy data points of a function with a discontinuity at "
        "0: mean, 95 % interval and true function; below, close to the discontinuity. Total variation of the mean "
        "beyond that of a monotone function, and distance over which it rises from 10 to 90 percent of the jump: "
        f"{widths}. {panels.ended_early(arrays)}As in figure 5 of {PAPER}, on data of our own."
    )


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 5, medians over the draws."""
    words = {"fluctuation": "fluctuation", "width of the step": "width", "error": "rmse"}
    found = {}
    for word, column in words.items():
        values = by_method(results.summary, f"{column}_median")
        found[f"{word}, NN-EP relative to GP"] = values["NN-EP"] / values["GP"]
    return found
