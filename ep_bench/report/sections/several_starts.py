"""Several starts of one fit: how far apart they end, by method and data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.results import curves

ORDER = 110
CLOSE = 1.0  # nats below the best within which a start has found it
HEAD = ["method", "data set", "splits", "starts", "failed", "found the best", "best - median", "best - worst"]
CAPTION = (
    "Log evidence, or its bound, of the starts of one fit. Predictions are those of the best start. Starts and failed "
    f'ones are sums over the splits. "Found the best" is the fraction of starts within {CLOSE:g} nat of the best; the '
    "differences are in nats. These three are medians over the splits, with the largest difference in small print"
)


class Spread(NamedTuple):
    """How far apart the starts of one fit end."""

    close: float  # fraction of all starts within CLOSE of the best
    above_median: float  # best less median of the starts that did not fail, nats
    above_worst: float  # best less worst of them, nats


def sections(report: ReportContext) -> list[Section]:
    """Return the section, if any fit has several starts."""
    rows = list(_rows(report))
    return [Section("starts", "Several starts", [], tables=[Table(HEAD, rows, CAPTION)])] if rows else []


def _rows(report: ReportContext) -> Iterator[list[str | Item]]:
    cells, known = report.merged.cells, curves.index(report.curves.starts)
    for method in report.merged.methods:
        for dataset in report.merged.datasets:
            entry = curves.find(known, cells.get((method, dataset), {}))
            if entry is not None:
                yield [method, dataset, *_numbers(entry["evidences"])]


def _numbers(evidences: Sequence[Sequence[float | None]]) -> Iterator[Item]:
    spreads = [spread for spread in map(spread_of, evidences) if spread is not None]
    starts, failed = sum(map(len, evidences)), sum(one.count(None) for one in map(list, evidences))
    for count in (len(evidences), starts, failed):
        yield item(str(count), count)
    if not spreads:
        yield from [item("–", "")] * len(Spread._fields)
        return
    close = median(spread.close for spread in spreads)
    yield item(f"{close:.0%}", close)
    for name in ("above_median", "above_worst"):
        values = [getattr(spread, name) for spread in spreads]
        yield item(f"{median(values):.1f}", median(values), small=f"largest {max(values):.1f}")


def spread_of(evidences: Sequence[float | None]) -> Spread | None:
    """Return the spread of the log evidences (nats) of one fit, None if fewer than two starts did not fail."""
    found = [one for one in evidences if one is not None and math.isfinite(one)]
    if len(found) < 2:
        return None
    best = max(found)
    close = sum(one >= best - CLOSE for one in found) / len(evidences)
    return Spread(close, best - median(found), best - min(found))
