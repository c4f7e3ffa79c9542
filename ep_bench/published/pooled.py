"""Scores of the standardised target over all test points of all splits, as tables of cross-validation print them.

With a cell's target deviation s, of the training rows, a log density becomes ll + log s and a squared error se / s^2.
Mean and deviation over the points of all cells follow from those of each, exactly; percentiles take the points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DENSITY, SQUARE = "lpd-mean", "se-mean"


class ScoreMoments(NamedTuple):
    """Of a score over test points: mean, deviation (ddof 0) and how many points they are."""

    mean: float
    deviation: float
    points: int


def moments(metric: str, cell: Mapping[str, Any]) -> ScoreMoments:
    """Return the moments of a published metric over a cell's test points, from its row of results.csv.

    ``lpd-mean`` and ``se-mean`` are of the standardised target; others are columns, of which the mean alone is known.
    NaN where the row lacks what they take; so is the deviation alone where ``ll_std`` or ``se_std`` is missing.
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
    """Return the moments over the points of all parts together, NaN without any."""
    points = sum(part.points for part in parts)
    if not points:
        return ScoreMoments(math.nan, math.nan, 0)
    mean = math.fsum(part.points * part.mean for part in parts) / points
    squares = math.fsum(part.points * (part.deviation**2 + (part.mean - mean) ** 2) for part in parts)
    return ScoreMoments(mean, math.sqrt(squares / points), points)


def normalised(
    cells: Iterable[Mapping[str, Any]], rows: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[list[float], list[float]] | None:
    """Return log densities and squared errors of the standardised target, of all test points of the cells.

    ``rows`` has by a cell's hash the log density ``ll`` and the absolute error ``ae`` of its test points, in original
    units. None where a cell is not among them.
    """
    densities: list[float] = []
    squares: list[float] = []
    for cell in cells:
        scale, kept = number(cell.get("target_std")), rows.get(str(cell.get("cell")), {})
        if not scale > 0.0 or not {"ll", "ae"} <= kept.keys():
            return None
        densities += [value + math.log(scale) for value in kept["ll"]]
        squares += [(value / scale) ** 2 for value in kept["ae"]]
    return densities, squares


def number(value: Any) -> float:
    """Return an entry of results.csv as a number, NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
