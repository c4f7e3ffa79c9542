"""Figures of bands along a line through a gap: one panel per method, over the band of the reference."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.record import ExperimentResults, uses
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.numbers import plain_ticks
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

COLUMNS = 4
BEYOND = 0.4  # heights of the reference's bands that a panel shows above and below them
CAPTION = (
    "Posterior of the output of the {network} network on {dataset}, without noise, along a line through a gap in the "
    "data (between the dotted lines): 95 % band and mean of each method (coloured), over the 95 % band of long chains "
    "(grey). Wider bands are outside the panel. Known variances of noise and weights; largest R-hat: {r_hat}."
)


def draw(results: ExperimentResults) -> list[Picture]:
    """Return one figure per posterior."""
    names = [name.removesuffix("/levels") for name in results.arrays if name.endswith("/levels")]
    return [_picture(results, name) for name in names]


def _picture(results: ExperimentResults, name: str) -> Picture:
    network, dataset = name.split("/")
    places, inside, labels, levels = (
        np.asarray(results.arrays[f"{name}/{one}"]) for one in ("places", "inside", "labels", "levels")
    )
    styles = method_styles(labels[1:].tolist(), uses(results.options))
    rows = math.ceil(len(styles) / COLUMNS)
    exact = _band(levels[0])
    span = float(exact.max() - exact.min())
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 0.5 + 1.25 * rows), layout="constrained")
        axes = figure.subplots(rows, min(COLUMNS, len(styles)), sharex=True, sharey=True, squeeze=False).ravel()
        for (label, style), values, ax in zip(styles.items(), levels[1:], axes, strict=False):
            _panel(ax, places, exact, values, style)
            ax.set_title(label)
            for edge in places[inside][[0, -1]]:
                ax.axvline(edge, color="0.4", linewidth=0.6, linestyle=":")
        for ax in axes[max(len(styles) - COLUMNS, 0) : len(styles)]:  # the last of each column
            ax.tick_params(labelbottom=True)
        for ax in axes[len(styles) :]:
            ax.set_axis_off()
        axes[0].set(xlim=places[[0, -1]], ylim=(float(exact.min()) - BEYOND * span, float(exact.max()) + BEYOND * span))
        plain_ticks(axes[0].xaxis, axes[0].yaxis)
        figure.supxlabel("input with the gap", fontsize=8)
        figure.supylabel("output", fontsize=8)
    r_hat = next(row["r_hat"] for row in results.summary if (row["network"], row["dataset"]) == (network, dataset))
    caption = CAPTION.format(network=network, dataset=dataset, r_hat=r_hat)
    return finish(figure, f"bands-{results.study}-{network}-{dataset}", caption)


def _panel(ax: Axes, places: Array, exact: Array, levels: Array, style: MethodStyle) -> None:
    """Draw the bands of the reference (2, G) and of a method (LEVELS, G) at ``places`` (G,)."""
    ax.fill_between(places, *exact, color="0.8", linewidth=0)
    for edge in _band(levels):
        ax.plot(places, edge, color=style.colour, linewidth=0.9)
    ax.plot(places, levels.mean(axis=0), color=style.colour, linewidth=0.7, linestyle="--")


def _band(levels: Array) -> Array:
    """Return the lower and upper ends (2, G) of the band of 95 %, between the outermost of LEVELS = 40 intervals."""
    return np.array([levels[:2].mean(axis=0), levels[-2:].mean(axis=0)])
