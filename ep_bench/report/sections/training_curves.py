"""Training curves: the traces of the methods, with one figure per quantity and one panel per data set."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from ep_bench.plotting.axes import line_legend, log_axis, small_multiples
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report.context import NOT_DRAWN, ReportContext
from ep_bench.results import curves
from ep_bench.types import Array

ORDER = 120
WRAP = 25  # letters per line of a label
# Title and unit by name of the trace. Traces with other names are internal quantities of a method.
WORDS = {
    "objective": ("Objective", "fraction of its change"),
    "noise_deviation": ("Noise standard deviation", "standardised units"),
    "prior_variance": ("Prior variance of the weights", "standardised units"),
    "log_z": ("Mean log normaliser of the updates", "nats, standardised units"),
    "undone": ("Rejected updates of weights", "fraction"),
    "log_joint": ("Log joint density", "nats"),
    "log_joint_a_row": ("Log joint density per data point", "nats"),
    "log_evidence": ("Log evidence", "nats, standardised units"),
    "well_determined": ("Well-determined weights", "number, gamma of MacKay"),
    "step_size": ("Step size of the weights", "standardised units"),
    "prior_deviation": ("Prior standard deviation of the weights", "standardised units"),
    "prediction": ("Prediction", "standardised units"),
    "nu": ("Degrees of freedom", "number"),
    "scale": ("Scale of the noise", "standardised units"),
    "acceptance": ("Acceptance", "fraction"),
}
_PLACES = {name: place for place, name in enumerate(WORDS)}
CAPTION = "{title} by epoch, or iteration of a sampler: median over the splits, and their range (shaded)."
FRACTION = " Objectives have different units: the curves show the fraction of the median's change."


class TrainingCurve(NamedTuple):
    """A quantity of one method on one data set over E epochs: median and range over ``n`` splits, (E,) arrays."""

    method: str
    dataset: str
    n: int
    epoch: Array
    median: Array
    low: Array
    high: Array

    def as_fraction(self) -> TrainingCurve:
        """Return the curve as fraction of its median's change from the first epoch to the last."""
        known = self.median[np.isfinite(self.median)]
        change = known[-1] - known[0] or float(np.ptp(known)) or 1.0
        median, low, high = ((values - known[0]) / change for values in (self.median, self.low, self.high))
        return self._replace(median=median, low=np.minimum(low, high), high=np.maximum(low, high))


def sections(report: ReportContext) -> list[Section]:
    """Return the training curves, if any method has a trace; internal quantities are drawn on request only."""
    if not report.curves.traces:
        return []
    if not report.draws_all:
        return [Section("training", "Training curves", [NOT_DRAWN])]
    found = _by_name(report)
    internal = [name for name in found if trace_words(name) is None and not report.all_figures]
    lines = [f"Internal quantities, drawn with `--all-figures`: {', '.join(internal)}."] if internal else []
    pictures = [_figure(name, curves, report.styles) for name, curves in found.items() if name not in internal]
    return [Section("training", "Training curves", lines, pictures)] if lines or pictures else []


def _by_name(report: ReportContext) -> dict[str, list[TrainingCurve]]:
    """Return the curves of each quantity, known quantities first."""
    merged, entries = report.merged, curves.index(report.curves.traces)
    found: dict[str, list[TrainingCurve]] = {}
    for dataset, method in ((dataset, method) for dataset in merged.datasets for method in report.by_rank()):
        entry = curves.find(entries, merged.cells.get((method, dataset), {}))
        for name, summary in entry["traces"].items() if entry else ():
            curve = _curve(method, dataset, len(entry["splits"]) if entry else 0, summary)
            if np.isfinite(curve.median).any():
                found.setdefault(name, []).append(curve)
    return {name: found[name] for name in sorted(found, key=trace_order)}


def _curve(method: str, dataset: str, n: int, summary: Mapping[str, Any]) -> TrainingCurve:
    epoch, median = (np.array(summary[key], dtype=np.float64) for key in ("epoch", "median"))
    low, high = (np.array(summary.get(key, median), dtype=np.float64) for key in ("min", "max"))
    return TrainingCurve(method, dataset, n, epoch, median, low, high)


def _figure(name: str, found: Sequence[TrainingCurve], styles: Mapping[str, MethodStyle]) -> Picture:
    title, unit = trace_words(name) or (name.replace("_", " "), "unit of the method")
    drawn = [curve.as_fraction() for curve in found] if name == "objective" else found
    datasets = list(dict.fromkeys(curve.dataset for curve in found))
    lengths = [float(curve.epoch[-1]) for curve in found]
    with mpl.rc_context(STYLE):
        figure, axes = small_multiples(len(datasets))
        for ax, dataset in zip(axes, datasets, strict=True):
            _panel(ax, [curve for curve in drawn if curve.dataset == dataset], styles)
            if max(lengths) > 3.0 * min(lengths):
                log_axis(ax)
        label = "\n".join(textwrap.wrap(f"{lower_first(title)} ({unit})", WRAP))
        line_legend(figure, axes, "epoch or iteration", label)
    caption = CAPTION.format(title=title) + FRACTION * (name == "objective")
    return finish(figure, f"training-{name}", caption)


def _panel(ax: Axes, found: Sequence[TrainingCurve], styles: Mapping[str, MethodStyle]) -> None:
    """Draw the curves of one data set."""
    for curve in found:
        colour, marker, line, *_ = styles[curve.method]
        ax.fill_between(curve.epoch, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            curve.epoch, curve.median, linestyle=line, color=colour, marker=marker, markersize=3.0,
            markevery=max(1, len(curve.epoch) // 5), label=curve.method,
        )  # fmt: skip
    medians = np.concatenate([curve.median for curve in found])
    margin = 0.15 * (np.nanmax(medians) - np.nanmin(medians)) or 1.0
    ax.set_ylim(np.nanmin(medians) - margin, np.nanmax(medians) + margin)
    splits = max(curve.n for curve in found)
    ax.set_title(f"{found[0].dataset} ({splits} split{'s' * (splits != 1)})")


# Titles and units of traced quantities


def trace_words(name: str) -> tuple[str, str] | None:
    """Return title and unit of a trace, such as ``prior_variance`` or ``prior_variance_2``; None if it is unknown."""
    known, _, number = name.rpartition("_")
    if name in WORDS or not number.isdecimal() or known not in WORDS:
        return WORDS.get(name)
    title, unit = WORDS[known]
    return f"{title}, group {number}", unit


def trace_order(name: str) -> tuple[int, str]:
    """Return the sort key of a trace: known names first, in the order of ``WORDS``."""
    return _PLACES.get(name, len(_PLACES)), name


def lower_first(title: str) -> str:
    """Return a title as written within a sentence."""
    return title[0].lower() + title[1:]
