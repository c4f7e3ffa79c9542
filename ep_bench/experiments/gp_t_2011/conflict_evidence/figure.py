"""Figure of two contradicting observations: contours of the log evidence over two hyperparameters."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy import ndimage

from ep_bench.experiments.gp_t_2011 import EXAMPLES, PAPER
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

BELOW = np.array([64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0])  # contours: nats below the highest annealed value
SHADES = ("1.0", "0.96", "0.91", "0.85", "0.78", "0.7", "0.6")
NEAR = 8.0  # nats below the highest annealed value
MARKS = ("x", "o")  # markers of the highest evidence, by power


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one row of panels per example: one panel per power of the likelihood, one of annealing.

    Arrays: lengthscales (L,), magnitudes (M,), fractions (F,); of example e: annealed_e (M, L); of power i
    evidence_e_i (M, L), NaN without a solution, swept_e_i (M, L), mode_e_i (2,).
    """
    arrays = results.arrays
    fractions = [float(eta) for eta in arrays["fractions"]]
    grid = np.asarray(arrays["lengthscales"]), np.asarray(arrays["magnitudes"])
    columns = len(fractions) + 1
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.6 + 2.05 * columns, 5.2), layout="constrained")
        axes = figure.subplots(len(EXAMPLES), columns, squeeze=False, sharex=True, sharey=True)
        for number, row in zip(EXAMPLES, axes, strict=True):
            annealed = np.asarray(arrays[f"annealed_{number}"])
            levels = annealed.max() - BELOW
            for i, (eta, ax) in enumerate(zip(fractions, row, strict=False)):
                values = np.asarray(arrays[f"evidence_{number}_{i}"])
                _contours(ax, grid, values, levels)
                _failures(ax, grid, values, np.asarray(arrays[f"swept_{number}_{i}"]))
                ax.plot(*arrays[f"mode_{number}_{i}"], **_mark(i))
                error = np.nanmean(np.abs(values - annealed))
                ax.set_title(
                    f"example {number}: EP{'' if eta == 1.0 else f', η = {eta:g}'}\nmean error {error:.2g} nats"
                )
            _contours(row[-1], grid, annealed, levels)
            for i in range(len(fractions)):
                row[-1].plot(*arrays[f"mode_{number}_{i}"], **_mark(i))
            row[-1].set_title(f"example {number}:\nannealed importance sampling")
            row[0].set_ylabel("magnitude (variance)")
        for ax in axes[-1]:
            ax.set_xlabel("lengthscale")
        for ax in axes.ravel():
            _log_axes(ax, *grid)
        handles = [Line2D([], [], **_mark(i), label=f"highest, η = {eta:g}") for i, eta in enumerate(fractions)]
        handles.append(Line2D([], [], **_dot(), label="sequential sweeps do not converge"))
        handles.append(Line2D([], [], **_cross(), label="no solution"))
        figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    steps = ", ".join(f"{step:g}" for step in BELOW[::-1])
    caption = (
        "Log evidence of two contradicting observations over lengthscale and magnitude, with fixed noise parameters: "
        "by expectation propagation with powers η of the likelihood, and by annealed importance sampling. Contours in "
        f"all panels of a row are {steps} nats below the highest annealed value. Mean error: mean absolute difference "
        f"from annealed importance sampling. As in figure 4 of {PAPER}, on examples of our own."
    )
    return [finish(figure, f"conflict-evidence-{results.study}", caption)]


def _contours(ax: Axes, grid: tuple[Array, Array], values: Array, levels: Array) -> None:
    shown = np.ma.masked_invalid(values)
    ax.contourf(*grid, shown, levels=[*levels, np.inf], colors=SHADES)
    ax.contour(*grid, shown, levels=levels, colors="0.25", linestyles="solid", linewidths=0.6)


def _failures(ax: Axes, grid: tuple[Array, Array], values: Array, swept: Array) -> None:
    x, y = np.meshgrid(*grid)
    solved = np.isfinite(values)
    robust_only = solved & ~swept.astype(bool)
    ax.plot(x[robust_only], y[robust_only], **_dot())
    ax.plot(x[~solved], y[~solved], **_cross())


def _dot() -> dict[str, Any]:
    return {"marker": ".", "color": "black", "linestyle": "none", "markersize": 3.0}


def _cross() -> dict[str, Any]:
    return {"marker": "+", "color": "#D55E00", "linestyle": "none", "markersize": 5.0}


def _mark(place: int) -> dict[str, Any]:
    look = {"color": "#0072B2", "linestyle": "none", "markersize": 7.0, "markeredgewidth": 1.8, "zorder": 5}
    return look | {"marker": MARKS[place], "fillstyle": "none"}


def _log_axes(ax: Axes, lengthscales: Array, magnitudes: Array) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(lengthscales[0], lengthscales[-1])
    ax.set_ylim(magnitudes[0], magnitudes[-1])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if axis is ax.xaxis else (1.0, 3.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 4; errors are those within NEAR nats of the maximum."""
    arrays, names = results.arrays, ("EP", "fractional EP")
    lengthscales = np.asarray(arrays["lengthscales"])
    missing = sum(int(np.isnan(arrays[f"evidence_{number}_0"]).sum()) for number in EXAMPLES)
    found = {"points without a solution by EP": float(missing)}
    for number in EXAMPLES:
        annealed, swept = np.asarray(arrays[f"annealed_{number}"]), np.asarray(arrays[f"swept_{number}_0"], dtype=bool)
        near = annealed > annealed.max() - NEAR
        for i, name in enumerate(names):
            errors = (np.asarray(arrays[f"evidence_{number}_{i}"]) - annealed)[near]
            found[f"mean error, {name}, example {number}"] = float(np.nanmean(errors))
            found[f"mean absolute error, {name}, example {number}"] = float(np.nanmean(np.abs(errors)))
        mode = np.asarray(arrays[f"mode_{number}_0"])
        below, column, row = lengthscales < mode[0], *map(_nearest, (lengthscales, arrays["magnitudes"]), mode)
        found |= {
            f"failures below the mode, example {number}": float((~swept[:, below]).sum()),
            f"failures above the mode, example {number}": float((~swept[:, ~below]).sum()),
            f"separate areas of failures, example {number}": float(ndimage.label(~swept)[1]),
            f"convergence next to the mode, example {number}": float(swept[row, column]),
        }
    return found


def _nearest(grid: Array, value: float) -> int:
    return int(np.abs(np.log(np.asarray(grid) / value)).argmin())
