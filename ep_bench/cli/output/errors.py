"""An error of the user on the terminal: the suggestion first, the line of the file with a caret, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ep_bench.cli.output.text import paragraph
from ep_bench.errors import UserError, visible

_WIDE = 160  # characters; no longer line of a file is shown


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
