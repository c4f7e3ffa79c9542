"""Table of distances between the predictive distributions of methods and of the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ep_bench.plotting.page import Item, Table, item

REGIONS = {"": "whole grid", "_inside": "inside the data", "_outside": "outside"}
DISTANCE, EXPECTED, EXCESS = "wasserstein", "crps", "crps_excess"
COLUMNS = frozenset(name + region for name in (DISTANCE, EXPECTED, EXCESS) for region in REGIONS)
CAPTION = (
    "Distance from {reference}, the reference: predictive distributions of an observation, noise included. Means over "
    "the whole grid, the points inside the range of the data, and the points outside, in the unit of y; sorted by the "
    "distance on the whole grid. W1: 1-Wasserstein distance, the area between the two distribution functions. CRPS: "
    "expected if observations come from the reference; small print: its excess over the reference's own CRPS, the "
    "minimum."
)


def table(rows: Sequence[Mapping[str, str]], reference: str, diagnostics: Mapping[str, float]) -> Table:
    """Return the table of a summary's rows: the reference first, then the nearest.

    ``diagnostics`` are those of the reference by name if it is a sampler. In each region, the order by expected CRPS is
    the order by its excess, because the reference's own CRPS is the same for all methods.
    """
    regions = [region for region in REGIONS if rows and rows[0].get(DISTANCE + region)]
    head = ["method", *(f"{name} {REGIONS[region]}" for name in ("W1", "CRPS") for region in regions)]
    ordered = sorted(rows, key=lambda row: (row["method"] != reference, _number(row, DISTANCE)))
    body = [_row(row, regions, row["method"] == reference) for row in ordered]
    return Table(head, body, CAPTION.format(reference=reference) + _monte_carlo_error(diagnostics))


def _monte_carlo_error(diagnostics: Mapping[str, float]) -> str:
    """Return a sentence on the Monte Carlo error of the reference, empty without diagnostics."""
    if "r_hat_predictions" not in diagnostics:
        return ""
    halves = (
        f"{_short(diagnostics['halves' + r])} {words}" for r, words in REGIONS.items() if "halves" + r in diagnostics
    )
    return (
        f" Chains of the reference, at the worst point of the grid: R-hat {diagnostics['r_hat_predictions']:.3f}, "
        f"bulk effective sample size {diagnostics['ess_bulk_predictions']:.0f}; {diagnostics['divergences']:.0f} "
        f"divergent trajectories; W1 between the two halves of the chains: {', '.join(halves)}."
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
        return math.inf  # sorted last


def _short(value: float) -> str:
    """Return a number with three significant digits, trailing zeros included."""
    if not math.isfinite(value):
        return "–"
    return f"{value:#.3g}".removesuffix(".") if value else "0"
