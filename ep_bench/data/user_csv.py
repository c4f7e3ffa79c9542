"""A user's own file of comma-separated values (or another delimiter), with a header and a named target."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ep_bench.data.class_labels import numbered
from ep_bench.types import Array, UserError

MINIMUM_ROWS = 10
DELIMITERS = (",", "\t", ";", "|", ":", " ", "~", "^", "#", "&", "!", "$", "%", "*", "@", "/")  # the usual ones first
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
MISSING_LABELS = MISSING - {"none", "-"}  # these may name a class
_SAMPLE_LINES = 20


def require_file(path: str) -> Path:
    """Return the path of a user's file.

    Raises
    ------
    UserError
        There is no such file.
    """
    file = Path(path)
    if not file.is_file():
        problem = "is a folder, not a file" if file.is_dir() else "no such file"
        raise UserError(problem, where=path)
    return file


def read(path: Path, target: str | None) -> tuple[Array, Array, tuple[str, ...], str]:
    """Return inputs (n, d), targets (n,), names of the inputs and the sha256 of a user's file.

    Raises
    ------
    UserError
        The file is empty or binary, has no header, duplicate or unknown columns, a cell that is no finite number, a
        constant target, an input that equals the target, or too few rows; the message names file, line (from 1) and
        column.
    """
    text, checksum = _text(path)
    lines = text.split("\n")
    delimiter = _delimiter(path, lines)
    columns, start = _header(path, lines, delimiter)
    position = _target_position(path, columns, target)
    table = _table(path, lines, start, columns, delimiter, position)
    _check(path, table, columns, position)
    inputs = [j for j in range(len(columns)) if j != position]
    X, y = np.ascontiguousarray(table[:, inputs]), np.ascontiguousarray(table[:, position])
    return X, y, tuple(columns[j] for j in inputs), checksum


def read_classes(path: Path, target: str | None) -> tuple[Array, Array, tuple[str, ...], tuple[str, ...], str]:
    """Return inputs (n, d), class indices (n,), names of the inputs and of the classes, and the file's sha256.

    The target's column holds a label a row, a text or a number; `labelled.numbered` says in which order they count.
    Raises UserError as ``read``, and for a column that holds no classes: one label alone, or one a row.
    """
    text, checksum = _text(path)
    lines = text.split("\n")
    delimiter = _delimiter(path, lines)
    columns, start = _header(path, lines, delimiter)
    position = _target_position(path, columns, target)
    if not any(line.strip() for line in lines[start:]):
        raise UserError("there is a header but no row", where=str(path))
    labels: list[str] = []
    table = _cell_by_cell(path, lines, columns, delimiter, position, labels)
    numbers = [_number(label) for label in labels]
    y, classes = numbered(labels, numbers)
    table[:, position] = y if None in numbers else numbers
    _check(path, table, columns, position)
    if len(classes) > len(y) // 2:
        found = f"{len(classes)} different values in {len(y)} rows"
        allowed = "labels of classes; numbers to predict are `task: regression`"
        raise UserError(
            "the target holds no classes", where=str(path), field=f"column {target}", found=found, allowed=allowed
        )
    inputs = [j for j in range(len(columns)) if j != position]
    names = tuple(columns[j] for j in inputs)
    return np.ascontiguousarray(table[:, inputs]), y, names, classes, checksum


def _text(path: Path) -> tuple[str, str]:
    """Return the file's text, decompressed if need be and with plain line ends, and its sha256."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    checksum = hashlib.sha256(content).hexdigest()
    if path.suffix == ".gz" or content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"is no sound gzip file: {error}", where=str(path)) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError("is no text in UTF-8", where=f"{path}:{line}") from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise UserError("holds a zero byte: a binary file is no table of text", where=f"{path}:{line}")
    if not text.strip():
        raise UserError("the file is empty", where=str(path), allowed="a header and rows of numbers")
    return text.replace("\r\n", "\n").replace("\r", "\n"), checksum


def _delimiter(path: Path, lines: list[str]) -> str:
    """Return the delimiter: the first that cuts all of the first lines into one number of fields, else the header's."""
    sample = [line for line in lines if line.strip()][:_SAMPLE_LINES]
    counts = {mark: [len(fields) for _, fields in _records(path, sample, mark)] or [0] for mark in DELIMITERS}
    even = [mark for mark in DELIMITERS if counts[mark][0] > 1 and len(set(counts[mark])) == 1]
    if even:
        return even[0]
    best = max(DELIMITERS, key=lambda mark: counts[mark][0])
    if counts[best][0] > 1:
        return best
    raise UserError(
        "the header has only one column, or an unknown delimiter",
        where=f"{path}:1",
        found=sample[0][:80],
        allowed="at least one input and the target, between comma, tab, semicolon, bar, colon or spaces",
    )


def _records(path: Path, lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number (from 1, of a record's last line) and stripped fields of every line that is not blank."""
    spaced = delimiter == " "
    reader = csv.reader(
        (line.strip(" ") if spaced else line for line in lines), delimiter=delimiter, skipinitialspace=True
    )
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield reader.line_num, [field.strip() for field in fields]
    except csv.Error as error:
        raise UserError(f"cannot be cut into fields: {error}", where=f"{path}:{reader.line_num}") from error


def _header(path: Path, lines: list[str], delimiter: str) -> tuple[list[str], int]:
    """Return the names of the columns and the index of the line after them."""
    line, columns = next(_records(path, lines, delimiter))
    where = f"{path}:{line}"
    if all(_number(name) is not None for name in columns):
        raise UserError(
            "the first line holds numbers, no names of columns", where=where, found=delimiter.join(columns)[:80]
        )
    for position, name in enumerate(columns):
        if not name:
            raise UserError(f"column {position + 1} has no name in the header", where=where)
        if name in columns[:position]:
            first = columns.index(name) + 1
            raise UserError(f"columns {first} and {position + 1} have the same name", where=where, found=name)
    return columns, line


def _target_position(path: Path, columns: list[str], target: str | None) -> int:
    if target is None:
        raise UserError("name the column to predict", where=str(path), field="target", allowed=columns)
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


def _table(path: Path, lines: list[str], start: int, columns: list[str], delimiter: str, target: int) -> Array:
    """Return all rows as numbers: by numpy's reader, and cell by cell if it refuses, to name the cell at fault."""
    body = lines[start:]
    if not any(line.strip() for line in body):
        raise UserError("there is a header but no row", where=str(path))
    try:
        separator = None if delimiter == " " else delimiter
        table = np.loadtxt(body, delimiter=separator, quotechar='"', comments=None, ndmin=2, dtype=np.float64)
    except (ValueError, OverflowError):
        table = np.empty((0, 0))
    if table.shape[1] != len(columns) or not np.isfinite(table).all():
        return _cell_by_cell(path, lines, columns, delimiter, target)
    return table


def _cell_by_cell(
    path: Path, lines: list[str], columns: list[str], delimiter: str, target: int, labels: list[str] | None = None
) -> Array:
    """Return all rows as numbers; with ``labels`` the target's cells are appended to these, and 0 in the table."""
    rows: list[list[float]] = []
    records = _records(path, lines, delimiter)
    next(records)
    for line, fields in records:
        where = f"{path}:{line}"
        if len(fields) != len(columns):
            raise UserError(f"the line has {len(fields)} fields, the header has {len(columns)}", where=where)
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
    if cell.lower() in MISSING:
        problem = "missing value"
    elif value is not None:
        problem = "infinite value"
    else:
        problem = "no number" + ("; decimals are written with a point" if _number(cell.replace(",", ".")) else "")
    classes = "; labels of classes go with `task: classification`" if is_target and problem == "no number" else ""
    raise UserError(problem, where=where, field=f"column {column}", found=cell[:80], allowed=f"finite numbers{classes}")


def _number(cell: str) -> float | None:
    """Return the cell's number or None; Python's underscores and other alphabets' digits are not taken."""
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _check(path: Path, table: Array, columns: list[str], position: int) -> None:
    if len(table) < MINIMUM_ROWS:
        raise UserError("too few rows", where=str(path), found=len(table), allowed=f"at least {MINIMUM_ROWS}")
    y = table[:, position]
    if y.min() == y.max():
        raise UserError(
            "the target is constant", where=str(path), field=f"column {columns[position]}", found=float(y[0])
        )
    for j, name in enumerate(columns):
        if j != position and np.array_equal(table[:, j], y):
            raise UserError(
                f"this input equals the target {columns[position]!r} in every row",
                where=str(path),
                field=f"column {name}",
            )
