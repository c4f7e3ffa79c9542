"""Panels of predictions over one input: mean, standard deviation, data and, if known, the true function."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import COLUMNS, STYLE, finish
from ep_bench.types import Array

WIDTH, LETTERS = 2.2, 32  # inches per panel, letters per line of its title
CAPTION = "mean (dashed), mean ± 3 standard deviations, noise included (shaded), {truth}training data (points){test}."


class FunctionPanel(NamedTuple):
    """Predictions of one method over a grid, with its training and test data, all in original units.

    ``grid``, ``mean``, ``std`` (of an observation) and ``truth`` are (G,) arrays; ``x``, ``y`` (n,) are the training
    data, ``x_test``, ``y_test`` the test data.
    """

    title: str
    grid: Array
    mean: Array
    std: Array | None
    truth: Array | None
    x: Array
    y: Array
    x_test: Array
    y_test: Array


def draw(panels: Sequence[FunctionPanel], name: str, about: str) -> Picture:
    """Return one figure of panels with shared axes. Its caption starts with ``about``."""
    rows = math.ceil(len(panels) / COLUMNS)
    columns = math.ceil(len(panels) / rows)
    low, high = _range(panels)
    with mpl.rc_context(STYLE):
        width = WIDTH if columns > 1 else 4.6  # width of the legend
        figure = Figure(figsize=(max(0.6 + width * columns, 5.2), 0.6 + 0.8 * width * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        handles: dict[str, Any] = {}
        for panel, ax in zip(panels, axes, strict=False):
            _draw(ax, panel)
            ax.set_ylim(low, high)
            handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        figure.supxlabel("input x", fontsize=8)
        figure.supylabel("target y", fontsize=8)
        figure.legend(handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False)
    truth = "true function (line), " if any(panel.truth is not None for panel in panels) else ""
    test = " and test data (rings)" if any(len(panel.x_test) for panel in panels) else ""
    return finish(figure, name, about + CAPTION.format(truth=truth, test=test))


def _draw(ax: Axes, panel: FunctionPanel) -> None:
    if panel.std is not None:
        low, high = panel.mean - 3.0 * panel.std, panel.mean + 3.0 * panel.std
        ax.fill_between(panel.grid, low, high, color="0.85", linewidth=0, label="mean ± 3 sd")
    if panel.truth is not None:
        ax.plot(panel.grid, panel.truth, color="black", linewidth=0.9, label="true function")
    ax.plot(panel.grid, panel.mean, color="#0072B2", linestyle="--", linewidth=1.5, label="mean")
    ax.plot(panel.x, panel.y, "o", color="black", markersize=2.6, label="data")
    if len(panel.x_test):
        ax.plot(
            panel.x_test, panel.y_test, "o", color="black", markersize=3.6, markerfacecolor="white", label="test data"
        )
    ax.set_title("\n".join(textwrap.wrap(panel.title, LETTERS)))
    ax.set_xlim(panel.grid[0], panel.grid[-1])


def _range(panels: Sequence[FunctionPanel]) -> tuple[float, float]:
    """Return the range of targets to show.

    It includes the true function and all data points. Wider bands extend it by at most 15 % on each side.
    """
    shown = [values for p in panels for values in (p.truth, p.y, p.y_test) if values is not None and len(values)]
    bottom, top = min(float(v.min()) for v in shown), max(float(v.max()) for v in shown)
    margin = 0.15 * (top - bottom) or 1.0
    bands = [(p.mean, 0.0 * p.mean if p.std is None else 3.0 * p.std) for p in panels]
    low = min(bottom, max(bottom - margin, min(float((mean - band).min()) for mean, band in bands)))
    high = max(top, min(top + margin, max(float((mean + band).max()) for mean, band in bands)))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
