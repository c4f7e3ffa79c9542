"""Distances of predictive distributions from the one that stands for the truth: the table of an experiment's page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ep_bench.plotting.page import Item, item

REGIONS = {"": "whole grid", "_inside": "inside the data", "_outside": "outside"}
DISTANCE, EXPECTED, EXCESS = "wasserstein", "crps", "crps_excess"
COLUMNS = frozenset(name + region for name in (DISTANCE, EXPECTED, EXCESS) for region in REGIONS)
CAPTION = (
    "Distance from {reference}, the reference: predictive distributions of an observation, noise included, each "
    "beside the reference's; means over the points of the grid, all, those in the range of the data and those outside "
    "of it, in the unit of y; nearest on the whole grid first. W1: 1-Wasserstein distance, the area between the two "
    "distribution functions. CRPS: expected where observations come from the reference; in small, its excess over the "
    "reference's own, which is the least that a prediction can have."
)


def table(
    rows: Sequence[Mapping[str, str]], reference: str, judgement: Mapping[str, float]
) -> tuple[list[str], list[list[Item]], str]:
    """Return head, rows (nearest first, the reference above all) and caption, from a summary's rows by column.

    ``judgement`` says by name how far the reference itself can be believed, where it is a sampler.

    The order by expected CRPS in a region is that by its excess too, the reference's own being the same for all.
    """
    regions = [region for region in REGIONS if rows and rows[0].get(DISTANCE + region)]
    head = ["method", *(f"{name} {REGIONS[region]}" for name in ("W1", "CRPS") for region in regions)]
    ordered = sorted(rows, key=lambda row: (row["method"] != reference, _number(row, DISTANCE)))
    body = [_row(row, regions, row["method"] == reference) for row in ordered]
    return head, body, CAPTION.format(reference=reference) + _believed(judgement)


def _believed(judgement: Mapping[str, float]) -> str:
    """Return the sentence on the reference's own Monte Carlo error."""
    if "r_hat_predictions" not in judgement:
        return ""
    halves = (f"{_short(judgement['halves' + r])} {words}" for r, words in REGIONS.items() if "halves" + r in judgement)
    return (
        f" The reference's own chains, at the worst point of the grid: R-hat {judgement['r_hat_predictions']:.3f}, "
        f"bulk effective sample size {judgement['ess_bulk_predictions']:.0f}; {judgement['divergences']:.0f} "
        f"divergent trajectories; W1 between the two halves of its chains: {', '.join(halves)}."
    )


def _row(row: Mapping[str, str], regions: Sequence[str], truth: bool) -> list[Item]:
    name = item(row["method"], row["method"], strong=truth, small="reference" if truth else "", kind="")
    cells = [item(_short(value), value) for value in (_number(row, DISTANCE + region) for region in regions)]
    for region in regions:
        expected, excess = _number(row, EXPECTED + region), _number(row, EXCESS + region)
        cells.append(item(_short(expected), expected, small="" if truth else f"+{_short(excess)}"))
    return [name, *cells]


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row.get(column, ""))
    except ValueError:
        return math.inf  # behind all others


def _short(value: float) -> str:
    """Return three digits, those at the end too, so that a column's lengths show its sizes."""
    if not math.isfinite(value):
        return "–"
    return f"{value:#.3g}".removesuffix(".") if value else "0"
