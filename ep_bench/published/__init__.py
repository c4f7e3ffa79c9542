"""Published tables as data, with source, protocol and trust; how our numbers stand beside them."""

from ep_bench.published.compare import CHECK_COLUMNS, VERDICTS, check, counts, regressions
from ep_bench.published.show import measured, printed
from ep_bench.published.tables import METRICS, columns, described_rows, load_published, source_names

__all__ = [
    "CHECK_COLUMNS",
    "METRICS",
    "VERDICTS",
    "check",
    "columns",
    "counts",
    "described_rows",
    "load_published",
    "measured",
    "printed",
    "regressions",
    "source_names",
]
