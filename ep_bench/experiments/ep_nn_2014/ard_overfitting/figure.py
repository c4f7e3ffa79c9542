"""Figure of two relevant inputs: mean surfaces, network weights, and the weaker input's fraction of variation."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ep_bench.experiments.ep_nn_2014 import PAPER
from ep_bench.experiments.ep_nn_2014 import network_panels as panels
from ep_bench.experiments.ep_nn_2014.ard_overfitting import PRUNED, USED
from ep_bench.experiments.record import Arrays, ExperimentResults, by_method
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

MARKERS = ("^", "o", "s")  # of the clusters
SHADES, LEVELS = "viridis", 11  # of monotone lightness, so that it is readable in grey
FLOOR = 1e-4  # fractions below are drawn at this value


def draw(results: ExperimentResults) -> list[Picture]:
    """Return the figure: one mean surface per method and the fractions above, the network's weights below.

    Arrays: labels, unconverged (M,); x (n, 2), y, cluster (n,); first, second (G,); mean_i (G, G); shares (D, M). With
    a finite network: network, linear, weights, weights_std (K, 3), outputs, outputs_std (K + 1,).
    """
    arrays = results.arrays
    labels = [str(label) for label in arrays["labels"]]
    drawn = "weights" in arrays
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.9 + 2.15 * (len(labels) + 1), 2.6 + 2.2 * drawn), layout="constrained")
        parts = figure.subfigures(1 + drawn, 1, height_ratios=[2.5, 2.1][: 1 + drawn], squeeze=False)[:, 0]
        upper = parts[0].subplots(1, len(labels) + 1, width_ratios=[*[1.0] * len(labels), 0.8])
        levels = _levels(arrays, len(labels))
        for i, (label, ax) in enumerate(zip(labels, upper, strict=False)):
            _surface(ax, arrays, np.asarray(arrays[f"mean_{i}"]), levels)
            ax.set_title(f"({chr(97 + i)}) {label}")
        upper[0].set_ylabel("input x2")
        shades = mpl.cm.ScalarMappable(mpl.colors.Normalize(levels[0], levels[-1]), SHADES)
        values = panels.ticks(6).tick_values(levels[0], levels[-1])
        inside = values[(values >= levels[0]) & (values <= levels[-1])]
        surfaces = upper[: len(labels)].tolist()
        parts[0].colorbar(shades, ax=surfaces, label="mean of f (unit of y)", pad=0.02, ticks=inside)
        upper[-1].set_title(f"({chr(97 + len(labels))}) all draws")
        _shares(upper[-1], np.asarray(arrays["shares"]), labels)
        if drawn:
            _weights(parts[1].subplots(1, 2, width_ratios=[1.8, 1.0]), arrays, labels)
    return [finish(figure, f"ard-overfitting-{results.study}", _caption(arrays, labels, drawn=drawn))]


def _levels(arrays: Arrays, count: int) -> Array:
    """Return the levels of all contours, from the minimum to the maximum mean of f."""
    means = np.concatenate([np.ravel(arrays[f"mean_{i}"]) for i in range(count)])
    known = means[np.isfinite(means)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return np.asarray(MaxNLocator(LEVELS).tick_values(low, max(high, low + 1e-3)))


def _surface(ax: Axes, arrays: Arrays, mean: Array, levels: Array) -> None:
    x, cluster = np.asarray(arrays["x"]), np.asarray(arrays["cluster"])
    grid = (arrays["first"], arrays["second"])
    if np.isfinite(mean).all():
        ax.contourf(*grid, mean.T, levels=levels, cmap=SHADES, vmin=levels[0], vmax=levels[-1])
        ax.contour(*grid, mean.T, levels=levels, colors="white", linewidths=0.5, linestyles="solid")
    for i, marker in enumerate(MARKERS):
        rows = x[cluster == i]
        ax.plot(*rows.T, marker, color="black", markerfacecolor="white", markersize=3.4, mew=0.7, clip_on=False)
    ax.set_xlabel("input x1")
    ax.locator_params(nbins=4)


def _shares(ax: Axes, shares: Array, labels: list[str]) -> None:
    """Draw the weaker input's fractions (D, M): one line per draw over the methods, the first draw in black."""
    places = np.arange(len(labels))
    for draw, values in reversed(list(enumerate(np.maximum(shares, FLOOR)))):
        colour, width, order = ("black", 1.4, 3) if draw == 0 else ("0.65", 0.7, 2)
        ax.plot(places, values, "o-", color=colour, linewidth=width, markersize=3.0, zorder=order, clip_on=False)
    for level in (PRUNED, USED):
        ax.axhline(level, color="0.3", linestyle=":", linewidth=0.8, zorder=1)
    ax.set_yscale("log")
    ax.set_ylim(FLOOR, 0.6)
    ax.set_yticks([FLOOR, 1e-3, PRUNED, USED, 0.5])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"≤ {value:g}" if value <= FLOOR else f"{value:g}"))
    ax.minorticks_off()
    ax.set_xticks(places, labels)
    ax.set_xlim(-0.35, len(labels) - 0.65)
    ax.set_ylabel("fraction of the weaker input")


def _weights(axes: Any, arrays: Arrays, labels: list[str]) -> None:
    """Draw the input weights, three per hidden unit with the bias last, and the output weights."""
    left, right = axes
    mean, std = np.asarray(arrays["weights"]), np.asarray(arrays["weights_std"])
    panels.intervals(left, mean, std, [str(k + 1) for k in range(len(mean))], marks=[mean.shape[1] - 1])
    label, place = labels[int(arrays["network"])], len(labels) + 1
    left.set_title(f"({chr(97 + place)}) {label}: input weights")
    left.set_xlabel("hidden unit, each with the weights of x1, x2 and bias")
    left.set_ylabel("weight (unit of 1/x)")
    panels.outputs(right, arrays)
    right.set_title(f"({chr(98 + place)}) {label}: output weights")
    right.set_ylabel("weight (unit of y)")


def _caption(arrays: Arrays, labels: list[str], *, drawn: bool) -> str:
    shares = np.asarray(arrays["shares"])
    counts = ", ".join(
        f"{label} {int(np.sum(shares[:, i] < PRUNED))} and {int(np.sum(shares[:, i] > USED))}"
        for i, label in enumerate(labels)
    )
    text = (
        f"Mean of f over two inputs by {' and '.join(labels)} from {len(arrays['y'])} data points in three clusters "
        "(triangles 1, rings 0, squares 0.8; noise 0.1), which steps in either input explain. All draws: fraction of "
        "the variation of the mean over the range of the data that is along the weaker input. One line per draw; the "
        f"draw of the other panels is black. Of {len(shares)} draws below {PRUNED:g} (pruned) and above {USED:g} (both "
        f"used): {counts}. "
    )
    if drawn:
        linear = int(arrays["linear"])
        units = "" if linear == 0 else ", unit 1 is linear" if linear == 1 else f", units 1 to {linear} are linear"
        text += (
            f"Below: 95 % intervals of the finite network's weights{units}. A marker is filled if the interval "
            "excludes 0; squares are biases. "
        )
    text += panels.ended_early(arrays)
    return text + f"As in figure 2 of {PAPER}, on data of our own; original units."


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 2."""
    pruned, used, draws = (by_method(results.summary, column) for column in ("pruned", "used", "draws"))
    labels = [str(label) for label in results.arrays["labels"]]
    slopes = {label: _steepest(results.arrays, i) for i, label in enumerate(labels)}
    return {
        "draws with a pruned input, GP-ARD": pruned["GP-ARD"] / draws["GP-ARD"],
        "draws with both inputs used, NN-EP": used["NN-EP"] / draws["NN-EP"],
        "steepest slope of NN-EP relative to GP-ARD": slopes["NN-EP"] / slopes["GP-ARD"],
    }


def _steepest(arrays: Arrays, place: int) -> float:
    """Return the largest slope of a mean surface along either input."""
    mean = np.asarray(arrays[f"mean_{place}"])
    return max(float(np.abs(np.diff(mean, axis=axis)).max() / np.diff(arrays[name])[0])
               for axis, name in enumerate(("first", "second")))  # fmt: skip
