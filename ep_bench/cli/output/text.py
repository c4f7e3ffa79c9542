"""Columns and paragraphs that fit the terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

_MAX_WIDTH = 100  # columns
_NO_TERMINAL = 1000  # columns assumed for output to a file, so that nothing is wrapped or omitted
MIN_WIDTH = 20  # columns of the narrowest paragraph
_SHORT = 30  # characters; a list with longer items has one line per item


def width() -> int:
    """Return the width of paragraphs: that of the terminal, within limits."""
    return min(_MAX_WIDTH, max(shutil.get_terminal_size((_MAX_WIDTH, 24)).columns, 2 * MIN_WIDTH))


def terminal_width() -> int:
    """Return the width of the terminal; a very large one for output to a file."""
    return shutil.get_terminal_size((_NO_TERMINAL, 24)).columns


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as left-aligned columns, separated by two spaces."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def wrapped_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as columns; the last column is wrapped to the width of the terminal."""
    start = sum(max(map(len, column)) + 2 for column in list(zip(*rows, strict=True))[:-1])
    size = max(terminal_width() - start, MIN_WIDTH)
    lines: list[Sequence[str]] = []
    for row in rows:
        first, *rest = textwrap.wrap(row[-1], size, break_on_hyphens=False, break_long_words=False) or [""]
        lines += [[*row[:-1], first], *([*[""] * (len(row) - 1), more] for more in rest)]
    return columns(lines)


def field_lines(key: str, value: Any) -> list[str]:
    """Return a key with its value, on one line if it fits."""
    if isinstance(value, list) and max(map(len, map(str, value))) > _SHORT:
        return [f"{key}:", *(line for item in value for line in paragraph(str(item), "  - "))]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(key) + len(text) < width():
        return [f"{key}: {text}" if text else key]
    return [f"{key}:", *paragraph(text, "    ")]


def docstring_lines(doc: str) -> Iterator[str]:
    """Yield the lines of a docstring; only paragraphs wider than the terminal are wrapped, formulas are not."""
    terminal = terminal_width()
    for part in re.split(r"\n(?=\n)|(?<!\n)\n(?=Deviation:)", doc):
        text = part.lstrip("\n")
        yield from [""] * (len(part) - len(text))
        is_prose = not re.search(r"^ |\S  ", text, re.MULTILINE)
        is_wide = max(map(len, text.splitlines()), default=0) > terminal
        yield from textwrap.wrap(text, terminal, break_on_hyphens=False) if is_prose and is_wide else text.splitlines()


def paragraph(text: str, indent: str) -> list[str]:
    """Return text wrapped to the width of paragraphs; ``indent`` precedes the first line."""
    return textwrap.wrap(
        text, width(), initial_indent=indent, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
