"""Two contradicting observations: tilted distributions, and expectation propagation sweep by sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish
from ep_bench.types import Array

PAPER = "Jylänki and others (2011)"
LEVELS = (0.01, 0.1, 0.3, 0.6, 0.9)  # of contours, parts of the highest point
LOW = (1e-4, 1e-3, 0.01, 0.1, 0.6)  # those of likelihoods, whose tails are long
SHADES = ("0.9", "0.8", "0.68", "0.55", "0.42")
BLUE, ORANGE = "#0072B2", "#D55E00"
ABOVE, BELOW = 4.0, 2.0  # nats about a scheme's best end that are shown
COLUMNS = 3


def tilted(arrays: Mapping[str, Any], study: str) -> Picture:
    """Return two panels a power: what is multiplied, and the product.

    Arrays: first, second (P,); marginal (P, P), f1 down; y (2,); fractions (F,); likelihoods_i (2, P).
    """
    fractions = np.asarray(arrays["fractions"])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 0.7 + 2.5 * len(fractions)), layout="constrained")
        axes = figure.subplots(len(fractions), 2, sharex=True, sharey=True, squeeze=False)
        for i, (eta, (left, right)) in enumerate(zip(fractions, axes, strict=True)):
            grid, q = (arrays["first"], arrays["second"]), np.asarray(arrays["marginal"])
            likelihoods = np.outer(*arrays[f"likelihoods_{i}"])
            _shades(left, grid, likelihoods, LOW)
            _contours(left, grid, q, BLUE, "dashed")
            _shades(right, grid, q * likelihoods, LEVELS)
            _contours(right, grid, q * likelihoods, "black", "solid")
            left.set_ylabel(f"η = {float(eta):g}\nlatent value f2")
        axes[0, 0].set_title("likelihoods and q(f1, f2 | y3, ..., yn)")
        axes[0, 1].set_title("tilted distribution")
        for ax in axes[-1]:
            ax.set_xlabel("latent value f1")
        for ax in axes.ravel():
            _observed(ax, np.asarray(arrays["y"]))
        handles = [
            Patch(color=SHADES[2], label="likelihoods to the power η"),
            Line2D([], [], color=BLUE, linestyle="dashed", label="q of the other observations"),
            Line2D([], [], color="0.35", linestyle=":", linewidth=0.9, label="y1, y2"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    caption = (
        "Two contradicting observations y1 and y2, as their sites meet them in expectation propagation. Left: the "
        "approximate distribution of the latent values f1 and f2 after one undamped round over the sites of all other "
        "observations (dashed), and the likelihoods of both to the power η (grey). Right: their product, which the "
        f"Gaussian of the sites must match. Contours at {_listed(LEVELS)} of the highest point, shades of the "
        f"likelihoods at {_listed(LOW)}; in the unit of y. As in figure 2 of {PAPER}, on an example of our own."
    )
    return finish(figure, f"conflict-tilted-{study}", caption)


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def _shades(ax: Axes, grid: tuple[Array, Array], values: Array, parts: Sequence[float]) -> None:
    levels = [*(part * values.max() for part in parts), math.inf]
    ax.contourf(*grid, values.T, levels=levels, colors=SHADES)


def _contours(ax: Axes, grid: tuple[Array, Array], values: Array, colour: str, stroke: str) -> None:
    levels = [level * values.max() for level in LEVELS]
    ax.contour(*grid, values.T, levels=levels, colors=colour, linestyles=stroke, linewidths=0.9)


def _observed(ax: Axes, y: Array) -> None:
    look: dict[str, Any] = {"color": "0.35", "linestyle": ":", "linewidth": 0.9}
    ax.axvline(y[0], **look)
    ax.axhline(y[1], **look)
    ax.set_aspect("equal")


def convergence(arrays: Mapping[str, Any], study: str) -> Picture:
    """Return two panels a scheme: the negative log evidence after each sweep, and the precisions of four sites.

    Arrays: labels (M,); of scheme i over its S sweeps: log_evidence_i (S,), precisions_i (S, 4), stage_i (S,).
    """
    labels = [str(label) for label in arrays["labels"]]
    columns = min(COLUMNS, len(labels))
    rows = math.ceil(len(labels) / columns)
    energies = [-np.asarray(arrays[f"log_evidence_{i}"]) for i in range(len(labels))]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.5 + 2.1 * columns, 0.7 + 2.9 * rows), layout="constrained")
        axes = figure.subplots(2 * rows, columns, squeeze=False)
        for i, (label, energy) in enumerate(zip(labels, energies, strict=True)):
            row, column = divmod(i, columns)
            upper, lower = axes[2 * row, column], axes[2 * row + 1, column]
            upper.set_title(f"({chr(97 + i)}) {label}")
            _energy(upper, energy, _ends(energies))
            _precisions(lower, np.asarray(arrays[f"precisions_{i}"]))
            for ax in (upper, lower):
                _sweeps(ax, np.asarray(arrays[f"stage_{i}"]))
            if column == 0:
                upper.set_ylabel("−log Z (nats)")
                lower.set_ylabel("site precision")
        for ax in (
            axes.ravel()[2 * columns * (rows - 1) :].reshape(2, columns)[:, (len(labels) - 1) % columns + 1 :].ravel()
        ):
            ax.set_axis_off()
        handles, names = axes[1, 0].get_legend_handles_labels()
        handles.append(Line2D([], [], color=ORANGE, marker="|", linestyle="none", markersize=6))
        figure.legend(handles, [*names, "−log Z not defined"], loc="outside upper center", ncols=5, frameon=False)
    caption = (
        "Expectation propagation on two contradicting observations: −log Z of the approximation after each sweep, and "
        "the precisions of the sites of y1 and y2, which contradict each other, and of their neighbours y3 and y4 "
        "(logarithmic beyond ±1). Ticks at the bottom: sweeps after which a cavity is improper, so that Z is not "
        f"defined. A vertical line: another kind of updates begins. As in figure 3 of {PAPER}, on an example of our "
        "own."
    )
    return finish(figure, f"conflict-convergence-{study}", caption)


def _ends(energies: list[Array]) -> tuple[float, float]:
    """Return the range of −log Z to show: about the last values that the schemes reach."""
    last = [energy[np.isfinite(energy)][-1] for energy in energies if np.isfinite(energy).any()]
    return (min(last) - BELOW, max(last) + ABOVE) if last else (0.0, 1.0)


def _energy(ax: Axes, energy: Array, ends: tuple[float, float]) -> None:
    sweeps = np.arange(1, len(energy) + 1)
    ax.plot(sweeps, energy, color="black", linewidth=1.0)
    undefined = sweeps[np.isnan(energy)]
    ax.set_ylim(*ends)
    low = ends[0] + 0.04 * (ends[1] - ends[0])
    ax.plot(undefined, np.full(len(undefined), low), "|", color=ORANGE, markersize=6)
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _precisions(ax: Axes, precisions: Array) -> None:
    sweeps = np.arange(1, len(precisions) + 1)
    for i, values in enumerate(precisions.T):
        colour, stroke, width = STROKES[i]
        ax.plot(sweeps, values, color=colour, linestyle=stroke, linewidth=width, label=f"site of y{i + 1}")
    ax.axhline(0.0, color="0.6", linewidth=0.5, zorder=0)
    ax.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    ax.set_ylim(-30.0, 300.0)
    ax.set_yticks([-10.0, -1.0, 0.0, 1.0, 10.0, 100.0])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    ax.minorticks_off()
    ax.set_xlabel("sweep")


def _sweeps(ax: Axes, stage: Array) -> None:
    ax.set_xlim(0.0, max(len(stage), 5) + 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for place in np.flatnonzero(np.diff(stage)):
        ax.axvline(place + 1.5, color="0.5", linewidth=0.7)
