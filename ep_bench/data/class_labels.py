"""Class labels: files of classification sets, and the conversion of labels to class indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import numpy as np

from ep_bench.data.cards import Card
from ep_bench.types import Array

UNKNOWN = "?"  # a missing value; lines with one are omitted


def read_table(file: TextIO, found: Card) -> tuple[Array, Array]:
    """Return inputs (n, d) and class indices (n,) of the complete lines of a table with labels.

    Raises
    ------
    ValueError
        A label is not on the card, or an input is not a number.
    IndexError
        A line is too short.
    """
    lines = [line for line in file.read().splitlines() if line.strip()][found.header :]
    delimiter = "," if "," in lines[0] else None
    target = found.target_column if found.target_column is not None else found.d
    columns = found.input_columns or tuple(j for j in range(found.d + 1) if j != target)
    rows = [[field.strip() for field in line.split(delimiter)] for line in lines]
    complete = [row for row in rows if all(row[j] != UNKNOWN for j in (*columns, target))]
    inputs = np.array([[float(row[j]) for j in columns] for row in complete])
    return inputs, _by_card([row[target] for row in complete], found)


def read_libsvm(file: TextIO, found: Card) -> tuple[Array, Array]:
    """Return inputs (n, d) and class indices (n,) from lines of ``label index:value ...``.

    Indices count from 1; inputs that a line does not name are 0. Raises ValueError or IndexError for another layout.
    """
    lines = [line.split() for line in file.read().splitlines() if line.strip()]
    inputs = np.zeros((len(lines), found.d))
    for i, (_, *entries) in enumerate(lines):
        for entry in entries:
            index, _, value = entry.partition(":")
            if int(index) < 1:
                raise IndexError(f"the index of an input must be at least 1, found {entry!r}")
            inputs[i, int(index) - 1] = float(value)
    return inputs, _by_card([label for label, *_ in lines], found)


def _by_card(labels: Sequence[str], found: Card) -> Array:
    index_of = {label: float(index) for index, label in enumerate(found.classes)}
    unknown = sorted(set(labels) - index_of.keys())
    if unknown:
        raise ValueError(f"the labels {', '.join(unknown[:5])} are not on the card, which has {', '.join(index_of)}")
    return np.array([index_of[label] for label in labels])


def numbered(labels: Sequence[str], numbers: Sequence[float | None]) -> tuple[Array, tuple[str, ...]]:
    """Return class indices (n,) and the names of the classes.

    ``numbers`` are the labels as numbers, or None for other texts. If all labels are numbers, the classes are sorted by
    value, and 1 and 1.0 are one class. Otherwise they are sorted as texts.
    """
    values = [number for number in numbers if number is not None]
    if len(values) == len(labels):
        ordered, indices = np.unique(np.array(values), return_inverse=True)
        return indices.astype(np.float64), tuple(f"{value:.15g}" for value in ordered.tolist())
    names = sorted(set(labels))
    index_of = {name: float(index) for index, name in enumerate(names)}
    return np.array([index_of[label] for label in labels]), tuple(names)
