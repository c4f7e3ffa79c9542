"""Splits that are worse than others for many methods at once: a map of splits and methods of each data set.

Each score is compared with the median over the splits of its method and data set, in robust standard deviations: 1.4826
times the median absolute deviation. The median and this deviation hardly depend on a few low splits, which would hide
one another in a mean and a standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report import summary
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import listed
from ep_bench.report.scores import Score
from ep_bench.types import Array

ORDER = 35
ROBUST = 1.4826  # standard deviations per median absolute deviation of a normal distribution
LOW = 3.0  # robust standard deviations below the median
SHARE, FEWEST, SPLITS = 0.2, 3, 5  # methods for which a split that is named is low, and splits of a data set, at least
SATURATED = 6.0  # robust standard deviations with the strongest colour
CAPTION = (
    "{score} on {dataset}: difference from the median over the splits of each method, in robust standard deviations "
    "(1.4826 × median absolute deviation), written from 3 below the median. Orange is worse, blue is better. Methods "
    "are sorted by rank."
)


class SplitMap(NamedTuple):
    """Standardised scores of M methods on the J splits of a data set, positive if better than the median."""

    methods: tuple[str, ...]
    splits: tuple[int, ...]
    z: Array  # (M, J)

    @property
    def low(self) -> dict[int, int]:
        """Return the splits that are low for many methods at once, each with the number of these methods."""
        counts = (self.z < -LOW).sum(axis=0)
        least = max(FEWEST, SHARE * len(self.methods))
        return {split: int(count) for split, count in zip(self.splits, counts, strict=True) if count >= least}


def split_maps(report: ReportContext, score: Score) -> dict[str, SplitMap]:
    """Return the map of each data set with enough splits and two methods or more, sorted by rank."""
    cells = summary.pivot(report.merged, score)
    board = next(board for board in report.leaderboards if board.score == score)
    sign = 1.0 if score.better == "higher" else -1.0
    found = {}
    for dataset in cells.index.unique("dataset"):
        scores = cells.loc[dataset].dropna(axis=1)
        names = tuple(row.method for row in board.rows if row.method in scores)
        if len(scores) >= SPLITS and len(names) > 1:
            z = _standardised(sign * scores[list(names)].to_numpy(dtype=float).T)
            found[str(dataset)] = SplitMap(names, tuple(map(int, scores.index)), z)
    return found


def _standardised(scores: Array) -> Array:
    """Return scores (M, J) minus the median of each row, in robust standard deviations; 0 in rows without spread."""
    gaps = scores - np.median(scores, axis=1, keepdims=True)
    spread = ROBUST * np.median(np.abs(gaps), axis=1, keepdims=True)
    return np.divide(gaps, spread, out=np.zeros_like(gaps), where=spread > 0.0)


def sections(report: ReportContext) -> list[Section]:
    """Return the maps of the first score, with the splits that are low for many methods at once."""
    if not report.leaderboards:
        return []
    score = report.leaderboards[0].score
    maps = split_maps(report, score)
    if not maps:
        return []
    lines = [_sentence(dataset, one) for dataset, one in maps.items() if one.low]
    lines = lines or ["No split is low for many methods at once."]
    tables = [_table(dataset, one, score) for dataset, one in maps.items()]
    return [Section("splits", "Splits", lines, tables=tables, summary=_in_short(maps))]


def _sentence(dataset: str, one: SplitMap) -> str:
    counts = sorted(one.low.values())
    number = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return (
        f"{dataset}: {_splits(one)} low for {number} of {len(one.methods)} methods"
        f"{' each' * (len(counts) > 1)}, more than {LOW:g} robust standard deviations below their medians."
    )


def _in_short(maps: Mapping[str, SplitMap]) -> str:
    low = [f"{dataset}: {_splits(one)} low for many methods" for dataset, one in maps.items() if one.low]
    return "; ".join(low) or "no split is low for many methods at once"


def _splits(one: SplitMap) -> str:
    names = listed([str(split) for split in one.low])
    return f"split {names} is" if len(one.low) == 1 else f"splits {names} are"


def _table(dataset: str, one: SplitMap, score: Score) -> Table:
    rows = [
        [item(method, kind="") | {"method": method}, *map(_entry, values)]
        for method, values in zip(one.methods, one.z.tolist(), strict=True)
    ]
    head = ["method", *map(str, one.splits)]
    return Table(head, rows, CAPTION.format(score=score.title, dataset=dataset), folded=dataset)


def _entry(z: float) -> Item:
    text = f"{z:.0f}" if z <= -LOW else ""
    part = min(abs(z) / SATURATED, 1.0)
    name = "low" if z < 0.0 else "part"
    style = f"--{name}:{part:.1f}" if math.isfinite(z) and part >= 0.05 else ""
    return item(text, kind="z") | {"style": style}
