"""Figure of the mountain car: data, predictions of each method, and the layers of a deep Gaussian process."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.record import Arrays, ExperimentResults, by_method
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

WIDTH, HEIGHT = 2.0, 1.85  # inches of a panel, axis labels included
VALUES, LATENT = "viridis", "cividis"  # both of monotone lightness, readable in grey
LETTERS = 24  # per line of a panel's title
LINES = 6  # contours of a latent function
VALUE_LINES = (-100, -80, -60, -40, -20)


def draw(results: ExperimentResults) -> list[Picture]:
    """Return the figure: true values, data and predictions above, the layers of the deep method below.

    Arrays: states (n, 2), y (n,); position, velocity (G,), truth, cliff (G, G); labels (M,), mean_i (G, G); checked,
    check (C,). With a deep method: deep, hidden (2, G, G), first, second (H,), top (H, H), reached (n, 2).
    """
    arrays = results.arrays
    labels = [str(label) for label in arrays["labels"]]
    deep, across = "deep" in arrays, max(2 + len(labels), 4)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.9 + across * WIDTH, 0.35 + (1 + deep) * HEIGHT), layout="constrained")
        axes = figure.subplots(1 + deep, across, squeeze=False)
        scale = mpl.colors.Normalize(float(np.min(arrays["truth"])), 0.0)
        _values(axes[0, 0], arrays, arrays["truth"], "true value", scale)
        _data(axes[0, 1], arrays, scale)
        for i, label in enumerate(labels):
            _values(axes[0, 2 + i], arrays, arrays[f"mean_{i}"], f"{label}: mean", scale)
        axes[0, 0].set_ylabel("velocity")
        if deep:
            _layers(axes[1], arrays, scale)
        for ax in axes.ravel():
            if not ax.has_data():
                ax.set_axis_off()
        shades = mpl.cm.ScalarMappable(scale, VALUES)
        figure.colorbar(shades, ax=axes[0].tolist(), label="value (minus steps)", fraction=0.05, pad=0.01)
    return [finish(figure, f"mountain-car-{results.study}", _caption(arrays, labels))]


def _image(ax: Axes, x: Array, y: Array, z: Array, scale: Any, shades: str) -> None:
    """Draw z (X, Y) over the cells around x (X,) and y (Y,)."""
    (left, right), (low, high) = ((a[0] - 0.5 * (a[1] - a[0]), a[-1] + 0.5 * (a[1] - a[0])) for a in (x, y))
    extent = (float(left), float(right), float(low), float(high))
    ax.imshow(z.T, origin="lower", extent=extent, aspect="auto", cmap=shades, norm=scale, interpolation="none")
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7)


def _title(ax: Axes, text: str) -> None:
    ax.set_title("\n".join(textwrap.wrap(text, LETTERS)))


def _lines(ax: Axes, x: Array, y: Array, z: Array, levels: Any) -> None:
    if np.ptp(z) > 0.0:
        ax.contour(x, y, z.T, levels=levels, colors="white", linewidths=0.5, linestyles="solid")


def _values(ax: Axes, arrays: Arrays, z: Array, title: str, scale: Any) -> None:
    x, y = arrays["position"], arrays["velocity"]
    _image(ax, x, y, z, scale, VALUES)
    _lines(ax, x, y, z, VALUE_LINES)
    _title(ax, title)
    ax.set_xlabel("position")


def _data(ax: Axes, arrays: Arrays, scale: Any) -> None:
    states = arrays["states"]
    ax.scatter(
        states[:, 0], states[:, 1], c=arrays["y"], cmap=VALUES, norm=scale, s=7, linewidths=0.2, edgecolors="0.3"
    )
    _title(ax, f"{len(states)} data points")
    ax.set_xlabel("position")
    ax.set_xlim(-1.2, 0.5)
    ax.set_ylim(-0.07, 0.07)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7)


def _layers(axes: Any, arrays: Arrays, scale: Any) -> None:
    """Draw both functions of the first layer, the second layer over its hidden space with the data, and the error."""
    label = arrays["labels"][int(arrays["deep"])]
    for place, ax in enumerate(axes[:2]):
        x, y, z = arrays["position"], arrays["velocity"], arrays["hidden"][place]
        _image(ax, x, y, z, None, LATENT)
        _lines(ax, x, y, z, LINES)
        _title(ax, f"{label}, layer 1: h{place + 1}")
        ax.set_xlabel("position")
    axes[0].set_ylabel("velocity")
    top = axes[2]
    _image(top, arrays["first"], arrays["second"], arrays["top"], scale, VALUES)
    _lines(top, arrays["first"], arrays["second"], arrays["top"], VALUE_LINES)
    top.plot(*np.asarray(arrays["reached"]).T, ".", color="black", markersize=1.6, markeredgewidth=0)
    _title(top, f"{label}, layer 2: value")
    top.set_xlabel("h1")
    top.set_ylabel("h2", labelpad=0)
    wrong = axes[3]
    error = np.abs(arrays[f"mean_{int(arrays['deep'])}"] - arrays["truth"])
    _image(wrong, arrays["position"], arrays["velocity"], error, None, "Greys")
    _title(wrong, f"{label}: error, up to {error.max():.0f}")
    wrong.set_xlabel("position")


def _caption(arrays: Arrays, labels: list[str]) -> str:
    check = dict(zip((str(name) for name in arrays["checked"]), arrays["check"].tolist(), strict=True))
    text = (
        f"Value of the mountain car's states (minus the number of steps to the goal) from {len(arrays['y'])} noisy "
        f"evaluations (above; the colour is the target) by {', '.join(labels)}. All values have one colour scale; "
        "contours are 20 steps apart. "
    )
    if "deep" in arrays:
        text += (
            "Below: means of both functions of the first layer over the states, mean of the second layer over the "
            "hidden space (points: hidden values of the data), and absolute error of the prediction. "
        )
    return text + (
        f"Value iteration on {check['nodes']:.0f} × {check['nodes']:.0f} nodes: {check['sweeps']:.0f} sweeps, with a "
        f"largest change of {check['change']:.1g} in the last. Mean difference from the values on half as many nodes "
        f"per axis: {check['refinement']:.2g}; from minus the steps of greedy drivers, which are the values shown: "
        f"{check['driven']:.2g}. Drivers that follow the coarser values take {check['lost']:.2g} steps more. As in "
        "figure 1 of Bui and others (2016), which states neither the data nor the noise."
    )


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return scores near the cliff: errors as ratios, log-likelihoods as differences."""
    scores = {column: by_method(results.summary, column) for column in ("rmse_cliff", "rmse_elsewhere", "ll_cliff")}
    errors = scores["rmse_cliff"]
    found = {f"error relative to elsewhere, {name}": errors[name] / scores["rmse_elsewhere"][name] for name in errors}
    for deep, other in itertools.permutations(errors, 2):
        found[f"error of {deep} relative to {other}"] = errors[deep] / errors[other]
        found[f"log-likelihood of {deep} minus {other}"] = scores["ll_cliff"][deep] - scores["ll_cliff"][other]
    return found
