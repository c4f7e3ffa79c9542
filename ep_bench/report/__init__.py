"""The report of one or several studies: tables, figures, rank statistics and one page that holds them all.

Loads no numba; the heavy libraries are imported where a report is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def build(
    folders: Sequence[Path], out: Path | None = None, *, pdf: bool = False, log: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Write the report of the studies in ``folders`` and return the files written, ``report.html`` first.

    Several folders are merged: their methods stand side by side, and a cell (by its hash) counts once. ``out`` is
    ``report`` in the first folder unless given. With ``pdf`` every figure is written as PDF too, beside its SVG; that
    takes about a second more. ``log`` gets each note of the merge, as of cells that disagree. Raises
    UserError for a folder without results.
    """
    from ep_bench.report.builder import write

    return write(folders, out, pdf=pdf, log=log)
