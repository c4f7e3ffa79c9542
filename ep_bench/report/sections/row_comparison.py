"""Comparison of methods with a reference method per data point, and relative times: the study's key ``compare``.

Means over test data points have intervals by Bayesian bootstrap (Rubin 1981; Vehtari and Lampinen 2002): data points
have Dirichlet weights with all parameters 1. All methods use the same weights, so that a difference of means is that of
each draw. Jylänki, Vanhatalo and Vehtari (2011) show such intervals (figure 6), and inference times relative to one
method as mean and maximum over data sets (table 1).

Deviation: data points of all splits are drawn as if they were independent, although those of one split depend on the
same fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.plotting.axes import canvas, intervals
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish, towards_better
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies, cpu_seconds
from ep_bench.report.scores import BY_NAME, Score
from ep_bench.results import row_scores
from ep_bench.types import Array

ORDER = 60
DRAWS, BLOCK = 4000, 250  # draws of the bootstrap, and draws per block
CENTRAL = 0.95  # probability of the intervals
# The score of a data point and the name of its mean. Data sets of the other task have none of these.
SCORES = (("ll", "ll"), ("ae", "mae"), ("ll", "ll-classes"), ("error", "error_rate"))
DIFFERENT = " ≠"  # marks differences whose interval excludes 0
METRIC = "cputime-relative-"


@dataclass(frozen=True)
class ScoreMeans:
    """Means of a score of M methods on one data set, with central intervals; NaN for missing values."""

    dataset: str
    methods: tuple[str, ...]
    mean: Array  # (M,), over all test data points of a method
    low: Array  # (M,)
    high: Array  # (M,)
    difference: Array  # (M,), method minus reference, over their common data points
    difference_low: Array  # (M,)
    difference_high: Array  # (M,)

    def differs(self, method: int) -> bool:
        """Return whether the interval of a method's difference excludes 0."""
        return bool(self.difference_low[method] > 0.0 or self.difference_high[method] < 0.0)


@dataclass(frozen=True)
class RelativeTimes:
    """Times of tuning, fit and prediction relative to those of one method, by means over the common splits.

    ``ours`` has one value per method and data set (absent without common splits), ``printed`` the published mean and
    maximum by method.
    """

    unit: str
    datasets: list[str]
    ours: dict[str, dict[str, float]]
    printed: dict[str, dict[str, str]]


def requested(merged: MergedStudies) -> Mapping[str, str]:
    """Return the first study's ``compare``: the report's labels of the methods ``rows`` and ``times``, or nothing."""
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        if labels := study.lock.get("compare"):
            return {what: merged.names.get((tag, label), label) for what, label in labels.items()}
    return {}


def score_means(merged: MergedStudies, reference: str) -> Iterator[tuple[Score, list[ScoreMeans]]]:
    """Yield the means on each data set by score, for the scores with stored data points."""
    kept = {key: row for study in merged.studies for key, row in row_scores.read(study.folder).items()}
    tasks = merged.tasks()
    for name, of_mean in SCORES:
        score = BY_NAME[of_mean]
        datasets = [dataset for dataset in merged.datasets if tasks.get(dataset) == score.task]
        means = [one for dataset in datasets if (one := _means(merged, kept, name, dataset, reference))]
        if means:
            yield score, means


def bootstrap(scores: Array, draws: int = DRAWS) -> Array:
    """Return means (draws, M) of scores (M, N) under Dirichlet weights of the N data points, equal for all M."""
    rng = np.random.default_rng(0)
    blocks = []
    for start in range(0, draws, BLOCK):
        weights = rng.standard_exponential((min(BLOCK, draws - start), scores.shape[1]))
        blocks.append(weights @ scores.T / weights.sum(axis=1, keepdims=True))
    return np.concatenate(blocks)


def _means(
    merged: MergedStudies, kept: Mapping[str, row_scores.Scores], name: str, dataset: str, reference: str
) -> ScoreMeans | None:
    """Return the means on a data set, None if no method has stored data points."""
    cells = merged.cells
    by_split = {
        method: {
            split: kept[key][name] for split, key in cells.get((method, dataset), {}).items() if _has(kept, key, name)
        }
        for method in merged.methods
    }
    methods = [method for method, splits in by_split.items() if splits]
    if not methods:
        return None
    columns = np.full((6, len(methods)), np.nan)  # in the order of the fields of ScoreMeans
    of_reference = by_split[reference]
    for j, method in enumerate(methods):
        splits = by_split[method]
        columns[:3, j] = _interval(_joined(splits, sorted(splits))[None])
        common = sorted(splits.keys() & of_reference.keys())
        if common and method != reference:
            pair = np.stack([_joined(splits, common), _joined(of_reference, common)])
            columns[3:, j] = _interval(pair)
    return ScoreMeans(dataset, tuple(methods), *columns)


def _has(kept: Mapping[str, row_scores.Scores], key: str, name: str) -> bool:
    return bool(kept.get(key, {}).get(name))


def _joined(splits: Mapping[int, Sequence[float]], order: Sequence[int]) -> Array:
    """Return the scores of several splits as one array."""
    return np.concatenate([np.asarray(splits[split], dtype=np.float64) for split in order])


def _interval(scores: Array) -> tuple[float, float, float]:
    """Return the mean of scores (1, N), or of the difference of two (2, N), and its central interval."""
    drawn = bootstrap(scores)
    values, mean = drawn[:, 0], float(scores[0].mean())
    if len(scores) == 2:
        values, mean = values - drawn[:, 1], mean - float(scores[1].mean())
    low, high = np.quantile(values, [0.5 - 0.5 * CENTRAL, 0.5 + 0.5 * CENTRAL])
    return mean, float(low), float(high)


def relative_times(merged: MergedStudies, unit: str) -> RelativeTimes | None:
    """Return the times of all methods divided by those of ``unit``, or None if it has no finished cells."""
    groups = {key: rows.set_index("split") for key, rows in merged.ok().groupby(["method", "dataset"])}
    datasets = [dataset for dataset in merged.datasets if (unit, dataset) in groups]
    if not datasets:
        return None
    ours: dict[str, dict[str, float]] = {method: {} for method in merged.methods}
    for method, dataset in ((method, d) for method in merged.methods for d in datasets if (method, d) in groups):
        pair = [cpu_seconds(groups[name, dataset]).dropna() for name in (method, unit)]
        times = pd.concat(pair, axis=1, join="inner")
        if len(times):
            own, of_unit = times.mean(axis=0)
            ours[method][dataset] = float(own / of_unit) if of_unit > 0.0 else math.nan
    return RelativeTimes(unit, datasets, ours, _published(merged))


def _published(merged: MergedStudies) -> dict[str, dict[str, str]]:
    """Return the published relative times of each method (``mean``, ``max``) and their ``source``."""
    columns = merged.published_columns()
    found: dict[str, dict[str, str]] = {}
    for row in published.described_rows():
        for method, names in columns.items():
            if row["metric"].startswith(METRIC) and row["method"] in names:
                source = f"{row['citation'].strip()} ({row['protocol'].strip()})"
                numbers = found.setdefault(method, {"source": source})
                numbers[row["metric"].removeprefix(METRIC)] = row["printed_mean"]
    return found


REPEATING = {"standard", "shuffle", "gap", "tails"}  # schemes whose test sets overlap
INTERVALS = f"central {100.0 * CENTRAL:g} % intervals by Bayesian bootstrap"


def sections(report: ReportContext) -> list[Section]:
    """Return the comparison that a study defines with the key ``compare``, if there is one."""
    merged = report.merged
    labels = requested(merged)
    reference, unit = labels.get("rows", ""), labels.get("times", "")
    pictures, tables, notes = [], [], []
    if reference in merged.methods:
        for score, means in score_means(merged, reference):
            pictures.append(_picture(means, score, reference, report))
            tables.append(_table(means, score, reference, report))
        notes += _repeated_points(report) if tables else []
    times = relative_times(merged, unit) if unit in merged.methods else None
    tables += [_times(times)] if times else []
    if not pictures and not tables:
        return []
    notes += report.time_notes if times else []
    return [Section("compared", "Comparison per data point", (), pictures, tables, notes)]


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
    known = _methods(means)
    names = [name for name in report.by_rank(score) if name in known]
    with mpl.rc_context(STYLE):
        figure, axes = canvas(2 * len(means), names, [report.styles[name] for name in names], width=2.3, columns=2)
        cut = []
        for one, left, right in zip(means, axes[::2], axes[1::2], strict=True):
            lines = np.array([names.index(method) for method in one.methods])
            shown = [report.marked_styles[method] for method in one.methods]
            left.set_title(one.dataset)
            left.set_xlabel(towards_better(score.axis, score.better))
            cut.append(intervals(left, one.mean, one.low, one.high, lines, shown))
            right.set_title(f"{one.dataset}, minus {reference}")
            right.set_xlabel(towards_better(f"difference ({score.unit})", score.better))
            right.axvline(0.0, color="black", linewidth=0.8, linestyle="--")
            cut.append(intervals(right, one.difference, one.difference_low, one.difference_high, lines, shown))
    caption = (
        f"{score.title} over all test data points, and the difference from {reference} on common data points: means "
        f"with {INTERVALS}, as in figure 6 of Jylänki and others (2011)."
        + " An arrow marks a mean outside the panel." * any(cut)
        + report.hollow_note
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
        rows.append([method, *map(_ratio, values), *printed])
    head = ["method", *times.datasets, "mean", "max", *(f"published {kind}" for kind in kinds)]
    caption = (
        f"CPU times of tuning, fit and prediction relative to {times.unit}: means over the common splits by data set, "
        "and their mean and maximum"
    )
    sources = dict.fromkeys(numbers["source"] for numbers in times.printed.values())
    return Table(head, rows, caption + "".join(f". Published: {source}" for source in sources))


def _ratio(value: float) -> Item:
    text = f"{value:.2g}" if value < 100.0 else f"{value:.0f}"
    return item(text, value) if math.isfinite(value) else item("–", "")
