"""Reading of a user's own CSV file, with a header and a named target; other delimiters are detected."""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ep_bench.data.class_labels import numbered
from ep_bench.errors import UserError
from ep_bench.types import Array, Task

MINIMUM_ROWS = 10
DELIMITERS = ",\t;| "
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
TRUTH_VALUES = {"true": 1.0, "false": 0.0}  # of inputs, as pandas.get_dummies writes them
MISSING_LABELS = MISSING - {"none", "-"}  # "none" and "-" can be names of classes


def require_file(path: str) -> Path:
    """Return the path of a user's file. Raises UserError if there is no such file."""
    file = Path(path)
    if not file.is_file():
        raise UserError("no such file", where=path)
    return file


class UserData(NamedTuple):
    """Inputs X (n, d), targets y (n,), names of the inputs and of the classes, and the sha256 of a file."""

    X: Array
    y: Array
    names: tuple[str, ...]
    classes: tuple[str, ...]
    checksum: str


class _Layout(NamedTuple):
    path: Path
    lines: list[str]
    delimiter: str
    columns: list[str]
    start: int  # index of the first line after the header
    target: int  # position of the target among the columns


def read(path: Path, target: str | None, task: Task) -> UserData:
    """Return the content of a user's file.

    For classification the target column holds labels, texts or numbers, and y are class indices;
    `class_labels.numbered` defines their order.

    Raises
    ------
    UserError
        The file is empty or no text, has no header, duplicate or unknown columns, a field that is not a finite number,
        a constant target, an input that equals the target, or too few lines; or there are more classes than half the
        data points. The message names the file, the line (from 1) and the column.
    """
    text, checksum = _text(path)
    lines = text.split("\n")
    delimiter = _delimiter(path, lines)
    columns, start = _header(path, lines, delimiter)
    layout = _Layout(path, lines, delimiter, columns, start, _target_position(path, columns, target))
    if not any(line.strip() for line in lines[start:]):
        raise UserError("there is a header but no data", where=str(path))
    classes: tuple[str, ...] = ()
    if task == "classification":
        table, y, classes = _with_classes(layout)
    else:
        table = _table(layout)
        y = np.ascontiguousarray(table[:, layout.target])
    _check(layout, table)
    if len(classes) > len(y) // 2:
        raise UserError(
            "the target has too many classes",
            where=str(path),
            field=f"column {target}",
            found=f"{len(classes)} different values in {len(y)} lines",
            allowed="labels of classes; for a numerical target use `task: regression`",
        )
    inputs = [j for j in range(len(columns)) if j != layout.target]
    names = tuple(columns[j] for j in inputs)
    return UserData(np.ascontiguousarray(table[:, inputs]), y, names, classes, checksum)


def _text(path: Path) -> tuple[str, str]:
    """Return the text of the file, decompressed and with Unix line ends, and the sha256 of the file."""
    content = path.read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    if path.suffix == ".gz" or content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"the gzip file is damaged: {error}", where=str(path)) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError("the text is not UTF-8", where=f"{path}:{line}") from error
    if not text.strip():
        raise UserError("the file is empty", where=str(path), allowed="a header and lines of numbers")
    return text.replace("\r\n", "\n").replace("\r", "\n"), checksum


def _delimiter(path: Path, lines: list[str]) -> str:
    """Return the first of the delimiters that is in the header, outside quotes."""
    header = next(line.strip(" ") for line in lines if line.strip())
    for delimiter in DELIMITERS:
        if delimiter in re.sub('"[^"]*"', "", header):
            return delimiter
    raise UserError(
        "the header has only one column, or an unknown delimiter",
        where=f"{path}:1",
        found=header[:80],
        allowed="at least one input and the target, separated by commas, tabs, semicolons, bars or spaces",
    )


def _records(path: Path, lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line (from 1) and the stripped fields of all records that are not blank."""
    spaced = delimiter == " "
    reader = csv.reader(
        (line.strip(" ") if spaced else line for line in lines), delimiter=delimiter, skipinitialspace=True
    )
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield reader.line_num, [field.strip() for field in fields]
    except csv.Error as error:
        raise UserError(f"cannot be split into fields: {error}", where=f"{path}:{reader.line_num}") from error


def _header(path: Path, lines: list[str], delimiter: str) -> tuple[list[str], int]:
    """Return the names of the columns and the index of the line after them."""
    line, columns = next(_records(path, lines, delimiter), (1, []))  # only quotes without text have no record
    where = f"{path}:{line}"
    if all(_number(name) is not None for name in columns):
        raise UserError(
            "the first line must hold the names of the columns", where=where, found=delimiter.join(columns)[:80]
        )
    for position, name in enumerate(columns):
        if not name:
            hint = "; to omit the index of pandas, use `to_csv(..., index=False)`" if position == 0 else ""
            raise UserError(f"column {position + 1} has no name in the header{hint}", where=where)
        if name in columns[:position]:
            first = columns.index(name) + 1
            raise UserError(f"columns {first} and {position + 1} have the same name", where=where, found=name)
    return columns, line


def _target_position(path: Path, columns: list[str], target: str | None) -> int:
    if target is None:
        raise UserError("is missing; name the column to predict", where=str(path), field="target", allowed=columns)
    if target not in columns:
        raise UserError(
            "there is no such column",
            where=f"{path}:1",
            field="target",
            found=target,
            allowed=columns,
            name=str(target),
        )
    return columns.index(target)


def _table(layout: _Layout) -> Array:
    """Return all lines as numbers (n, d + 1).

    The fast reader of numpy is tried first. If it fails, the fields are read one by one, to name the wrong one.
    """
    separator = None if layout.delimiter == " " else layout.delimiter
    body = layout.lines[layout.start :]
    try:
        table = np.loadtxt(body, delimiter=separator, quotechar='"', comments=None, ndmin=2, dtype=np.float64)
    except (ValueError, OverflowError):
        return _cell_by_cell(layout)
    if table.shape[1] != len(layout.columns) or not np.isfinite(table).all():
        return _cell_by_cell(layout)
    return table


def _with_classes(layout: _Layout) -> tuple[Array, Array, tuple[str, ...]]:
    """Return all lines as numbers (n, d + 1), the class indices (n,) and the names of the classes."""
    labels: list[str] = []
    table = _cell_by_cell(layout, labels)
    numbers = [_number(label) for label in labels]
    y, classes = numbered(labels, numbers)
    table[:, layout.target] = y if None in numbers else numbers
    return table, y, classes


def _cell_by_cell(layout: _Layout, labels: list[str] | None = None) -> Array:
    """Return all lines as numbers (n, d + 1).

    With ``labels`` the fields of the target are appended to this list and are 0 in the table.
    """
    columns, target = layout.columns, layout.target
    rows: list[list[float]] = []
    records = _records(layout.path, layout.lines, layout.delimiter)
    next(records)
    for line, fields in records:
        where = f"{layout.path}:{line}"
        if len(fields) != len(columns):
            raise UserError(f"the line has {len(fields)} fields, but the header has {len(columns)}", where=where)
        if labels is not None:
            labels.append(_label(where, columns[target], fields[target]))
            fields[target] = "0"
        rows.append(
            [_cell(where, name, cell, j == target) for j, (name, cell) in enumerate(zip(columns, fields, strict=True))]
        )
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))


def _label(where: str, column: str, cell: str) -> str:
    value = _number(cell)
    if cell.lower() in MISSING_LABELS or (value is not None and not np.isfinite(value)):
        raise UserError("missing value", where=where, field=f"column {column}", found=cell[:80], allowed="a label")
    return cell


def _cell(where: str, column: str, cell: str, is_target: bool) -> float:
    value = _number(cell)
    if value is not None and np.isfinite(value):
        return value
    if not is_target and cell.lower() in TRUTH_VALUES:
        return TRUTH_VALUES[cell.lower()]
    if cell.lower() in MISSING:
        problem = "missing value"
    elif value is not None:
        problem = "infinite value"
    else:
        problem = "not a number" + ("; use a decimal point" if _number(cell.replace(",", ".")) is not None else "")
    allowed = "finite numbers"
    if problem == "not a number":
        allowed += (
            "; for labels of classes use `task: classification`"
            if is_target
            else "; replace categories by one column of 0 and 1 per category"
        )
    raise UserError(problem, where=where, field=f"column {column}", found=cell[:80], allowed=allowed)


def _number(cell: str) -> float | None:
    """Return the number in a field, or None; underscores and digits of other alphabets are not accepted."""
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _check(layout: _Layout, table: Array) -> None:
    where, name = str(layout.path), layout.columns[layout.target]
    if len(table) < MINIMUM_ROWS:
        raise UserError("too few data points", where=where, found=len(table), allowed=f"at least {MINIMUM_ROWS}")
    y = table[:, layout.target]
    if y.min() == y.max():
        raise UserError("the target is constant", where=where, field=f"column {name}", found=float(y[0]))
    for j, column in enumerate(layout.columns):
        if j != layout.target and np.array_equal(table[:, j], y):
            raise UserError(
                f"this input equals the target {name!r} in every line", where=where, field=f"column {column}"
            )
