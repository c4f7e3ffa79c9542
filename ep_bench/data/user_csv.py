"""Reading of a user's own CSV file, with a header and a named target; other delimiters are detected."""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ep_bench.data.columns import (
    Choices,
    Column,
    has_value,
    named,
    number,
    read_input,
    read_labels,
    read_target,
)
from ep_bench.errors import UserError, joined
from ep_bench.types import Array, DatasetRef, Preparation

MINIMUM_ROWS = 10
DELIMITERS = ",\t;| "
SHOWN = 20  # largest number of faults in a message


def require_file(path: str) -> Path:
    """Return the path of a user's file. Raises UserError if there is no such file."""
    file = Path(path)
    if not file.is_file():
        raise UserError("no such file", where=path)
    return file


class UserData(NamedTuple):
    """Inputs X (n, d), targets y (n,), names of inputs and classes, preparation of inputs, and sha256 of a file."""

    X: Array
    y: Array
    names: tuple[str, ...]
    classes: tuple[str, ...]
    preparation: tuple[Preparation, ...]  # empty if no input needs one
    checksum: str


class Contents(NamedTuple):
    """What a file contains: its columns, the values y (n,) of the target, names of classes, and all faults."""

    inputs: list[Column]
    target: Column
    y: Array
    faults: list[UserError]
    checksum: str


class _Layout(NamedTuple):
    path: Path
    lines: list[str]
    delimiter: str
    columns: list[str]
    target: int  # position of the target among the columns


def read(path: Path, ref: DatasetRef) -> UserData:
    """Return the content of a user's file, whose target, task and preparation are those of ``ref``.

    For classification the target column holds labels, texts or numbers, and y are class indices;
    `class_labels.numbered` defines their order.

    Raises
    ------
    UserError
        As `contents`, or there are faults; all of them are in the message.
    """
    found = contents(path, ref)
    if found.faults:
        raise joined(shortened(found.faults))
    preparation = tuple(column.preparation for column in found.inputs)
    return UserData(
        X=np.column_stack([column.values for column in found.inputs]),
        y=found.y,
        names=tuple(column.name for column in found.inputs),
        classes=found.target.names,
        preparation=preparation if any(each != Preparation() for each in preparation) else (),
        checksum=found.checksum,
    )


def contents(path: Path, ref: DatasetRef) -> Contents:
    """Return the columns of a user's file and all their faults.

    Faults are lines of another length, cells that are not finite numbers unless ``ref`` has a choice for them, a
    constant target, an input that equals the target, too few lines, or more classes than half the data points. Each
    names the file, the line (from 1) and the column.

    Raises
    ------
    UserError
        The file is empty or no text, or has no header; or a column has no name, occurs twice, or does not exist.
    """
    text, checksum = _text(path)
    lines = text.split("\n")
    delimiter = _delimiter(path, lines)
    columns = _header(path, lines, delimiter)
    layout = _Layout(path, lines, delimiter, columns, _target_position(path, columns, ref.target))
    _require_columns(layout, ref)
    inputs, target, y, faults = _by_columns(layout, ref)
    faults += [fault for column in [*inputs, target] for fault in column.faults]
    return Contents(inputs, target, y, faults + list(_faults(layout, inputs, target)), checksum)


def shortened(faults: list[UserError]) -> list[UserError]:
    """Return the first faults; the last entry states how many more there are."""
    if len(faults) <= SHOWN:
        return faults
    return [*faults[:SHOWN], UserError(f"{len(faults) - SHOWN} more faults")]


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
    """Yield the number of the last line (from 1) and the fields of all records that are not blank."""
    spaced = delimiter == " "
    reader = csv.reader(
        (line.strip(" ") if spaced else line for line in lines), delimiter=delimiter, skipinitialspace=True
    )
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield reader.line_num, fields
    except csv.Error as error:
        raise UserError(f"cannot be split into fields: {error}", where=f"{path}:{reader.line_num}") from error


def _header(path: Path, lines: list[str], delimiter: str) -> list[str]:
    """Return the names of the columns."""
    line, columns = next(_records(path, lines, delimiter), (1, []))  # only quotes without text have no record
    columns = [name.strip() for name in columns]
    where = f"{path}:{line}"
    if all(number(name) is not None for name in columns):
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
    return columns


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


def _require_columns(layout: _Layout, ref: DatasetRef) -> None:
    """Raise UserError unless the names in the choices are inputs, each a category or a date."""
    inputs = [name for name in layout.columns if name != ref.target]
    errors = []
    for key in ("missing", "categories", "dates"):
        for name in named(getattr(ref, key)):
            if name not in inputs and (key, name, named(ref.missing).get(name)) != ("missing", ref.target, "drop"):
                problem = "the target cannot be prepared" if name == ref.target else "there is no such column"
                where = f"{layout.path}:1"
                errors.append(UserError(problem, where=where, field=key, found=name, allowed=inputs, name=name))
    for name, choice in named(ref.missing).items():
        if choice == "drop" and name in inputs:
            problem = "only the target is dropped if it is missing"
            errors.append(UserError(problem, where=f"{layout.path}:1", field="missing", found=name))
    both = named(ref.categories).keys() & named(ref.dates).keys()
    errors += [UserError("is in categories and dates", where=str(layout.path), field=f"column {name}") for name in both]
    if errors:
        raise joined(errors)


def _by_columns(layout: _Layout, ref: DatasetRef) -> tuple[list[Column], Column, Array, list[UserError]]:
    """Return the inputs, the target and its values (n,), and the fault of lines of another length."""
    every, numbers, faults = _rows(layout)
    if named(ref.missing).get(layout.columns[layout.target]) == "drop":
        kept = [has_value(cell, ref.task) for cell in every[layout.target]]
        every, numbers = [list(compress(cells, kept)) for cells in every], list(compress(numbers, kept))
    if faults and len(numbers) < MINIMUM_ROWS:
        raise faults[0]
    if not numbers:
        raise UserError("there is a header but no data", where=str(layout.path))

    def place(row: int) -> str:
        return f"{layout.path}:{numbers[row]}"

    cells = dict(zip(layout.columns, every, strict=True))
    name = layout.columns[layout.target]
    of_target = cells.pop(name)
    if ref.task == "classification":
        target, y = read_labels(name, of_target, place)
    else:
        target = read_target(name, of_target, place)
        y = target.values
    dropped = {name for name, choice in named(ref.categories).items() if choice == "drop"}
    inputs = [
        read_input(name, found, place, Choices.of(ref, name)) for name, found in cells.items() if name not in dropped
    ]
    if not inputs:
        raise UserError("all inputs are dropped", where=str(layout.path), field="categories")
    return inputs, target, y, faults


def _rows(layout: _Layout) -> tuple[list[list[str]], list[int], list[UserError]]:
    """Return the fields of each column, the line numbers of the rows, and the fault of lines of other lengths."""
    size = len(layout.columns)
    records = _records(layout.path, layout.lines, layout.delimiter)
    next(records)
    columns: list[list[str]] = [[] for _ in layout.columns]
    numbers: list[int] = []
    other: list[tuple[int, int]] = []
    for line, fields in records:
        if len(fields) == size:
            numbers.append(line)
            for column, field in zip(columns, fields, strict=True):
                column.append(field)
        else:
            other.append((line, len(fields)))
    if not other:
        return columns, numbers, []
    line, count = other[0]
    more = f"; so do not fit {len(other)} lines" if len(other) > 1 else ""
    problem = f"the line has {count} fields, but the header has {size}{more}"
    return columns, numbers, [UserError(problem, where=f"{layout.path}:{line}")]


def _faults(layout: _Layout, inputs: list[Column], target: Column) -> Iterator[UserError]:
    """Yield what is wrong with the whole file."""
    where, name, y = str(layout.path), target.name, target.values
    if len(y) < MINIMUM_ROWS:
        yield UserError("too few data points", where=where, found=len(y), allowed=f"at least {MINIMUM_ROWS}")
    if len(target.names) > len(y) // 2:
        yield UserError(
            "the target has too many classes",
            where=where,
            field=f"column {name}",
            found=f"{len(target.names)} different values in {len(y)} lines",
            allowed="labels of classes; for a numerical target use `task: regression`",
        )
    if y.min() == y.max():
        found = target.names[0] if target.names else float(y[0])
        yield UserError("the target is constant", where=where, field=f"column {name}", found=found)
    for column in inputs:
        if column.kind == target.kind and np.array_equal(column.values, y):
            yield UserError(
                f"this input equals the target {name!r} in every line", where=where, field=f"column {column.name}"
            )
