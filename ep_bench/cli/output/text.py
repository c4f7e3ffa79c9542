"""Text for a terminal: paragraphs that wrap at words, tables that drop columns on a narrow one, and errors."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ep_bench.errors import UserError, visible

if TYPE_CHECKING:
    from typing import TextIO

Item = RenderableType  # what a command prints: a line of text, a table, or another object of rich

_NO_TERMINAL = 1000  # columns of output to a file, so that nothing is wrapped or dropped
_WIDE = 160  # characters; no longer line of a file is shown
_GAP = "  "
_RED, _YELLOW, _GREEN = "red", "yellow", "green"
_STYLES = {
    **dict.fromkeys(("worse", "failed", "does not hold", "FAULT"), _RED),
    **dict.fromkeys(("better", "not decided", "incomplete", "timeout", "memory", "stale", "missing"), _YELLOW),
    **dict.fromkeys(("reproduced", "holds", "done", "ok"), _GREEN),
}  # colours of cells that are a verdict or a state


def printed(item: Item, stream: TextIO | None = None) -> list[str]:
    """Return the lines of an item, wrapped to the terminal and, on a terminal, with colours."""
    width = shutil.get_terminal_size((_NO_TERMINAL, 24)).columns
    console = Console(file=stream or sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as found:
        console.print(item, crop=False)
    return [line.rstrip() for line in found.get().split("\n")[:-1]]


@dataclass(frozen=True)
class Columns:
    """Rows of cells in columns, the head first.

    Attributes
    ----------
    drop : columns that are left out where the terminal is too narrow, the first one first; a line names them
    below : a text for each row after the head, printed below it
    """

    rows: Sequence[Sequence[str]]
    drop: Sequence[str] = ()
    below: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the rows with the columns that fit."""
        head, body = list(self.rows[0]), self.rows[1:]
        widths = [max(map(cell_len, cells)) for cells in zip(*self.rows, strict=True)]
        shown, dropped = list(range(len(head))), list[str]()
        for name in filter(head.__contains__, self.drop):
            if _total(widths[j] for j in shown) <= options.max_width:
                break
            dropped.append(name)
            shown.remove(head.index(name))
        right = [j > 0 and _are_numbers([row[j] for row in body]) for j in range(len(head))]

        def line(row: Sequence[str], styles: Mapping[str, str]) -> Text:
            cells = (_aligned(row[j], widths[j], styles.get(row[j], ""), right=right[j]) for j in shown)
            return Text(_GAP, no_wrap=True).join(cells)

        yield line(head, dict.fromkeys(head, "bold"))
        for row, text in zip_longest(body, self.below, fillvalue=""):
            yield line(list(row), _STYLES)
            if text:
                yield indented(str(text))
        if dropped:
            yield Text(f"not shown in {options.max_width} columns: {', '.join(dropped)}", "dim")


def _total(widths: Iterator[int]) -> int:
    return sum(width + len(_GAP) for width in widths) - len(_GAP)


def _are_numbers(cells: Sequence[str]) -> bool:
    return any(cells) and all(not cell or cell[0] in "+-–0123456789" for cell in cells)


def _aligned(cell: str, width: int, style: str, *, right: bool) -> Text:
    space = " " * (width - cell_len(cell))
    return Text.assemble(space * right, (cell, style), space * (not right))


def matrix(corner: str, places: Iterable[tuple[str, str]], entry: Callable[[tuple[str, str]], str]) -> Columns:
    """Return a table of the entries of (method, data set), with those data sets that fit."""
    methods, datasets = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
    rows = [(method, *(entry((method, dataset)) for dataset in datasets)) for method in methods]
    return Columns([(corner, *datasets), *rows], drop=datasets[:0:-1])


def indented(text: str, indent: int = 4) -> Padding:
    """Return a paragraph of which every line is indented."""
    return Padding(Text(text), (0, 0, 0, indent), expand=False)


def fields(rows: Sequence[tuple[str, str]]) -> Table:
    """Return names with their values, which wrap in the second column."""
    grid = Table.grid(padding=(0, len(_GAP), 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, value in rows:
        grid.add_row(name, Text(value, overflow="fold"))
    return grid


def error_items(error: UserError) -> list[Item]:
    """Return an error message, ``file:line`` and the problem first; the messages of several errors in order."""
    if error.causes:
        hidden = str(error).splitlines()[len(error.causes) :]
        return [item for cause in error.causes for item in error_items(cause)] + list(hidden)
    head, suggestion = error.head, error.suggestion
    if error.found is not None:
        head += f"; found {error.found!r}"
    allowed = [] if error.choices is None else [indented(visible(f"allowed: {error.choices}"), 2)]
    hint = f"; did you mean {suggestion!r}?" if suggestion else ""
    return [visible(f"ep-bench: {head}{hint}"), *_source(error), *allowed]


def _source(error: UserError) -> Iterator[Text]:
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
    yield Text(visible(f"  {place.group(2)} | {line}"), no_wrap=True)
    yield Text(f"  {margin} | {' ' * line.index(word)}{'^' * len(word)}", _RED, no_wrap=True)
