"""Figure of two contradicting observations: their tilted distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ep_bench.experiments.gp_t_2011 import PAPER
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

LEVELS = (0.01, 0.1, 0.3, 0.6, 0.9)  # contours, as fractions of the maximum
LOW_LEVELS = (1e-4, 1e-3, 0.01, 0.1, 0.6)  # contours of likelihoods, which have heavy tails
SHADES = ("0.9", "0.8", "0.68", "0.55", "0.42")
BLUE = "#0072B2"


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure of two panels per power: the factors, and their product.

    Arrays: first, second (P,); marginal (P, P), f1 down; y (2,); fractions (F,); likelihoods_i (2, P).
    """
    arrays = results.arrays
    fractions = np.asarray(arrays["fractions"])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 0.7 + 2.5 * len(fractions)), layout="constrained")
        axes = figure.subplots(len(fractions), 2, sharex=True, sharey=True, squeeze=False)
        for i, (eta, (left, right)) in enumerate(zip(fractions, axes, strict=True)):
            grid, q = (arrays["first"], arrays["second"]), np.asarray(arrays["marginal"])
            likelihoods = np.outer(*arrays[f"likelihoods_{i}"])
            _shades(left, grid, likelihoods, LOW_LEVELS)
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
        "Two contradicting observations y1 and y2 in expectation propagation. Left: approximate distribution of the "
        "latent values f1 and f2 after one undamped sweep over the sites of all other observations (dashed), and the "
        "likelihoods of both to the power η (grey). Right: their product, whose moments the sites must match. Contours "
        f"at {_listed(LEVELS)} of the maximum, shades of the likelihoods at {_listed(LOW_LEVELS)}; in the unit of y. "
        f"As in figure 2 of {PAPER}, on an example of our own."
    )
    return [finish(figure, f"conflict-tilted-{results.study}", caption)]


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


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 2 and section 5.1."""
    rows = {f"{float(row['eta']):g}": row for row in results.summary}
    columns = {"precision of site 1": "site_1", "precision of site 2": "site_2", "cavity of site 1": "cavity_1"}
    found = {f"modes, η = {eta}": float(row["modes"]) for eta, row in rows.items()}
    found |= {name: float(rows["1"][column]) for name, column in columns.items()}
    together = np.array([float(rows["1"][f"together_{i}"]) for i in (1, 2)])
    posterior = np.linalg.inv(np.linalg.inv(results.arrays["covariance"]) + np.diag(together))
    cavities = 1.0 / np.diag(posterior) - together
    if "0.5" in rows:
        found |= _flattened(results)
    return found | {
        "smallest precision of a site, parallel": float(together.min()),
        "smallest precision of a cavity, parallel": float(cavities.min()),
    }


def _flattened(results: ExperimentResults) -> dict[str, float]:
    """Return what a power of 0.5 changes: the peak of the tilted distribution, variances and precisions of sites."""
    arrays = results.arrays
    peaks, variances, precisions = [], [], []
    for eta in (0.5, 1.0):
        place = int(np.flatnonzero(arrays["fractions"] == eta)[0])
        likelihoods = np.asarray(arrays[f"likelihoods_{place}"])
        tilted = np.asarray(arrays["marginal"]) * np.outer(*likelihoods)
        peaks.append(tilted.max() / tilted.sum())
        moments = zip((arrays["first"], arrays["second"]), arrays["mean"], np.diag(arrays["covariance"]), strict=True)
        variances.append([_variance(*cavity, one) for cavity, one in zip(moments, likelihoods, strict=True)])
        precisions.append([float(results.summary[place][f"together_{i}"]) for i in (1, 2)])
    at = "η = 0.5 relative to 1"
    return {
        f"peak of the tilted distribution, {at}": float(peaks[0] / peaks[1]),
        f"largest variance of a one-dimensional tilted distribution, {at}": float(
            np.max(np.array(variances[0]) / variances[1])
        ),
        f"smallest precision of a site after a parallel update, {at}": float(
            np.min(np.array(precisions[0]) / precisions[1])
        ),
    }


def _variance(f: Array, mean: float, variance: float, likelihood: Array) -> float:
    """Return the variance of a Gaussian times a likelihood (P,), on a grid f (P,)."""
    weights = np.exp(-0.5 * (f - mean) ** 2 / variance) * likelihood
    return float(np.cov(f, aweights=weights, ddof=0))
