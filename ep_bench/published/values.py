"""The published values, one row each, with corrections and the description of their tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from ep_bench.published.sources import ExchangedDatasets, PublishedTable, Sources, load_sources

if TYPE_CHECKING:
    import pandas as pd

FIRST = ("seed_tables.csv", "later_tables.csv", "measured_tables.csv")  # before further files, which are sorted by name
TABLES = resources.files("ep_bench.published").joinpath("tables")
METRICS = {"rmse": -1, "ll": 1, "lpd-mean": 1, "se-mean": -1}  # metrics with a verdict; 1: larger is better

Printed = dict[str, str]


def load_published() -> pd.DataFrame:
    """Return all published values, one row each.

    The columns are:

    - ``source``, ``table``, ``method``, ``dataset``, ``metric``, ``mean``, ``stderr``, ``note``: those of the tables.
      ``mean`` and ``stderr`` are numbers; known misprints are corrected, spreads converted to standard errors, and
      values that were not printed are nan.
    - ``printed_mean``, ``printed_stderr``: the printed text; ``unit``: that of the last printed digit.
    - ``correction``: description of a correction, or empty.
    - ``citation``, ``protocol``, ``spread`` (kind of the printed spread), ``units`` (``original`` or ``normalised``),
      ``trust``, ``why``, ``repeats`` (the earlier source from which a table quotes the value, or empty), ``scored_by``
      (the column of results.csv that is comparable with it).
    - ``name``, ``irrelevant_inputs``, ``target_transforms``: the data set as a study names it.
    - ``scheme``, ``files``, ``folds``, ``test_fraction``, ``n_splits``: the splits of the mean; empty ``scheme``: not
      comparable. The scheme of a table that an experiment computes is the name of the experiment.
    - ``kindred_scheme``, ``kindred_splits``: a scheme with random splits of the same kind; empty and 0 without one.
    """
    import pandas as pd

    return pd.DataFrame(described_rows())


def columns() -> frozenset[str]:
    """Return the names of the columns of methods in all tables."""
    return frozenset(row["method"] for row in printed_rows())


def source_names() -> tuple[str, ...]:
    """Return the names of the sources, in the order of ``sources.yaml``."""
    return tuple(dict.fromkeys(table.source for table in load_sources().tables))


@cache
def printed_rows() -> tuple[Printed, ...]:
    """Return the rows of the tables as text."""
    lines = (file.read_text(encoding="utf-8").splitlines() for file in table_files())
    return tuple(row for text in lines for row in csv.DictReader(text, strict=True))


@cache
def values_by_split() -> dict[tuple[str, ...], dict[int, float]]:
    """Return published values of each split, where they are known, by source, table, method, data set and metric."""
    found: dict[tuple[str, ...], dict[int, float]] = {}
    text = resources.files("ep_bench.published").joinpath("per_split.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines(), strict=True):
        found.setdefault(place(row), {})[int(row["split"])] = float(row["value"])
    return found


def table_files() -> list[Traversable]:
    """Return the files of the tables, in the order of their rows."""
    every = {file.name: file for file in TABLES.iterdir() if file.name.endswith(".csv")}
    return [every[name] for name in (*FIRST, *sorted(every.keys() - set(FIRST)))]


@cache
def described_rows() -> tuple[dict[str, Any], ...]:
    """Return the rows of ``load_published`` as mappings, which must not be modified."""
    sources = load_sources()
    by_place = {place(row): row for row in printed_rows()}
    return tuple(_described(row, by_place, sources) for row in printed_rows())


@cache
def rows_as_printed() -> tuple[dict[str, Any], ...]:
    """Return the rows with values of another data set as they were printed, where this is worth a comparison."""
    return tuple(
        described | {"mean": _number(described["printed_mean"]), "stderr": _number(described["printed_stderr"]),
                     "correction": "", "trust": "disputed", "why": exchange.disputed}
        for described in described_rows()
        for exchange in load_sources().table(described["source"], described["table"]).exchanged
        if exchange.disputed and _is_exchanged(described, exchange)
    )  # fmt: skip


def place(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the key of a value: source, table, method, data set and metric."""
    return tuple(row[key] for key in ("source", "table", "method", "dataset", "metric"))


def _described(row: Printed, by_place: dict[tuple[str, ...], Printed], sources: Sources) -> dict[str, Any]:
    table = sources.table(row["source"], row["table"])
    column = table.column(row["method"], row["dataset"])
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
        "repeats": column.repeats,
        "scored_by": column.scored_by.get(row["metric"], row["metric"]),
        "name": alias.name,
        "irrelevant_inputs": alias.irrelevant_inputs,
        "target_transforms": alias.target_transforms,
        "scheme": scheme.scheme or table.experiment,
        "files": scheme.files,
        "folds": scheme.folds,
        "test_fraction": scheme.test_fraction,
        "n_splits": scheme.count,
        "kindred_scheme": kindred_scheme,
        "kindred_splits": kindred_splits,
    }


def _corrected(row: Printed, by_place: dict[tuple[str, ...], Printed], table: PublishedTable) -> tuple[Printed, str]:
    """Return the row with the correct numbers, and the reason if it is not the printed one."""
    for exchange in table.exchanged:
        if _is_exchanged(row, exchange):
            first, second = exchange.datasets
            other = second if row["dataset"] == first else first
            return by_place[place({**row, "dataset": other})], exchange.text
    return row, ""


def _is_exchanged(row: Mapping[str, Any], exchange: ExchangedDatasets) -> bool:
    return row["method"] in exchange.methods and row["dataset"] in exchange.datasets


def _stderr(
    row: Printed, by_place: dict[tuple[str, ...], Printed], table: PublishedTable, spread: str, n_splits: int
) -> float:
    """Return the standard error of a mean from the printed spread, nan without one."""
    if spread == "points":
        companion = table.point_spreads.get(row["metric"])
        if companion is None:
            return math.nan
        std = by_place[place({**row, "metric": companion})]["mean"]
        return _number(std) / math.sqrt(table.points[row["dataset"]])
    value = _number(row["stderr"])
    over_splits = spread == "standard deviation" and row["metric"] in METRICS
    return value / math.sqrt(n_splits) if over_splits else value


def _number(text: str) -> float:
    return float(text) if text else math.nan


def last_unit(text: str) -> float:
    """Return the unit of the last printed digit, nan for an empty text: 0.001 for ``4.320``."""
    if not text:
        return math.nan
    return 10.0 ** -len(text.partition(".")[2])
