"""Comparison of methods with a reference method per test data point, and relative times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np

from ep_bench.plotting.axes import canvas, intervals
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report import row_comparison
from ep_bench.report.context import ReportContext
from ep_bench.report.row_comparison import CENTRAL, RelativeTimes, ScoreMeans
from ep_bench.report.scores import Score
from ep_bench.report.sections.ranks import DIFFERENT

REPEATING = {"standard", "shuffle", "gap"}  # schemes whose test sets overlap
INTERVALS = f"central {100.0 * CENTRAL:g} % intervals by Bayesian bootstrap"


def sections(report: ReportContext) -> list[Section]:
    """Return the comparison that a study defines with the key ``compare``, if there is one."""
    merged = report.merged
    requested = row_comparison.requested(merged)
    reference, unit = requested.get("rows", ""), requested.get("times", "")
    pictures, tables, notes = [], [], []
    if reference in merged.methods:
        for score, means in row_comparison.score_means(merged, reference):
            pictures.append(_picture(means, score, reference, report))
            tables.append(_table(means, score, reference, report))
        notes += [*_unconverged_reference(report, reference), *_repeated_points(report)] if tables else []
    times = row_comparison.relative_times(merged, unit) if unit in merged.methods else None
    tables += [_times(times)] if times else []
    if not pictures and not tables:
        return []
    notes += report.time_notes if times else []
    return [Section("compared", "Comparison per data point", (), pictures, tables, notes)]


def _unconverged_reference(report: ReportContext, reference: str) -> list[str]:
    """Return a warning if the reference has not converged on every split."""
    found = [
        f"{splits.shortfall} on {dataset}"
        for (method, dataset), splits in report.merged.convergence.items()
        if method == reference and splits.shortfall
    ]
    if not found:
        return []
    where = f"The reference {report.label(reference)} has not converged on every split ({', '.join(found)})"
    return [f"{where}: differences from it are not differences from the exact posterior distribution."]


def _repeated_points(report: ReportContext) -> list[str]:
    """Return a warning if a data point can be a test point of several splits."""
    schemes = {str((study.lock.get("splits") or {}).get("scheme")) for study in report.merged.studies}
    found = sorted(schemes & REPEATING)
    if not found:
        return []
    what = f"Splits: {', '.join(found)}. A data point is a test point of several splits and counts each time"
    return [f"{what}: intervals are too narrow, and {DIFFERENT} occurs too often. With kfold, it counts once."]


def _methods(means: Sequence[ScoreMeans]) -> list[str]:
    return list(dict.fromkeys(method for one in means for method in one.methods))


def _picture(means: Sequence[ScoreMeans], score: Score, reference: str, report: ReportContext) -> Picture:
    """Return two panels per data set: means and differences from the reference, with intervals."""
    names = _methods(means)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(2 * len(means), [report.label(name) for name in names], width=2.3, columns=2)
        cut = []
        for one, left, right in zip(means, axes[::2], axes[1::2], strict=True):
            lines = np.array([names.index(method) for method in one.methods])
            shown = [report.styles[method] for method in one.methods]
            left.set_title(one.dataset)
            left.set_xlabel(score.axis)
            cut.append(intervals(left, one.mean, one.low, one.high, lines, shown))
            right.set_title(f"{one.dataset}, minus {report.label(reference)}")
            right.set_xlabel(f"difference ({score.unit})")
            right.axvline(0.0, color="black", linewidth=0.8, linestyle="--")
            cut.append(intervals(right, one.difference, one.difference_low, one.difference_high, lines, shown))
    caption = (
        f"{score.title} over all test data points ({score.direction}), and the difference from "
        f"{report.label(reference)} on common data points: means with {INTERVALS}, as in figure 6 of Jylänki and "
        "others (2011)." + (" An arrow marks a mean outside the panel." if any(cut) else "")
    )
    return finish(figure, f"rows-{score.name}", caption)


def _table(means: Sequence[ScoreMeans], score: Score, reference: str, report: ReportContext) -> Table:
    marked = report.label(reference)
    head = ["method", *(text for one in means for text in (one.dataset, f"{one.dataset}, minus {marked}"))]
    rows = [
        [report.label(name), *(entry for one in means for entry in _entries(one, name))] for name in _methods(means)
    ]
    caption = (
        f"{score.axis}: means over all test data points and differences from {marked} on common data points, with "
        f"{INTERVALS}. {DIFFERENT.strip()}: the interval of a difference excludes 0"
    )
    return Table(head, rows, caption)


def _entries(one: ScoreMeans, name: str) -> Iterator[Item]:
    """Yield the mean and the difference of a method on one data set."""
    if name not in one.methods:
        yield from (item("–", ""), item("–", ""))
        return
    j = one.methods.index(name)
    yield _entry(one.mean[j], one.low[j], one.high[j])
    yield _entry(
        one.difference[j], one.difference_low[j], one.difference_high[j], mark=DIFFERENT if one.differs(j) else ""
    )


def _entry(mean: float, low: float, high: float, mark: str = "") -> Item:
    if not math.isfinite(mean):
        return item("–", "")
    digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
    text = f"{mean:.{digits}f}"
    return item(text + mark, float(mean), small=f"{low:.{digits}f} to {high:.{digits}f}")


def _times(times: RelativeTimes) -> Table:
    """Return the table of relative times: per data set, mean and maximum, and the published ones."""
    kinds = [kind for kind in ("mean", "max") if any(kind in numbers for numbers in times.printed.values())]
    rows: list[list[str | Item]] = []
    for method, ratios in times.ours.items():
        complete = len(ratios) == len(times.datasets)
        values = [ratios.get(dataset, math.nan) for dataset in times.datasets]
        values += [float(np.mean(values)), float(np.max(values))] if complete else [math.nan, math.nan]
        printed = [item(times.printed.get(method, {}).get(kind, "–")) for kind in kinds]
        wall = [(method, dataset) in times.wall for dataset in times.datasets]
        rows.append([method, *map(_ratio, values, [*wall, any(wall), any(wall)]), *printed])
    head = ["method", *times.datasets, "mean", "max", *(f"published {kind}" for kind in kinds)]
    caption = (
        f"CPU times of tuning, fit and prediction relative to {times.unit}: means over the common splits by data set, "
        "and their mean and maximum"
    ) + ". w: wall times, because some rows have no CPU times" * bool(times.wall)
    sources = dict.fromkeys(numbers["source"] for numbers in times.printed.values())
    return Table(head, rows, caption + "".join(f". Published: {source}" for source in sources))


def _ratio(value: float, wall: bool) -> Item:
    text = f"{value:.2g}" if value < 100.0 else f"{value:.0f}"
    return item(text + " w" * wall, value) if math.isfinite(value) else item("–", "")
