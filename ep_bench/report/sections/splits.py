"""Splits that are worse than others for many methods at once.

Each score is compared with the median over the splits of its method and data set, in robust standard deviations: 1.4826
times the median absolute deviation. The median and this deviation hardly depend on a few low splits, which would hide
one another in a mean and a standard deviation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.plotting.page import Section
from ep_bench.report import summary
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import listed
from ep_bench.report.scores import Score
from ep_bench.types import Array

ORDER = 35
ROBUST = 1.4826  # standard deviations per median absolute deviation of a normal distribution
LOW = 3.0  # robust standard deviations below the median
SHARE, FEWEST, SPLITS = 0.2, 3, 5  # methods for which a split that is named is low, and splits of a data set, at least


class LowSplits(NamedTuple):
    """The splits of a data set that are low for many methods at once, each with the number of these methods."""

    methods: int  # all methods
    counts: dict[int, int]

    @property
    def words(self) -> str:
        """Return the splits as subject and verb."""
        names = listed([str(split) for split in self.counts])
        return f"split {names} is" if len(self.counts) == 1 else f"splits {names} are"


def low_splits(report: ReportContext, score: Score) -> dict[str, LowSplits]:
    """Return the low splits of each data set with enough splits and two methods or more."""
    cells = summary.pivot(report.merged, score)
    sign = 1.0 if score.better == "higher" else -1.0
    found = {}
    for dataset in cells.index.unique("dataset"):
        scores = cells.loc[dataset].dropna(axis=1)
        if len(scores) >= SPLITS and scores.shape[1] > 1:
            counts = (_standardised(sign * scores.to_numpy(dtype=float).T) < -LOW).sum(axis=0).tolist()
            least = max(FEWEST, SHARE * scores.shape[1])
            low = {int(split): n for split, n in zip(scores.index, counts, strict=True) if n >= least}
            found[str(dataset)] = LowSplits(scores.shape[1], low)
    return found


def _standardised(scores: Array) -> Array:
    """Return scores (M, J) minus the median of each row, in robust standard deviations; 0 in rows without spread."""
    gaps = scores - np.median(scores, axis=1, keepdims=True)
    spread = ROBUST * np.median(np.abs(gaps), axis=1, keepdims=True)
    return np.divide(gaps, spread, out=np.zeros_like(gaps), where=spread > 0.0)


def sections(report: ReportContext) -> list[Section]:
    """Return the splits that are low for many methods at once, by the first score."""
    found = low_splits(report, report.leaderboards[0].score) if report.leaderboards else {}
    if not found:
        return []
    low = {dataset: one for dataset, one in found.items() if one.counts}
    lines = [_sentence(dataset, one) for dataset, one in low.items()]
    short = "; ".join(f"{dataset}: {one.words} low for many methods" for dataset, one in low.items())
    none = "no split is low for many methods at once"
    return [Section("splits", "Splits", lines or [f"{none.capitalize()}."], summary=short or none)]


def _sentence(dataset: str, one: LowSplits) -> str:
    counts = sorted(one.counts.values())
    number = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return (
        f"{dataset}: {one.words} low for {number} of {one.methods} methods"
        f"{' each' * (len(counts) > 1)}, more than {LOW:g} robust standard deviations below their medians."
    )
