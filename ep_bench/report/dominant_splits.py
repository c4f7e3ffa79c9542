"""Means that one split dominates: without the split, the mean moves by more than the standard error of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Table, item
from ep_bench.report import summary
from ep_bench.report.merge import MergedStudies
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

FEWEST = 10  # splits; of fewer, one always has a large part of the mean


class DominantSplit(NamedTuple):
    """A split that dominates a mean: its score, and mean and standard error (ddof 0) of the other splits."""

    place: int
    score: float
    mean: float
    stderr: float


def dominant_split(scores: Array) -> DominantSplit | None:
    """Return the split of the scores (J,) whose removal moves the mean most, if by more than one standard error.

    The standard error is that of the other splits. Fewer than ``FEWEST`` splits give None.
    """
    if len(scores) < FEWEST:
        return None
    means = (scores.sum() - scores) / (len(scores) - 1)
    place = int(np.argmax(np.abs(means - scores.mean())))
    others = np.delete(scores, place)
    error = float(others.std() / np.sqrt(len(others)))
    if abs(others.mean() - scores.mean()) <= error:
        return None
    return DominantSplit(place, float(scores[place]), float(others.mean()), error)


def dominated_means(merged: MergedStudies, table: ScoreTable) -> Table | None:
    """Return the folded table of the entries whose mean one split dominates, None without any."""
    rows = list(_rows(merged, table))
    if not rows:
        return None
    caption = (
        f"Entries whose {table.score.inline} moves by more than the standard error of the other splits if one split is "
        f"left out; entries of at least {FEWEST} splits"
    )
    head = ["data set", "method", "mean", "split", "its score", "mean without it", "standard error without it"]
    return Table(head, rows, caption, f"Means that one split dominates: {len(rows)}")


def _rows(merged: MergedStudies, table: ScoreTable) -> Iterator[list[object]]:
    for dataset, part in summary.pivot(merged, table.score).groupby(level="dataset", sort=False):
        for method in part:
            values = part[method].dropna()
            found = dominant_split(values.to_numpy(dtype=float))
            if found is not None:
                split = int(values.index.get_level_values("split")[found.place])
                numbers = [item(with_minus(f"{value:.4g}"), value) for value in found[1:]]
                mean = float(values.mean())
                yield [
                    str(dataset), str(method), item(with_minus(f"{mean:.4g}"), mean), item(str(split), split),
                    *numbers,
                ]  # fmt: skip
