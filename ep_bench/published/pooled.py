"""Scores in units of the standardised target, pooled over the test points of all splits.

Let s be the standard deviation of the training targets of a cell. A log density ll becomes ll + log s, and a squared
error se becomes se / s^2. Mean and standard deviation over the points of all cells are computed exactly from those of
each cell; percentiles need the scores of single points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ep_bench.convergence import number

DENSITY, SQUARE = "lpd-mean", "se-mean"


class ScoreMoments(NamedTuple):
    """Mean and standard deviation (ddof 0) of a score over test points, and the number of points."""

    mean: float
    deviation: float
    points: int


def moments(metric: str, cell: Mapping[str, Any]) -> ScoreMoments:
    """Return the moments of a published metric over the test points of a cell, from its row of results.csv.

    ``lpd-mean`` and ``se-mean`` refer to the standardised target. Other metrics are columns of results.csv, for which
    only the mean is known. Moments are nan if the row does not have the columns that they need.
    """
    scale, points = number(cell.get("target_std")), number(cell.get("n_test"))
    count = 0 if math.isnan(points) else int(points)
    if metric not in {DENSITY, SQUARE}:
        return ScoreMoments(number(cell.get(metric)), math.nan, count)
    if not scale > 0.0:
        return ScoreMoments(math.nan, math.nan, count)
    if metric == DENSITY:
        return ScoreMoments(number(cell.get("ll")) + math.log(scale), number(cell.get("ll_std")), count)
    return ScoreMoments((number(cell.get("rmse")) / scale) ** 2, number(cell.get("se_std")) / scale**2, count)


def pooled(parts: Sequence[ScoreMoments]) -> ScoreMoments:
    """Return the moments over the points of all parts, nan if there are no points."""
    points = sum(part.points for part in parts)
    if not points:
        return ScoreMoments(math.nan, math.nan, 0)
    mean = math.fsum(part.points * part.mean for part in parts) / points
    squares = math.fsum(part.points * (part.deviation**2 + (part.mean - mean) ** 2) for part in parts)
    return ScoreMoments(mean, math.sqrt(squares / points), points)


def normalised(
    cells: Iterable[Mapping[str, Any]], rows: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[list[float], list[float]] | None:
    """Return log densities and squared errors of all test points of the cells, for the standardised target.

    ``rows`` maps the hash of a cell to the log densities ``ll`` and absolute errors ``ae`` of its test points, in
    original units. The result is None if ``rows`` does not have all cells.
    """
    densities: list[float] = []
    squares: list[float] = []
    for cell in cells:
        scale, scores = number(cell.get("target_std")), rows.get(str(cell.get("cell")), {})
        if not scale > 0.0 or not {"ll", "ae"} <= scores.keys():
            return None
        densities += [value + math.log(scale) for value in scores["ll"]]
        squares += [(value / scale) ** 2 for value in scores["ae"]]
    return densities, squares
