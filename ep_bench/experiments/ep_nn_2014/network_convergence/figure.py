"""Figures of expectation propagation for networks: sweep by sweep, and compared with Markov chains by time."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from ep_bench.experiments.ep_nn_2014 import PAPER
from ep_bench.experiments.ep_nn_2014.network_panels import ticks
from ep_bench.experiments.record import Arrays, Claim, ExperimentResults, uses
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.numbers import log_tick_texts
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish
from ep_bench.types import Array

GROUPS = {
    "input": "input sites",
    "output": "output sites",
    "noise": "noise sites",
    "weight_prior": "priors of w",
    "scale": "priors of scales",
    "output_prior": "priors of v",
}
FOLDS = ("solid", (0, (4, 2)), (0, (1, 1.2)))  # line style of each fold
MARKS = ("o", "s", "^")
EVIDENCES = (("Σ log Zᵢ", "#0072B2", 0.9), ("log Z of EP", "#D55E00", 1.9))  # the line widths distinguish them in grey
SMALLEST = 1e-16  # smaller steps are not shown
MARGIN = 0.35  # of an axis, relative to the range of the scores from the last stage on
LAST_STAGE = 50  # sweeps before the last stage
NATS = 0.8  # shown below the best log density by time; more if the fits end lower


def draw(results: ExperimentResults) -> list[Picture]:
    """Return two figures: steps, evidence and scores by sweeps; test log-likelihoods by time.

    Arrays: labels (M,), chains, folds, sweeps (S,), samples (H,), groups (G,); of method i on fold f scores_i_f (3, S),
    usual_i_f (3,), steps_i_f (G, T), log_z_i_f, log_evidence_i_f (T,) and close_i_f; of the sampler sampled_f (3, H).
    """
    return [_by_sweeps(results.arrays, results.study), _by_time(results)]


def _by_sweeps(arrays: Arrays, study: str) -> Picture:
    labels, folds = [str(label) for label in arrays["labels"]], int(arrays["folds"])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.7 + 2.9 * max(len(labels), 2), 7.4), layout="constrained")
        axes = figure.subplots(4, len(labels), sharex=True, sharey="row", squeeze=False)
        for i, (label, column) in enumerate(zip(labels, axes.T, strict=True)):
            column[0].set_title(label)
            _steps(column[0], arrays, i)
            for f in range(folds):
                _evidence(column[1], arrays, i, f)
                for ax, row in zip(column[2:], (1, 2), strict=True):
                    _scores(ax, arrays, i, f, row)
            column[-1].set_xlabel("sweeps")
        _sweep_axis(axes, np.asarray(arrays["sweeps"]))
        _limits(axes[1], [arrays[f"{name}_{i}_{f}"] for name in ("log_z", "log_evidence") for i, f in _all(arrays)])
        for row, score in ((2, 1), (3, 2)):
            late = np.asarray(arrays["sweeps"]) > LAST_STAGE
            _limits(axes[row], [np.asarray(arrays[f"scores_{i}_{f}"])[score][late] for i, f in _all(arrays)], 0)
        words = (
            "relative step", "evidence (nats)", "test log density\n(nats per data point)",
            "test squared error\n(variance of y)",
        )  # fmt: skip
        for ax, word in zip(axes[:, 0], words, strict=True):
            ax.set_ylabel(word)
        _legends(figure, axes, arrays)
    return finish(figure, f"network-convergence-{study}", _caption(arrays, labels))


def _all(arrays: Arrays) -> list[tuple[int, int]]:
    return [(i, f) for i in range(len(arrays["labels"])) for f in range(int(arrays["folds"]))]


def _steps(ax: Axes, arrays: Arrays, i: int) -> None:
    """Draw the steps of the groups on the first fold, and a vertical line at convergence."""
    steps, close = np.asarray(arrays[f"steps_{i}_0"]), int(arrays[f"close_{i}_0"])
    looks = [*STROKES, ("#000000", "solid", 0.8)]
    sweeps = np.arange(1, steps.shape[-1] + 1)
    for name, values, (colour, stroke, width) in zip(arrays["groups"], steps, looks, strict=False):
        shown = np.where(values > SMALLEST, values, np.nan)
        ax.plot(sweeps, shown, color=colour, linestyle=stroke, linewidth=width, label=GROUPS.get(str(name), str(name)))
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: log_tick_texts([value])[0]))
    ax.yaxis.set_minor_locator(NullLocator())
    if close:
        ax.axvline(close, color="0.4", linewidth=0.8, linestyle=":")


def _evidence(ax: Axes, arrays: Arrays, i: int, f: int) -> None:
    for name, (_, colour, width) in zip(("log_z", "log_evidence"), EVIDENCES, strict=True):
        values = np.asarray(arrays[f"{name}_{i}_{f}"])
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, linestyle=FOLDS[f % len(FOLDS)], linewidth=width)


def _scores(ax: Axes, arrays: Arrays, i: int, f: int, row: int) -> None:
    """Draw a score by sweeps, with a vertical line at convergence."""
    values, close = np.asarray(arrays[f"scores_{i}_{f}"])[row], int(arrays[f"close_{i}_{f}"])
    stroke, marker = FOLDS[f % len(FOLDS)], MARKS[f % len(MARKS)]
    ax.plot(arrays["sweeps"], values, color="black", linestyle=stroke, marker=marker, markersize=3.0)
    if close:
        ax.axvline(close, color="0.4", linewidth=0.8, linestyle=":", zorder=0)


def _sweep_axis(axes: Any, sweeps: Array) -> None:
    for ax in axes[-1]:
        ax.set_xscale("log")
        ax.set_xlim(0.9 * sweeps[0], 1.12 * sweeps[-1])
        ax.set_xticks([tick for tick in (5, 10, 20, 50, 100, 200, 400, 1000) if sweeps[0] <= tick <= sweeps[-1]])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())


def _limits(row: Any, curves: list[Any], first: int = LAST_STAGE) -> None:
    """Set the limits of an axis: the range of the curves from sweep ``first`` on, and a margin."""
    values = np.concatenate([np.ravel(curve)[first:] for curve in curves])
    known = values[np.isfinite(values)]
    if not len(known):
        return
    low, high = float(known.min()), float(known.max())
    margin = MARGIN * max(high - low, 1e-3 * max(abs(high), 1e-9))
    row[0].set_ylim(low - margin, high + margin)
    row[0].yaxis.set_major_locator(ticks(5))


def _legends(figure: Figure, axes: Any, arrays: Arrays) -> None:
    axes[0, 0].legend(frameon=False, fontsize=6.5, loc="lower left", handlelength=2.6)
    evidences = [Line2D([], [], color=colour, linewidth=width, label=label) for label, colour, width in EVIDENCES]
    axes[1, 0].legend(handles=evidences, frameon=False, fontsize=6.5, loc="lower right")
    handles = [
        Line2D([], [], color="black", linestyle=FOLDS[f % len(FOLDS)], label=f"fold {f + 1}")
        for f in range(int(arrays["folds"]))
    ]
    handles.append(Line2D([], [], color="0.4", linewidth=0.8, linestyle=":", label="all steps below 0.0001"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)


def _by_time(results: ExperimentResults) -> Picture:
    arrays = results.arrays
    labels, folds = [str(label) for label in arrays["labels"]], int(arrays["folds"])
    chains = str(arrays["chains"])
    sampler = str((results.options.get("chains") or {}).get("use", ""))
    looks = list(method_styles([*labels, chains], {**uses(results.options), chains: sampler}).values())
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.6 + 2.9 * max(folds, 2), 3.1), layout="constrained")
        axes = figure.subplots(1, folds, sharex=True, sharey=True, squeeze=False)[0]
        best, ends = -np.inf, []
        for f, ax in enumerate(axes):
            for i, label in enumerate(labels):
                seconds, ll, _ = np.asarray(arrays[f"scores_{i}_{f}"])
                _curve(ax, seconds, ll, looks[i], label)
                if int(arrays[f"close_{i}_{f}"]):
                    end = np.asarray(arrays[f"usual_{i}_{f}"])
                    look = looks[i]
                    ax.plot(end[0], end[1], look.marker, color=look.colour, markerfacecolor="none", markersize=10)
                best = max(best, np.nanmax(ll))
                ends.append(ll[-1])
            seconds, ll, _ = np.asarray(arrays[f"sampled_{f}"])
            _curve(ax, seconds, ll, looks[-1], chains)
            best = max(best, np.nanmax(ll))
            ax.set_title(f"({chr(97 + f)}) {arrays['dataset']}, fold {f + 1}")
            ax.set_xlabel("processor seconds of a fit")
        axes[0].set_ylabel("test log density (nats per data point)")
        axes[0].set_xscale("log")
        axes[0].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes[0].set_ylim(min(best - NATS, np.nanmin(ends) - 0.1 * NATS), best + 0.1 * NATS)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    caption = (
        f"Mean test log-likelihood on {folds} folds of {arrays['dataset']} (nats per data point, original units) "
        f"against the time of a fit: {', '.join(labels)} for {arrays['sweeps'][0]} to {arrays['sweeps'][-1]} sweeps, "
        f"{chains} for {arrays['samples'][0]} to {arrays['samples'][-1]} draws of a chain after as many draws of "
        "warm-up. Large open marker: every relative step of the sites is below 0.0001, and a fit ends. Initial values "
        "far below the best are not shown."
    )
    return finish(figure, f"network-times-{results.study}", caption)


def _curve(ax: Axes, seconds: Array, ll: Array, look: MethodStyle, label: str) -> None:
    ax.plot(seconds, ll, color=look.colour, marker=look.marker, markersize=3.5, linestyle=look.line, label=label)


def _caption(arrays: Arrays, labels: list[str]) -> str:
    ends = "; ".join(
        f"{label} " + ", ".join(str(int(arrays[f"close_{i}_{f}"])) for f in range(int(arrays["folds"])))
        for i, label in enumerate(labels)
    )
    return (
        f"Networks by expectation propagation on folds of {arrays['dataset']}, continued beyond convergence. From top "
        "to bottom: relative undamped steps of the groups of sites on the first fold; sum of the log normalisers of "
        "all terms and log evidence of the approximation; mean test log-likelihood (original units); squared error on "
        "the test data. A fit with fewer sweeps has the same scores as a longer fit at that sweep. Stages begin after "
        f"20, 40 and 50 sweeps. Sweeps after which all steps are below 0.0001 (0: never): {ends}. Model and method: "
        f"{PAPER}."
    )


def claims(results: ExperimentResults) -> list[Claim]:
    """Return whether every fit by EP converged."""
    rows = [row for row in results.summary if row["method"].startswith("NN-EP")]
    sweeps = [int(float(row["converged_after"])) for row in rows if row["converged_after"]]
    if not rows:
        return []
    after = f", after {min(sweeps)} to {max(sweeps)} sweeps" if sweeps else ""
    return [
        Claim("EP for networks converges", len(sweeps) == len(rows), f"{len(sweeps)} of {len(rows)} fits do{after}")
    ]
