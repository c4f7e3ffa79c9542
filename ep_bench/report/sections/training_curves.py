"""Training curves: the traces of the methods, with one figure per quantity and one panel per data set."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from ep_bench.plotting.axes import in_groups, side_by_side
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.numbers import log_tick_texts, tick_texts
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.stored_figures import drawn_if_changed
from ep_bench.plotting.style import COLUMNS, LINE, STYLE, finish
from ep_bench.report import traced_quantities
from ep_bench.report.context import NOT_DRAWN, ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.report.traced_quantities import lower_first
from ep_bench.results import curves
from ep_bench.types import Array

PANELS, METHODS = 2 * COLUMNS, 6  # data sets and methods per figure; so many methods differ in colour
BANDS = 3  # curves in a panel whose ranges are distinguishable as bands
WIDTH, HEIGHT = 1.6, 1.25  # of a panel, in inches
WRAP = 30  # letters per line of an axis label
MARKS = 5  # approximate number of markers per curve
DIGIT = 0.075  # inches per character of a tick label


@dataclass(frozen=True)
class TrainingCurve:
    """A quantity of one method on one data set over E epochs: median and range over ``n`` splits.

    ``epoch``, ``median``, ``low`` and ``high`` are (E,) arrays, NaN without a finite value. ``step`` is the name of an
    epoch; samplers have iterations.
    """

    method: str
    dataset: str
    n: int
    epoch: Array
    median: Array
    low: Array
    high: Array
    step: str = "epoch"


def sections(report: ReportContext) -> list[Section]:
    """Return the training curves, if any method has a trace."""
    lines: list[str] = []
    pictures: list[Picture] = []
    if not report.all_figures:
        return [Section("training", "Training curves", [NOT_DRAWN])] if report.curves.traces else []
    by_name = _by_name(report.merged, report.curves)
    internal = [name for name in by_name if traced_quantities.words(name) is None and not report.internal_traces]
    for name in internal:
        del by_name[name]
    if internal:
        lines.append(f"Internal quantities, drawn with `--all-figures`: {', '.join(internal)}.")
    for name, found in by_name.items():
        flat = _flat(found)
        for value, datasets in flat.items():
            step = steps(curve for curve in found if curve.dataset in datasets)
            title = (traced_quantities.words(name) or (name, ""))[0]
            lines.append(f"{title}: {value:g} at every {step} on {', '.join(datasets)}; no figure.")
        constant = {dataset for datasets in flat.values() for dataset in datasets}
        pictures += _figures(name, [curve for curve in found if curve.dataset not in constant], report.styles)
    return [Section("training", "Training curves", lines, pictures)] if lines or pictures else []


def steps(found: Iterable[TrainingCurve]) -> str:
    """Return the name of the steps of these curves: epoch, iteration, or both."""
    return " or ".join(sorted({curve.step for curve in found}))


def _flat(found: Sequence[TrainingCurve]) -> dict[float, list[str]]:
    """Return the data sets on which all curves are constant and equal, by their value."""
    values: dict[str, set[float]] = {}
    for curve in found:
        values.setdefault(curve.dataset, set()).update(np.concatenate([curve.median, curve.low, curve.high]).tolist())
    flat: dict[float, list[str]] = {}
    for dataset, known in values.items():
        if len(known) == 1:
            flat.setdefault(known.pop(), []).append(dataset)
    return flat


def _by_name(merged: MergedStudies, kept: curves.Curves) -> dict[str, list[TrainingCurve]]:
    """Return the curves of each quantity, known quantities first."""
    cells, entries = merged.cells, curves.index(kept.traces)
    found: dict[str, list[TrainingCurve]] = {}
    for dataset in merged.datasets:
        for method in merged.methods:
            mine = cells.get((method, dataset), {})
            entry = curves.find(entries, mine)
            if entry is not None:
                step = "iteration" if "acceptance" in entry["traces"] else "epoch"
                for name, summary in entry["traces"].items():
                    curve = _curve(method, dataset, len(entry["splits"]), summary, step)
                    if np.isfinite(curve.median).any():
                        found.setdefault(name, []).append(curve)
    return {name: found[name] for name in sorted(found, key=traced_quantities.order)}


def _curve(method: str, dataset: str, n: int, summary: Mapping[str, Any], step: str) -> TrainingCurve:
    median = np.array(summary["median"], dtype=np.float64)
    low, high = (np.array(summary.get(key, median), dtype=np.float64) for key in ("min", "max"))
    epoch = np.array(summary["epoch"], dtype=np.float64)
    return TrainingCurve(method, dataset, n, epoch, median, low, high, step)


def _figures(name: str, found: Sequence[TrainingCurve], styles: Mapping[str, MethodStyle]) -> Iterator[Picture]:
    """Yield the figures of a quantity, each with at most ``PANELS`` data sets and ``METHODS`` methods."""
    order = list(styles)
    parts: list[list[TrainingCurve]] = []
    for methods in in_groups(sorted({curve.method for curve in found}, key=order.index), METHODS):
        mine = [curve for curve in found if curve.method in methods]
        groups = in_groups(list(dict.fromkeys(curve.dataset for curve in mine)), PANELS)
        parts += [[curve for curve in mine if curve.dataset in datasets] for datasets in groups]
    for place, part in enumerate(parts):
        yield _figure(name, f"training-{name}{f'-{place + 1}' if len(parts) > 1 else ''}", part, styles)


class Scale(NamedTuple):
    """Limits and ticks of an axis."""

    limits: tuple[float, float]
    ticks: list[float]
    texts: list[str]
    log: bool

    @property
    def width(self) -> float:
        """Return the width of the longest label in inches."""
        return DIGIT * max((len(text) for text in self.texts), default=0)


@drawn_if_changed
def _figure(name: str, file: str, found: Sequence[TrainingCurve], styles: Mapping[str, MethodStyle]) -> Picture:
    title, unit = traced_quantities.words(name) or (name.replace("_", " "), "unit of the method")
    datasets = list(dict.fromkeys(curve.dataset for curve in found))
    drawn = [_as_fraction(curve) for curve in found] if name == "objective" else list(found)
    lengths = [float(curve.epoch[-1]) for curve in found]
    methods = list(styles)
    named = sorted({curve.method for curve in found}, key=methods.index)
    panels = [[curve for curve in drawn if curve.dataset == dataset] for dataset in datasets]
    heights = [_values(curves) for curves in panels]
    with mpl.rc_context(STYLE):
        figure, axes = _canvas(len(datasets), named, lower_first(title), unit, max(scale.width for scale in heights))
        for curves, height, ax in zip(panels, heights, axes, strict=True):
            _panel(ax, curves, styles, named)
            _set(ax, _epochs(curves, log=max(lengths) > 3.0 * min(lengths)), height)
        for ax in axes[-_columns(len(axes)) :]:
            ax.set_xlabel(steps(found))
        handles = {str(line.get_label()): line for ax in axes for line in ax.get_lines()}
        figure.legend(
            [handles[method] for method in named], named, loc="upper center", ncols=side_by_side(figure, named),
            frameon=False, borderaxespad=0.4, borderpad=0.1, labelspacing=0.3,
        )  # fmt: skip
    return finish(figure, file, _caption(name, title, found, bands=_bands(panels)))


def _canvas(panels: int, named: Sequence[str], title: str, unit: str, label: float) -> tuple[Figure, list[Axes]]:
    """Return a grid of panels below space for a legend. Tick labels are at most ``label`` inches wide.

    Axes are placed by hand, which is much faster than a layout engine.
    """
    columns = _columns(panels)
    rows = math.ceil(panels / columns)
    words = [*textwrap.wrap(title, WRAP), *textwrap.wrap(f"({unit})", WRAP)]
    left, gap, bottom, top = 0.2 + label + 0.15 * len(words), max(0.5, 0.2 + label), 0.5, 0.25
    across = max(WIDTH, (4.2 - left) / columns)
    size = [left + columns * across + (columns - 1) * gap + 0.15, rows * (top + HEIGHT + bottom)]
    figure = Figure(figsize=(size[0], 1.0))
    legend = 0.15 + LINE * math.ceil(len(named) / side_by_side(figure, named))
    size[1] += legend
    figure.set_size_inches((size[0], size[1]))
    axes = []
    for place in range(panels):
        row, column = divmod(place, columns)
        x, y = left + column * (across + gap), size[1] - legend - row * (top + HEIGHT + bottom) - top - HEIGHT
        axes.append(figure.add_axes((x / size[0], y / size[1], across / size[0], HEIGHT / size[1])))
    middle = 0.5 * (axes[0].get_position().y1 + axes[-1].get_position().y0)
    figure.text(0.08 / size[0], middle, "\n".join(words), rotation=90, ha="left", va="center", multialignment="center")
    return figure, axes


def _columns(panels: int) -> int:
    """Return the number of panels per row, equal for all rows but the last."""
    return math.ceil(panels / math.ceil(panels / COLUMNS))


def _bands(panels: Sequence[Sequence[TrainingCurve]]) -> bool:
    """Return whether ranges are bands in all panels of a figure; many bands would hide each other."""
    return max(len(curves) for curves in panels) <= BANDS


def _caption(name: str, title: str, found: Sequence[TrainingCurve], *, bands: bool) -> str:
    shown = "shaded" if bands else f"shaded in panels of at most {BANDS} methods, else a bar at the end"
    spread = f"median over the splits (line) and their range ({shown})" if any(c.n > 1 for c in found) else "one split"
    text = f"{title} by {steps(found)}: {spread}."
    if name == "objective":
        text += (
            " Objectives of different methods have different units. The curves show the fraction of the median's "
            "change from the first epoch (0) to the last (1)."
        )
    return text


def _as_fraction(curve: TrainingCurve) -> TrainingCurve:
    """Return a curve as fraction of its median's change from the first epoch to the last."""
    known = curve.median[np.isfinite(curve.median)]
    change = known[-1] - known[0] or float(np.ptp(known)) or 1.0
    median, low, high = ((values - known[0]) / change for values in (curve.median, curve.low, curve.high))
    low, high = np.minimum(low, high), np.maximum(low, high)
    return replace(curve, median=median, low=low, high=high)


def _panel(ax: Axes, found: Sequence[TrainingCurve], styles: Mapping[str, MethodStyle], named: Sequence[str]) -> None:
    """Draw the curves of one data set. The markers of the methods ``named`` are at different epochs."""
    bands = _bands([found])
    for curve in found:
        colour, marker, line = styles[curve.method]
        step = max(1, len(curve.epoch) // MARKS)
        if curve.n > 1 and bands:
            ax.fill_between(curve.epoch, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        elif curve.n > 1:
            ax.plot(curve.epoch[[-1, -1]], [curve.low[-1], curve.high[-1]], color=colour, linewidth=1.6, alpha=0.6)
        ax.plot(
            curve.epoch, curve.median, linestyle=line, color=colour, marker=marker, markersize=3.0, linewidth=1.0,
            markevery=(named.index(curve.method) * step // len(named), step), label=curve.method,
        )  # fmt: skip
    counts = sorted({curve.n for curve in found})
    splits = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    ax.set_title(f"{found[0].dataset} ({splits} split{'s' * (counts[-1] != 1)})")


def _epochs(found: Sequence[TrainingCurve], *, log: bool) -> Scale:
    last = max(float(curve.epoch[-1]) for curve in found)
    limits = (0.9, 1.1 * last) if log else (1.0 - 0.04 * last, 1.04 * last)
    return _scale(limits, log=log, integer=True)


def _values(found: Sequence[TrainingCurve]) -> Scale:
    """Return the axis of values by the medians. Ranges are cut if they would make the medians' changes invisible."""
    medians = np.concatenate([curve.median[np.isfinite(curve.median)] for curve in found])
    ranges = np.concatenate([v[np.isfinite(v)] for curve in found for v in (curve.low, curve.high)])
    low, high, bottom, top = (float(v) for v in (medians.min(), medians.max(), ranges.min(), ranges.max()))
    if low > 0.0 and high > 20.0 * low:
        factor = math.sqrt(high / low)
        return _scale((max(low / factor, bottom) / 1.15, min(high * factor, top) * 1.15), log=True)
    extra = 0.5 * (high - low) or abs(high) or 1.0
    low, high = max(low - extra, bottom), min(high + extra, top)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return _scale((low - margin, high + margin), log=False)


def _scale(limits: tuple[float, float], *, log: bool, integer: bool = False) -> Scale:
    """Return an axis with fixed ticks and numbers in plain digits."""
    subs = (1.0,) if limits[1] > 100.0 * limits[0] else (1.0, 2.0, 5.0)
    locator = LogLocator(subs=subs, numticks=6) if log else MaxNLocator(4, integer=integer)
    places = [float(value) for value in locator.tick_values(*limits) if limits[0] <= value <= limits[1]]
    return Scale(limits, places, (log_tick_texts if log else tick_texts)(places), log)


def _set(ax: Axes, horizontal: Scale, vertical: Scale) -> None:
    for axis, scale, name in ((ax.xaxis, horizontal, "x"), (ax.yaxis, vertical, "y")):
        ax.set(**{f"{name}scale": "log" if scale.log else "linear"})
        axis.set_minor_locator(NullLocator())
        axis.set_ticks(scale.ticks, scale.texts)
        ax.set(**{f"{name}lim": scale.limits})
