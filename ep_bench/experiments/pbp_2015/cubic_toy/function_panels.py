"""Panels of predictions over the input: mean, standard deviation, data and the true function."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import COLUMNS, STYLE, finish
from ep_bench.types import Array

WIDTH, LETTERS = 2.2, 32  # inches per panel, letters per line of its title
CAPTION = "mean (dashed), mean ± 3 standard deviations, noise included (shaded), true function (line), data (points)."


class FunctionPanel(NamedTuple):
    """Predictions of one method over a grid in original units: mean and standard deviation (G,) of an observation."""

    title: str
    mean: Array
    std: Array


class Truth(NamedTuple):
    """The grid and the true function (G,), and the training data (n,)."""

    grid: Array
    function: Array
    x: Array
    y: Array


def draw(panels: Sequence[FunctionPanel], truth: Truth, name: str, about: str) -> Picture:
    """Return one figure of panels with shared axes. Its caption starts with ``about``."""
    rows = math.ceil(len(panels) / COLUMNS)
    columns = math.ceil(len(panels) / rows)
    with mpl.rc_context(STYLE):
        width = WIDTH if columns > 1 else 4.6  # width of the legend
        figure = Figure(figsize=(max(0.6 + width * columns, 5.2), 0.6 + 0.8 * width * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for panel, ax in zip(panels, axes, strict=False):
            low, high = panel.mean - 3.0 * panel.std, panel.mean + 3.0 * panel.std
            ax.fill_between(truth.grid, low, high, color="0.85", linewidth=0, label="mean ± 3 sd")
            ax.plot(truth.grid, truth.function, color="black", linewidth=0.9, label="true function")
            ax.plot(truth.grid, panel.mean, color="#0072B2", linestyle="--", linewidth=1.5, label="mean")
            ax.plot(truth.x, truth.y, "o", color="black", markersize=2.6, label="data")
            ax.set_title("\n".join(textwrap.wrap(panel.title, LETTERS)))
        axes[0].set_xlim(truth.grid[0], truth.grid[-1])
        axes[0].set_ylim(_range(panels, truth))
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        figure.supxlabel("input x", fontsize=8)
        figure.supylabel("target y", fontsize=8)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), frameon=False)
    return finish(figure, name, about + CAPTION)


def _range(panels: Sequence[FunctionPanel], truth: Truth) -> tuple[float, float]:
    """Return the range of targets to show.

    It includes the true function and all data points. Wider bands extend it by at most 15 % on each side.
    """
    shown = (truth.function, truth.y)
    bottom, top = min(float(v.min()) for v in shown), max(float(v.max()) for v in shown)
    margin = 0.15 * (top - bottom) or 1.0
    low = min(bottom, max(bottom - margin, min(float((one.mean - 3.0 * one.std).min()) for one in panels)))
    high = max(top, min(top + margin, max(float((one.mean + 3.0 * one.std).max()) for one in panels)))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
