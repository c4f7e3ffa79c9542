"""Figure of random restarts of networks: test log-likelihood against log evidence, one panel per data set."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ep_bench.experiments.ep_nn_2014 import PAPER
from ep_bench.experiments.ep_nn_2014.network_panels import ticks
from ep_bench.experiments.record import Arrays, Claim, ExperimentResults, uses
from ep_bench.plotting.axes import fences
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

COLUMNS = 3


def draw(results: ExperimentResults) -> list[Picture]:
    """Return the figure: one point per fit.

    Arrays: labels (M,), datasets (D,), measures (7,); found_i (M, 7, R) of data set i, NaN if a fit failed.
    """
    arrays = results.arrays
    labels, names = ([str(name) for name in arrays[key]] for key in ("labels", "datasets"))
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    looks = list(method_styles(labels, uses(results.options)).values())
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.5 + 2.3 * max(columns, 2), 0.6 + 2.0 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for i, (name, ax) in enumerate(zip(names, axes, strict=False)):
            _panel(ax, np.asarray(arrays[f"found_{i}"]), looks, [str(one) for one in arrays["measures"]])
            ax.set_title(f"({chr(97 + i)}) {name}, {np.shape(arrays[f'found_{i}'])[2]} starts")
            if i % columns == 0:
                ax.set_ylabel("test log density\n(nats per data point)")
            if i + columns >= len(names):
                ax.set_xlabel("log evidence (nats)")
        for ax in axes[len(names) :]:
            ax.set_axis_off()
        handles = [
            Line2D([], [], color=look.colour, marker=look.marker, linestyle="none", markersize=4, label=label)
            for label, look in zip(labels, looks, strict=True)
        ]
        handles.append(
            Line2D([], [], color="0.2", marker="o", markerfacecolor="white", linestyle="none", markersize=4,
                   label="not converged")
        )  # fmt: skip
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return [finish(figure, f"network-restarts-{results.study}", _caption(arrays, labels, names))]


def _panel(ax: Axes, found: Array, looks: Sequence[MethodStyle], measures: list[str]) -> None:
    """Draw fits (M, 7, R) of a data set, open if not converged; annotate the number of outliers and non-finite fits."""
    ll, evidence, converged = (found[:, measures.index(name)] for name in ("ll", "log_evidence", "converged"))
    shown = np.ones(ll.shape, dtype=bool)
    for values in (ll, evidence):
        low, high = fences(values.ravel(), np.zeros(1))
        shown &= np.isfinite(values) & (values >= low) & (values <= high)
    for j, (colour, marker, *_) in enumerate(looks):
        for done in (False, True):
            some = shown[j] & ((converged[j] == 1.0) == done)
            face = colour if done else "white"
            ax.plot(evidence[j, some], ll[j, some], marker, color=colour, markerfacecolor=face, markersize=4.0, mew=0.8)
    ax.margins(0.08)
    if not shown.all():
        words, (low, high) = f"{np.sum(~shown)} not shown", ax.get_ylim()
        ax.set_ylim(low - 0.12 * (high - low), high)  # a strip for the annotation, without points
        ax.annotate(words, (0.97, 0.03), xycoords="axes fraction", ha="right", fontsize=7)
    ax.xaxis.set_major_locator(ticks(4))
    ax.yaxis.set_major_locator(ticks(5))


def _caption(arrays: Arrays, labels: list[str], names: list[str]) -> str:
    place = [str(one) for one in arrays["measures"]].index("converged")
    counts = "; ".join(
        f"{name} "
        + ", ".join(
            f"{label} {int(np.nansum(one[place]))} of {one.shape[1]}"
            for label, one in zip(labels, np.asarray(arrays[f"found_{i}"]), strict=True)
        )
        for i, name in enumerate(names)
    )
    return (
        "Networks by expectation propagation from random starts on one standard split of each data set: mean test "
        "log-likelihood (original units) against the approximate log evidence, one point per start. Starts differ only "
        "in the order of the data points. Fits far from the others, without a log evidence or without a proper "
        f"posterior are not shown; the table includes them. Converged: {counts}. Model and method: {PAPER}."
    )


def claims(results: ExperimentResults) -> list[Claim]:
    """Return whether EP converged from every start."""
    converged, starts = (sum(int(float(row[name])) for row in results.summary) for name in ("converged", "restarts"))
    spread = max(float(row["ll_most"]) - float(row["ll_least"]) for row in results.summary)
    found = f"{converged} of {starts} fits do; their test log-likelihoods differ by up to {spread:.2g} nats"
    return [Claim("EP for networks converges from every random start", converged == starts, found)]
