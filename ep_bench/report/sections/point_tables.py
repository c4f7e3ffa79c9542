"""Scores over the test data points of all splits, compared with published tables of this kind.

These are tables with standard deviations over data points (``spread: points`` in ``published/sources.yaml``), such as
Jylänki, Nummenmaa and Vehtari (2014, table 1). They have mean, standard deviation and a percentile of the log
predictive density and of the squared error, both of the standardised target, and relative times.

Means and standard deviations are pooled from those of the cells. Percentiles need the scores of data points
(``results.row_scores``), or a data set with only one split, whose percentiles are in results.csv.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ep_bench import published
from ep_bench.convergence import ConvergedSplits, mark_note
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.results import row_scores

ORDER = 70
METRICS = ("lpd-mean", "lpd-std", "lpd-prct1", "se-mean", "se-std", "se-prct99", "cputime-relative")
# Percentiles: the k-th of n values is at (k - 1/2) / n. Matlab, used by the paper, has the same rule.
RULE: Literal["hazen"] = "hazen"

Cell = Mapping[str, Any]  # a row of results.csv
Rows = Mapping[str, row_scores.Scores]  # by a cell's hash


@dataclass(frozen=True)
class PointTableLine:
    """One method on one data set, with our numbers and the published ones in the order of ``METRICS``.

    Missing numbers are NaN in ``ours`` and empty in ``printed``. A line without splits is a published method that was
    not run.
    """

    method: str
    column: str  # column of the published table, empty for none
    ours: tuple[float, ...]
    printed: tuple[str, ...]
    splits: int = 0
    planned: int = 0
    converged: ConvergedSplits = field(default_factory=ConvergedSplits)


@dataclass(frozen=True)
class PointTableBlock:
    """One data set."""

    dataset: str
    size: str  # n and d in words
    lines: tuple[PointTableLine, ...]


@dataclass(frozen=True)
class PointTable:
    """One published table and our numbers."""

    table: published.PublishedTable
    unit: str  # label of the method whose times are 1, empty if it was not run
    blocks: tuple[PointTableBlock, ...]

    @property
    def name(self) -> str:
        """Return the anchor of its section."""
        return f"points-{self.table.source}-{self.table.table}"

    @property
    def lacks_rows(self) -> bool:
        """Return whether some line has means but no percentiles."""
        at = METRICS.index("lpd-prct1")
        lines = [line for block in self.blocks for line in block.lines if not math.isnan(line.ours[0])]
        return any(math.isnan(line.ours[at]) for line in lines)


def collect(merged: MergedStudies) -> list[PointTable]:
    """Return the published tables over data points that have a data set with finished cells."""
    found = []
    for table in published.load_sources().tables:
        if table.spread == "points":
            blocks = tuple(_blocks(table, merged))
            if any(line.splits for block in blocks for line in block.lines):
                found.append(PointTable(table, _unit(table, merged), blocks))
    return found


def _blocks(table: published.PublishedTable, merged: MergedStudies) -> Iterator[PointTableBlock]:
    """Yield one block per data set, in the order of the report."""
    kept: dict[str, row_scores.Scores] = {}
    printed: dict[str, tuple[str, dict[str, dict[str, str]]]] = {}
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        kept |= row_scores.read(study.folder)
        for label, numbers in published.printed_over_points(table, study.lock).items():
            entry = study.lock["datasets"][label]
            name = merged.dataset_names.get((tag, label), label)
            printed[name] = f"n = {entry.get('n')}, d = {entry.get('d')}", numbers
    columns = merged.published_columns()
    for dataset in merged.datasets:
        if dataset in printed:
            size, numbers = printed[dataset]
            yield PointTableBlock(dataset, size, tuple(_lines(table, merged, kept, dataset, numbers, columns)))


def _lines(
    table: published.PublishedTable,
    merged: MergedStudies,
    kept: Rows,
    dataset: str,
    numbers: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, tuple[str, ...]],
) -> Iterator[PointTableLine]:
    """Yield the published methods in their order, with our corresponding methods, then our other methods."""
    cells = _cells(merged, dataset)
    unit = _seconds(cells.get(_unit(table, merged), []))
    pairs: list[tuple[str, str]] = []  # our method (empty for none) and the published column
    for column in numbers:
        matching = [method for method in cells if column in columns.get(method, ())]
        pairs += [(method, column) for method in matching or [""]]
    matched = {method for method, _ in pairs}
    pairs += [(method, "") for method in cells if method not in matched]
    for method, column in pairs:
        printed = tuple(numbers.get(column, {}).get(metric, "") for metric in METRICS)
        if method:
            line = _line(method, column, cells[method], kept, unit, printed, merged.planned.get((method, dataset), 0))
            yield replace(line, converged=merged.convergence.get((method, dataset), ConvergedSplits()))
        else:
            yield PointTableLine(column, column, (math.nan,) * len(METRICS), printed)


def _cells(merged: MergedStudies, dataset: str) -> dict[str, list[Cell]]:
    """Return the finished cells of a data set by method, in the order of the report."""
    rows = merged.ok()
    rows = rows[rows["dataset"] == dataset]
    parts = ((method, rows[rows["method"] == method]) for method in merged.methods)
    found = {m: [{str(k): v for k, v in row.items()} for row in part.to_dict("records")] for m, part in parts}
    return {method: list(cells) for method, cells in found.items() if cells}


def _line(
    method: str, column: str, cells: Sequence[Cell], kept: Rows, unit: float, printed: tuple[str, ...], planned: int
) -> PointTableLine:
    density, square = (
        published.pooled([part for part in parts if not math.isnan(part.mean)])
        for parts in ([published.moments(metric, cell) for cell in cells] for metric in ("lpd-mean", "se-mean"))
    )
    low, high = percentiles(cells, kept)
    time = _seconds(cells) / unit if unit > 0.0 else math.nan
    values = (density.mean, density.deviation, low, square.mean, square.deviation, high, time)
    return PointTableLine(method, column, values, printed, len(cells), planned)


def percentiles(cells: Sequence[Cell], kept: Rows) -> tuple[float, float]:
    """Return the 1 % percentile of the log density and the 99 % percentile of the squared error.

    They are over the test data points of all cells, for the standardised target. They are NaN if the scores of data
    points are unknown, unless there is only one cell, which has its own percentiles.
    """
    found = published.normalised(cells, kept)
    if found is not None:
        densities, squares = found
        return float(np.percentile(densities, 1, method=RULE)), float(np.percentile(squares, 99, method=RULE))
    if len(cells) != 1:
        return math.nan, math.nan
    scale = float(cells[0]["target_std"])
    if not scale > 0.0:
        return math.nan, math.nan
    return float(cells[0]["ll_prct1"]) + math.log(scale), float(cells[0]["se_prct99"]) / scale**2


def _unit(table: published.PublishedTable, merged: MergedStudies) -> str:
    """Return the label of the method whose times are 1, empty if it was not run."""
    columns, run = merged.published_columns(), set(merged.ok()["method"])
    return next((m for m in merged.methods if m in run and table.time_unit in columns.get(m, ())), "")


def _seconds(cells: Sequence[Cell]) -> float:
    """Return the mean CPU time of fit and prediction (s), NaN without cells."""
    return float(np.mean([c["fit_cpu_seconds"] + c["predict_cpu_seconds"] for c in cells])) if cells else math.nan


HEAD = ("LPD mean", "LPD std", "LPD 1 %", "SE mean", "SE std", "SE 99 %", "time")
PLACES = (3, 2, 2, 3, 2, 2)


def title(found: PointTable) -> str:
    """Return the title of a table."""
    return f"{found.table.source}, table {found.table.table}"


def notes(found: PointTable) -> list[str]:
    """Return what the numbers mean, and which parts of the published table are missing."""
    table, unit = found.table, found.unit
    time = f"relative to {unit}" if unit else f"unknown, since its unit {table.time_unit} was not run"
    what = (
        "Log predictive density (LPD) and squared error (SE) of test data points, for the target standardised with the "
        "training data, over the test data of all splits: mean, standard deviation and, for the worst cases, the 1 % "
        "percentile of the LPD and the 99 % percentile of the SE (Hazen's rule). "
        f"Time: fit and prediction, mean over splits, {time}. Published numbers are in small print or in parentheses: "
        f"{table.citation.strip()} ({table.protocol.strip()})."
    )
    lines = [what]
    marks = mark_note({line.converged.mark for block in found.blocks for line in block.lines})
    lines += [marks.strip()] if marks else []
    if found.lacks_rows:
        lines.append(
            "Percentiles over several splits need the scores of data points: set compare: {rows: LABEL} in the study."
        )
    return lines + [f"{dataset} is absent: {why}." for dataset, why in found.table.absent.items()]


def grids(found: PointTable) -> list[Table]:
    """Return one table per data set."""
    return [
        Table(["method", *HEAD], [_row(line) for line in block.lines], f"{block.dataset} ({block.size})")
        for block in found.blocks
    ]


def _row(line: PointTableLine) -> list[Item]:
    name = item(_name(line), small=shortfall(line), kind="")
    return [
        name,
        *(
            item(shown(line, j), None if math.isnan(value) else value, small=printed)
            for j, (value, printed) in enumerate(zip(line.ours, line.printed, strict=True))
        ),
    ]


def _name(line: PointTableLine) -> str:
    other = f" (published as {line.column})" if line.column not in {"", line.method} else ""
    return line.method + line.converged.mark + other


def shortfall(line: PointTableLine) -> str:
    """Return missing splits, such as ``7 of 10 splits``, and converged splits, or ``not run`` without any split."""
    if not line.splits:
        return "not run"
    missing = "" if line.splits >= line.planned else f"{line.splits} of {line.planned} splits"
    return ", ".join(text for text in (missing, line.converged.shortfall) if text)


def shown(line: PointTableLine, j: int) -> str:
    """Return our number of ``METRICS[j]`` as text, a dash if it is missing."""
    value = line.ours[j]
    if math.isnan(value):
        return "–"
    if j == METRICS.index("cputime-relative"):
        return f"{value:.2g}" if value < 100.0 else f"{value:.0f}"
    return f"{value:.{PLACES[j]}f}"


def sections(report: ReportContext) -> list[Section]:
    """Return the section of tables over data points, with one part per published table."""
    found = collect(report.merged)
    parts = [_part(table) for table in found]
    if not found:
        return []
    return [Section("points", "Scores over test data points", parts=parts, notes=report.time_notes)]


def _part(found: PointTable) -> Section:
    return Section(found.name, title(found), tables=grids(found), notes=notes(found))
