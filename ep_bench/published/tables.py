"""The published numbers, one row each, corrected and with what is known about them."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ep_bench.published.sources import PublishedTable, Sources, load_sources

if TYPE_CHECKING:
    import pandas as pd

FILES = ("seed_tables.csv", "later_tables.csv", "measured_tables.csv")
METRICS = {"rmse": -1, "ll": 1, "lpd-mean": 1, "se-mean": -1}  # those that get a verdict: 1 where more is better

Printed = dict[str, str]


def load_published() -> pd.DataFrame:
    """Return every published number, one row each.

    The first columns are those of the tables (``source, table, method, dataset, metric, mean, stderr, note``) with
    ``mean`` and ``stderr`` as numbers: corrected where a misprint is known, spreads turned into standard errors, NaN
    where nothing was printed. Then ``printed_mean`` and ``printed_stderr`` (text as printed), ``unit`` (of the last
    printed digit), ``correction`` (empty or what was corrected), ``citation``, ``protocol``, ``spread`` (what the
    printed spread is), ``units`` (``original`` or ``normalised``), ``trust``, ``why``, ``name`` and
    ``irrelevant_inputs`` (the data set as a study names it), ``scheme``, ``folds``, ``test_fraction`` and ``n_splits``
    (the splits that the mean rests on; no scheme: not comparable with cells of ours), ``kindred_scheme`` and
    ``kindred_splits`` (another scheme that draws splits of the same kind; empty and 0 without one).
    """
    import pandas as pd

    return pd.DataFrame(described_rows())


def columns() -> frozenset[str]:
    """Return the names of all methods' columns in the tables."""
    return frozenset(row["method"] for row in printed_rows())


def source_names() -> tuple[str, ...]:
    """Return the names of the sources, in the order of ``sources.yaml``."""
    return tuple(dict.fromkeys(table.source for table in load_sources().tables))


@cache
def printed_rows() -> tuple[Printed, ...]:
    """Return the rows of the tables as text."""
    folder = resources.files("ep_bench.published").joinpath("tables")
    rows: list[Printed] = []
    for name in FILES:
        rows += csv.DictReader(folder.joinpath(name).read_text(encoding="utf-8").splitlines())
    return tuple(rows)


@cache
def described_rows() -> tuple[dict[str, Any], ...]:
    """Return the rows of ``load_published`` as mappings; not to be changed."""
    sources = load_sources()
    by_place = {_place(row): row for row in printed_rows()}
    return tuple(_described(row, by_place, sources) for row in printed_rows())


def _place(row: Printed) -> tuple[str, ...]:
    return tuple(row[key] for key in ("source", "table", "method", "dataset", "metric"))


def _described(row: Printed, by_place: dict[tuple[str, ...], Printed], sources: Sources) -> dict[str, Any]:
    table = sources.table(row["source"], row["table"])
    column = table.column(row["method"])
    right, correction = _corrected(row, by_place, table)
    spread = column.spread or table.spread
    scheme = table.splits.of(row["dataset"])
    kindred_scheme, kindred_splits = table.splits.kindred_of(row["dataset"])
    alias = sources.alias(table, row["dataset"])
    return {
        **row,
        "mean": _number(right["mean"]),
        "stderr": _stderr(right, by_place, table, spread, scheme.count),
        "printed_mean": row["mean"],
        "printed_stderr": row["stderr"],
        "unit": last_unit(right["mean"]) if table.decimals is None else 10.0**-table.decimals,
        "correction": correction,
        "citation": table.citation,
        "protocol": table.protocol,
        "spread": spread,
        "units": table.units,
        "trust": column.trust,
        "why": column.why,
        "name": alias.name,
        "irrelevant_inputs": alias.irrelevant_inputs,
        "scheme": scheme.scheme or "",
        "folds": scheme.folds,
        "test_fraction": scheme.test_fraction,
        "n_splits": scheme.count,
        "kindred_scheme": kindred_scheme,
        "kindred_splits": kindred_splits,
    }


def _corrected(row: Printed, by_place: dict[tuple[str, ...], Printed], table: PublishedTable) -> tuple[Printed, str]:
    """Return the row whose numbers belong here, and why it is another than the printed one."""
    for exchange in table.exchanged:
        if row["method"] == exchange.method and row["dataset"] in exchange.datasets:
            first, second = exchange.datasets
            other = second if row["dataset"] == first else first
            return by_place[_place({**row, "dataset": other})], exchange.text
    return row, ""


def _stderr(
    row: Printed, by_place: dict[tuple[str, ...], Printed], table: PublishedTable, spread: str, n_splits: int
) -> float:
    """Return the standard error of a mean from the spread that was printed with it, NaN without one."""
    if spread == "points":
        companion = table.point_spreads.get(row["metric"])
        if companion is None:
            return math.nan
        deviation = by_place[_place({**row, "metric": companion})]["mean"]
        return _number(deviation) / math.sqrt(table.points[row["dataset"]])
    value = _number(row["stderr"])
    over_splits = spread == "standard deviation" and row["metric"] in METRICS
    return value / math.sqrt(n_splits) if over_splits else value


def _number(text: str) -> float:
    return float(text) if text else math.nan


def last_unit(text: str) -> float:
    """Return the unit of the last printed digit, NaN where nothing was printed: 0.001 for ``4.320``."""
    if not text:
        return math.nan
    return 10.0 ** -len(text.partition(".")[2])
