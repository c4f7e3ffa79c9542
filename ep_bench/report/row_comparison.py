"""Methods held against one of them row by row, and their times against another's: studies with the key ``compare``.

Means over test rows have intervals by Bayesian bootstrap (Rubin 1981; Vehtari and Lampinen 2002): rows have Dirichlet
weights with all parameters 1, the same ones for all methods, so that a difference of means is that of each draw.
Jylanki, Vanhatalo and Vehtari (2011) show results so (figure 6), and times of inference relative to one method's as
mean and maximum over data sets (table 1).

Deviation: rows of all splits are drawn as if they were independent; those of one split share a fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from ep_bench import published
from ep_bench.plotting.axes import canvas, intervals
from ep_bench.plotting.page import Item, Picture, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report.experiments import ExperimentTable
from ep_bench.report.merge import MergedStudies
from ep_bench.report.scores import BY_NAME, Score
from ep_bench.results import row_scores
from ep_bench.types import Array

DRAWS, BLOCK = 4000, 250  # of the bootstrap, and how many at once
CENTRAL = 0.95  # of the intervals
# A row's score, and its mean's name; data sets of the other task have none of these.
SCORES = (("ll", "ll"), ("ae", "mae"), ("ll", "ll-classes"), ("error", "error_rate"))
METRIC = "cputime-relative-"


@dataclass(frozen=True)
class ScoreMeans:
    """Means of a score by method on one data set, M methods, with central intervals; NaN where there is none.

    ``mean``, ``low``, ``high`` (M,) are over all rows that a method has, ``differences`` and their limits (M,) over
    those that the reference has as well, the method's mean less the reference's. ``rows`` (M,) counts these.
    """

    dataset: str
    methods: tuple[str, ...]
    mean: Array
    low: Array
    high: Array
    difference: Array
    difference_low: Array
    difference_high: Array
    rows: NDArray[np.int64]

    def apart(self, method: int) -> bool:
        """Tell whether the interval of a method's difference leaves 0 out."""
        return bool(self.difference_low[method] > 0.0 or self.difference_high[method] < 0.0)


@dataclass(frozen=True)
class RowComparison:
    """The part of a report on methods held against one of them."""

    pictures: list[Picture]
    tables: list[ExperimentTable]


def collect(merged: MergedStudies) -> RowComparison | None:
    """Return the comparison that the first study with the key ``compare`` asks for, or None without one."""
    asked = [study.lock["compare"] for study in merged.studies if study.lock.get("compare")]
    if not asked:
        return None
    found = RowComparison([], [])
    reference, unit = asked[0].get("rows"), asked[0].get("times")
    if reference in merged.methods:
        kept = {key: row for study in merged.studies for key, row in row_scores.read(study.folder).items()}
        tasks = merged.tasks()
        for name, of_mean in SCORES:
            score = BY_NAME[of_mean]
            datasets = [dataset for dataset in merged.datasets if tasks.get(dataset) == score.task]
            means = [one for dataset in datasets if (one := _means(merged, kept, name, dataset, reference))]
            if means:
                found.pictures.append(picture(means, score, reference))
                found.tables.append(_table(means, score, reference))
    if unit in merged.methods:
        found.tables.extend(_times(merged, unit))
    return found if found.pictures or found.tables else None


# Means over rows


def bootstrap(scores: Array, draws: int = DRAWS, seed: int = 0) -> Array:
    """Return means (draws, M) of scores (M, N) under Dirichlet weights of the rows, the same for all M."""
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, draws, BLOCK):
        weights = rng.standard_exponential((min(BLOCK, draws - start), scores.shape[1]))
        parts.append(weights @ scores.T / weights.sum(axis=1, keepdims=True))
    return np.concatenate(parts)


def _means(
    merged: MergedStudies, kept: Mapping[str, row_scores.Scores], name: str, dataset: str, reference: str
) -> ScoreMeans | None:
    """Return the means of a data set, None where no method has rows."""
    cells = merged.cells()
    by_split = {
        method: {
            split: kept[key][name] for split, key in cells.get((method, dataset), {}).items() if _has(kept, key, name)
        }
        for method in merged.methods
    }
    methods = [method for method, splits in by_split.items() if splits]
    if not methods:
        return None
    columns = np.full((7, len(methods)), np.nan)
    own = by_split[reference]
    for j, method in enumerate(methods):
        splits = by_split[method]
        columns[:3, j] = _interval(_joined(splits, sorted(splits))[None])
        shared = sorted(splits.keys() & own.keys())
        if shared and method != reference:
            pair = np.stack([_joined(splits, shared), _joined(own, shared)])
            columns[3:6, j] = _interval(pair)
            columns[6, j] = pair.shape[1]
    mean, low, high, difference, difference_low, difference_high, rows = columns
    counts = np.nan_to_num(rows).astype(np.int64)
    return ScoreMeans(dataset, tuple(methods), mean, low, high, difference, difference_low, difference_high, counts)


def _has(kept: Mapping[str, row_scores.Scores], key: str, name: str) -> bool:
    return bool(kept.get(key, {}).get(name))


def _joined(splits: Mapping[int, Sequence[float]], order: Sequence[int]) -> Array:
    return np.concatenate([np.asarray(splits[split], dtype=np.float64) for split in order])


def _interval(scores: Array) -> tuple[float, float, float]:
    """Return the mean of scores (1, N), or of the first less the second of (2, N), and its central interval."""
    drawn = bootstrap(scores)
    values, mean = drawn[:, 0], float(scores[0].mean())
    if len(scores) == 2:
        values, mean = values - drawn[:, 1], mean - float(scores[1].mean())
    low, high = np.quantile(values, [0.5 - 0.5 * CENTRAL, 0.5 + 0.5 * CENTRAL])
    return mean, float(low), float(high)


def picture(means: Sequence[ScoreMeans], score: Score, reference: str) -> Picture:
    """Return two panels a data set: means with their intervals, and differences from the reference with theirs."""
    names = list(dict.fromkeys(method for one in means for method in one.methods))
    with mpl.rc_context(STYLE):
        figure, axes = canvas(2 * len(means), names, width=2.3, most=2)
        cut = []
        for one, left, right in zip(means, axes[::2], axes[1::2], strict=True):
            lines = np.array([names.index(method) for method in one.methods])
            left.set_title(one.dataset)
            left.set_xlabel(score.axis)
            cut.append(intervals(left, one.mean, one.low, one.high, lines))
            right.set_title(f"{one.dataset}, less {reference}")
            right.set_xlabel(f"difference ({score.unit})")
            right.axvline(0.0, color="black", linewidth=0.8, linestyle="--")
            cut.append(intervals(right, one.difference, one.difference_low, one.difference_high, lines))
    caption = (
        f"{score.title} over all test rows, {score.direction}, and the difference from {reference} row by row: means "
        f"with central {100.0 * CENTRAL:g} % intervals by Bayesian bootstrap of the rows. As in figure 6 of Jylänki "
        "and others (2011)." + (" An arrow: beyond the panel." if any(cut) else "")
    )
    return finish(figure, f"rows-{score.name}", caption)


def _table(means: Sequence[ScoreMeans], score: Score, reference: str) -> ExperimentTable:
    head = ["method", *(text for one in means for text in (one.dataset, f"{one.dataset}, less {reference}"))]
    names = list(dict.fromkeys(method for one in means for method in one.methods))
    rows = [[name, *(entry for one in means for entry in _entries(one, name))] for name in names]
    caption = (
        f"{score.axis}: means over all test rows and the differences from {reference} on the rows that both have, with "
        f"central {100.0 * CENTRAL:g} % intervals by Bayesian bootstrap. Bold: the interval of a difference leaves 0 "
        "out"
    )
    return ExperimentTable(head, rows, caption)


def _entries(one: ScoreMeans, name: str) -> Iterator[Item]:
    if name not in one.methods:
        yield from (item("–", ""), item("–", ""))
        return
    j = one.methods.index(name)
    yield _entry(one.mean[j], one.low[j], one.high[j])
    yield _entry(one.difference[j], one.difference_low[j], one.difference_high[j], strong=one.apart(j))


def _entry(mean: float, low: float, high: float, *, strong: bool = False) -> Item:
    if not math.isfinite(mean):
        return item("–", "")
    digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
    text = f"{mean:.{digits}f}"
    return item(text, float(mean), strong=strong, small=f"{low:.{digits}f} to {high:.{digits}f}")


# Times


def _times(merged: MergedStudies, unit: str) -> Iterator[ExperimentTable]:
    """Yield the table of times relative to a method's, where its times are known on a data set."""
    rows = merged.ok()
    spent = rows.assign(seconds=rows["fit_seconds"] + rows["predict_seconds"])
    seconds = spent.groupby(["method", "dataset"])["seconds"].mean()
    datasets = [dataset for dataset in merged.datasets if (unit, dataset) in seconds.index]
    if not datasets:
        return
    published_times = _published(merged)
    kinds = [kind for kind in ("mean", "max") if any(kind in numbers for numbers in published_times.values())]
    body = []
    for method in merged.methods:
        shares = {d: seconds[method, d] / seconds[unit, d] for d in datasets if (method, d) in seconds.index}
        known = np.array(list(shares.values()))
        entries = [_share(shares.get(dataset, math.nan)) for dataset in datasets]
        entries += [_share(float(known.mean()) if len(known) == len(datasets) else math.nan)]
        entries += [_share(float(known.max()) if len(known) == len(datasets) else math.nan)]
        printed = [item(published_times[method].get(kind, "–") if method in published_times else "–") for kind in kinds]
        body.append([method, *entries, *printed])
    head = ["method", *datasets, "mean", "max", *(f"published {kind}" for kind in kinds)]
    caption = (
        f"Times of fit and prediction on one core, means over splits, relative to {unit}: by data set, mean and maximum"
    )
    sources = dict.fromkeys(numbers["source"] for numbers in published_times.values())
    yield ExperimentTable(head, body, caption + "".join(f". Published: {source}" for source in sources))


def _share(value: float) -> Item:
    return item(f"{value:.2g}" if value < 100.0 else f"{value:.0f}", value) if math.isfinite(value) else item("–", "")


def _published(merged: MergedStudies) -> dict[str, dict[str, str]]:
    """Return the printed relative times by the methods that answer to their columns, and where they stand."""
    columns = {
        method: entry.get("published") or ()
        for study in merged.studies
        for method, entry in study.lock.get("methods", {}).items()
    }
    found: dict[str, dict[str, str]] = {}
    for row in published.described_rows():
        for method, names in columns.items():
            if row["metric"].startswith(METRIC) and row["method"] in names:
                source = f"{row['citation'].strip()} ({row['protocol'].strip()})"
                numbers = found.setdefault(method, {"source": source})
                numbers[row["metric"].removeprefix(METRIC)] = row["printed_mean"]
    return found
