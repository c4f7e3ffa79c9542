"""Columns, paragraphs and errors that fit the terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError, visible

_MAX_WIDTH = 100  # columns
_NO_TERMINAL = 1000  # columns assumed for output to a file, so that nothing is wrapped or omitted
MIN_WIDTH = 20  # columns of the narrowest paragraph
_SHORT = 30  # characters; a list with longer items has one line per item
_WIDE = 160  # characters; no longer line of a file is shown


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


def field_lines(key: str, value: Any) -> list[str]:
    """Return a key with its value, on one line if it fits."""
    if isinstance(value, list) and max(map(len, map(str, value))) > _SHORT:
        return [f"{key}:", *(line for item in value for line in paragraph(str(item), "  - "))]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(key) + len(text) < width():
        return [f"{key}: {text}" if text else key]
    return [f"{key}:", *paragraph(text, "    ")]


def paragraph(text: str, indent: str) -> list[str]:
    """Return text wrapped to the width of paragraphs; ``indent`` precedes the first line."""
    return textwrap.wrap(
        text, width(), initial_indent=indent, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def error_lines(error: UserError) -> list[str]:
    """Return the lines of an error message, ``file:line`` and the problem first; those of several errors in order."""
    if error.causes:
        hidden = str(error).splitlines()[len(error.causes) :]
        return [line for cause in error.causes for line in error_lines(cause)] + hidden
    head, suggestion, allowed = error.head, error.suggestion, error.choices
    if error.found is not None:
        head += f"; found {error.found!r}"
    lines = [visible(f"ep-bench: {head}" + (f"; did you mean {suggestion!r}?" if suggestion else ""))]
    lines += [visible(line) for line in _source(error)]
    if allowed is not None:
        lines += paragraph(visible(f"allowed: {allowed}"), "  ")
    return lines


def _source(error: UserError) -> Iterator[str]:
    """Yield the line of the file that the error names, and a caret below what was found; nothing if it is not there."""
    place = re.fullmatch(r"(.+):(\d+)", error.where or "")
    if place is None:
        return
    try:
        line = Path(place.group(1)).read_text(encoding="utf-8").splitlines()[int(place.group(2)) - 1]
    except (OSError, ValueError, IndexError):
        return
    words = [str(word) for word in (error.found, error.name, (error.field or "").rpartition(".")[2]) if word]
    word = next((word for word in words if word in line), None)
    if len(line) > _WIDE or word is None:
        return
    margin = " " * len(place.group(2))
    yield f"  {place.group(2)} | {line}"
    yield f"  {margin} | {' ' * line.index(word)}{'^' * len(word)}"
