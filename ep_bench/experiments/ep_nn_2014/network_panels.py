"""Panels of the figures of networks: intervals of weights in groups, and f with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ep_bench.experiments.ep_nn_2014 import QUANTILE
from ep_bench.experiments.record import Arrays
from ep_bench.types import Array

BAND, CURVE = "0.82", "#0072B2"
GAP = 1.0  # extra space between two groups, in distances between two intervals


def intervals(
    ax: Axes, mean: Array, std: Array, names: Sequence[str], marks: Sequence[int] = (), *, zero: bool = True
) -> None:
    """Draw 95 percent intervals of marginals with means and standard deviations (G, m), in G named groups of m.

    If ``zero``, intervals that exclude 0 have a filled marker, the others an open one; otherwise all are filled. The
    indices within a group in ``marks`` have a square marker.
    """
    count = mean.shape[1]
    places = _places(*mean.shape)
    clear = (np.abs(mean) > QUANTILE * std) | (not zero)
    square = np.zeros(mean.shape, dtype=bool)
    square[:, list(marks)] = True
    if zero:
        ax.axhline(0.0, color="0.5", linewidth=0.6, zorder=0)
    ax.vlines(places.ravel(), (mean - QUANTILE * std).ravel(), (mean + QUANTILE * std).ravel(), "0.25", linewidth=0.9)
    for shape, chosen in (("o", ~square), ("s", square)):
        for filled in (True, False):
            some = chosen & (clear == filled)
            face = CURVE if filled else "white"
            ax.plot(places[some], mean[some], shape, color=CURVE, markerfacecolor=face, markersize=3.2, mew=0.8)
    for edge in 0.5 * (places[1:, 0] + places[:-1, -1]) if count > 1 else ():
        ax.axvline(edge, color="0.6", linestyle=":", linewidth=0.7, zorder=0)
    ax.set_xticks(places.mean(axis=1), names)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(places[0, 0] - GAP, places[-1, -1] + GAP)
    ax.yaxis.set_major_locator(ticks(5))


def _places(groups: int, count: int) -> Array:
    """Return the horizontal positions (G, m) of the intervals."""
    step = count - 1 + 2.0 * GAP if count > 1 else 1.0
    return np.asarray(step * np.arange(groups)[:, None] + np.arange(float(count)))


def outputs(ax: Axes, arrays: Arrays) -> None:
    """Draw the intervals of the output weights, with the bias v0 last."""
    mean, std = np.asarray(arrays["outputs"]), np.asarray(arrays["outputs_std"])
    intervals(ax, mean[:, None], std[:, None], [*map(str, range(1, len(mean))), "v0"])
    ax.set_xlabel("hidden unit; v0: bias")


def ended_early(arrays: Arrays) -> str:
    """Return a sentence that names the fits shown that did not converge, with a trailing space; empty if all did."""
    names = [str(label) for label, early in zip(arrays["labels"], arrays["unconverged"], strict=True) if early]
    return f"Not converged: {', '.join(names)}. " if names else ""


def ticks(count: int) -> MaxNLocator:
    """Return a locator with at most ``count`` round steps."""
    return MaxNLocator(count, steps=[1, 2, 2.5, 5, 10])


def band(ax: Axes, grid: Array, mean: Array, std: Array, truth: Array) -> None:
    """Draw mean, 95 percent interval and true values (G,) of f over a grid (G,)."""
    low, high = mean - QUANTILE * std, mean + QUANTILE * std
    ax.fill_between(grid, low, high, color=BAND, linewidth=0, label="95 % interval of f")
    ax.plot(grid, truth, color="black", linewidth=0.9, label="true function")
    ax.plot(grid, mean, color=CURVE, linestyle="--", linewidth=1.4, label="mean of f")
