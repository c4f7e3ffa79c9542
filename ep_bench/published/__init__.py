"""Published tables as data, with source, protocol and trust, and the comparison of results with them."""

from ep_bench.published.compare import (
    ACCEPTED,
    CHECK_COLUMNS,
    COLUMN_NAMES,
    VERDICTS,
    check,
    counted_once,
    counts,
    regressions,
    verdict_counts,
    worst_first,
)
from ep_bench.published.matching import printed_over_points
from ep_bench.published.number_format import MOST_DECIMALS, error_decimals, measured, printed
from ep_bench.published.pooled import DENSITY, SQUARE, ScoreMoments, moments, normalised, pooled
from ep_bench.published.sources import PublishedTable, load_sources
from ep_bench.published.values import METRICS, columns, described_rows, load_published, source_names

__all__ = [
    "ACCEPTED",
    "CHECK_COLUMNS",
    "COLUMN_NAMES",
    "DENSITY",
    "METRICS",
    "MOST_DECIMALS",
    "SQUARE",
    "VERDICTS",
    "PublishedTable",
    "ScoreMoments",
    "check",
    "columns",
    "counted_once",
    "counts",
    "described_rows",
    "error_decimals",
    "load_published",
    "load_sources",
    "measured",
    "moments",
    "normalised",
    "pooled",
    "printed",
    "printed_over_points",
    "regressions",
    "source_names",
    "verdict_counts",
    "worst_first",
]
