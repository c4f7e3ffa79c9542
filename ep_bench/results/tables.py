"""The table ``results.csv``, with one row per cell."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ep_bench.errors import UserError, visible
from ep_bench.results.files import write_if_changed
from ep_bench.results.integrity import Row, text
from ep_bench.results.spreadsheets import csv_text, original
from ep_bench.types import COLUMNS, COUNT_COLUMNS, HEAD_COLUMNS, STATUSES, TEXT_COLUMNS

_Parser = Callable[[str], str | int | float]
_PARSED: dict[str, _Parser] = {
    **dict.fromkeys(COLUMNS, float),
    **dict.fromkeys(COUNT_COLUMNS, int),
    **dict.fromkeys(TEXT_COLUMNS, lambda found: visible(original(found))),
}


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV with the documented columns, sorted by method, data set and split.

    The file is not touched if it already has this content.
    """
    texts = ({column: text(row[column]) for column in COLUMNS if column in row} for row in sorted(rows, key=order))
    write_if_changed(path, csv_text(COLUMNS, texts))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a ``results.csv`` with numbers parsed; empty values are omitted.

    Raises UserError for a wrong header, a missing field, or text in a column of numbers.
    """
    rows, errors = read_table(path)
    if errors:
        raise errors[0]
    return rows


def read_table(path: Path) -> tuple[list[Row], list[UserError]]:
    """Return the valid rows of a table, and an error for each of the others, or for the whole file."""
    if not path.exists():
        return [], []
    try:
        return _read(path)
    except (OSError, ValueError, csv.Error) as error:
        return [], [UserError(f"cannot be read: {error}", where=str(path))]


def _read(path: Path) -> tuple[list[Row], list[UserError]]:
    rows: list[Row] = []
    errors: list[UserError] = []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = next(reader, [])
        missing = sorted(set(HEAD_COLUMNS) - set(columns))
        if missing:
            message = f"not a results file of ep-bench: missing columns {', '.join(missing)}"
            return [], [UserError(message, where=str(path))]
        parsers = [_PARSED.get(column) for column in columns]
        for fields in filter(None, reader):
            try:
                rows.append(_parse(columns, parsers, fields, f"{path}:{reader.line_num}"))
            except UserError as error:
                errors.append(error)
    return rows, errors


def _parse(columns: Sequence[str], parsers: Sequence[_Parser | None], fields: Sequence[str], where: str) -> Row:
    parsed: Row = {}
    for column, parse, found in zip(columns, parsers, fields, strict=False):
        if found and parse is not None:
            try:
                parsed[column] = parse(found)
            except ValueError:
                raise UserError("not a number", where=where, field=column, found=found) from None
    if len(fields) != len(columns):
        raise UserError("incomplete row: its number of fields differs from that of the header", where=where)
    if not {"method", "dataset", "split", "cell", "status"} <= parsed.keys():
        raise UserError("incomplete row: method, dataset, split, status and cell are required", where=where)
    if parsed["status"] not in STATUSES:
        raise UserError("unknown status", where=where, found=parsed["status"], allowed=STATUSES)
    return parsed


def order(row: Row) -> tuple[str, str, str, int, str]:
    """Return the sorting key of a row: study, method, data set, split, hash."""
    return (row.get("study", ""), row["method"], row["dataset"], row["split"], row["cell"])
