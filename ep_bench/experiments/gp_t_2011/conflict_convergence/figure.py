"""Figure of two contradicting observations: expectation propagation sweep by sweep."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ep_bench.experiments.gp_t_2011 import INNER_STEPS, PAPER
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish
from ep_bench.types import Array

ORANGE = "#D55E00"
ABOVE, BELOW = 4.0, 2.0  # nats above and below the final values of the schemes that are shown
COLUMNS = 3
FRACTIONAL = "parallel, δ = 1, η = 0.5"  # label
LATE, EARLY = 20, 1  # sweeps before those whose oscillation counts; index of the second sweep
NEAR = 0.01  # mismatch up to which rounds are counted, and above which an order of the sites counts as a failure


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure of two panels per scheme: negative log evidence and precisions of four sites by sweeps.

    Arrays: labels (M,); of scheme i over its S sweeps: log_evidence_i (S,), precisions_i (S, 4), stage_i (S,).
    """
    arrays = results.arrays
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
        "the precisions of the sites of the contradicting observations y1 and y2 and of their neighbours y3 and y4 "
        "(logarithmic beyond ±1). Ticks at the bottom: sweeps after which a cavity is improper, so that Z is not "
        f"defined. Vertical line: start of another kind of update. As in figure 3 of {PAPER}, on an example of our own."
    )
    return [finish(figure, f"conflict-convergence-{results.study}", caption)]


def _ends(energies: list[Array]) -> tuple[float, float]:
    """Return the range of −log Z to show, around the final values of the schemes."""
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


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 3 and on orders of the sites."""
    arrays, labels = results.arrays, [str(label) for label in results.arrays["labels"]]
    mismatches, evidences, precisions = (
        {label: np.asarray(arrays[f"{name}_{i}"]) for i, label in enumerate(labels)}
        for name in ("mismatch", "log_evidence", "precisions")
    )
    last = {f"mismatch, {label}": float(values[-1]) for label, values in mismatches.items()}
    undefined = {f"undefined sweeps, {label}": float(np.isnan(values).sum()) for label, values in evidences.items()}
    parallel, double, started = (
        mismatches["parallel, δ = 0.5"], mismatches["double loop"], "5 parallel, double loop"
    )  # fmt: skip
    swings = [float(np.nanstd(evidences[name][LATE:])) for name in ("parallel, δ = 0.5", "sequential, δ = 0.5")]
    improper = np.flatnonzero(~np.isfinite(parallel))
    level, final = precisions["sequential, δ = 0.8"][EARLY], precisions["double loop, Newton"][-1]
    rounds = _rounds_to(precisions["double loop"], level, final)
    failed = (np.asarray(arrays["order_mismatch"]) >= NEAR).sum(axis=1)
    return last | undefined | {
        "oscillation of the evidence, parallel relative to sequential, δ = 0.5": swings[0] / swings[1],
        "oscillation of the evidence, double loop": float(np.nanstd(evidences["double loop"][LATE:])),
        "rounds of the double loop to the precisions that sequential EP, δ = 0.8, has after 2 sweeps": rounds,
        "inner steps of these rounds, 20 each at most": rounds * INNER_STEPS,
        "first parallel sweep with an improper cavity": float(improper[0] + 1) if len(improper) else math.nan,
        "rounds to a mismatch of 0.01, started by parallel sweeps relative to not": (
            _rounds(mismatches[started]) / _rounds(double)
        ),
        "change of the evidence after 20 rounds": abs(_at(evidences[started], 20) - float(evidences[started][-1])),
        f"lowest precision during the sweeps, {FRACTIONAL}": float(precisions[FRACTIONAL][:, :2].min()),
        **{f"orders without convergence, δ = {damping:g}": float(count)
           for damping, count in zip(arrays["order_dampings"], failed, strict=True)},
    }  # fmt: skip


def _rounds_to(precisions: Array, level: Array, final: Array) -> float:
    """Return the rounds after which the precisions (S, 4) are as near to the final ones (4,) as a level (4,) is."""
    errors = np.abs(precisions - final).max(axis=1)
    reached = np.flatnonzero(errors <= np.abs(level - final).max())
    return float(reached[0] + 1) if len(reached) else math.inf


def _rounds(mismatch: Array) -> float:
    """Return the number of sweeps to a mismatch of NEAR, NaN if it is not reached."""
    reached = np.flatnonzero(mismatch < NEAR)
    return float(reached[0] + 1) if len(reached) else math.nan


def _at(values: Array, sweep: int) -> float:
    return float(values[sweep - 1]) if len(values) >= sweep else math.nan
