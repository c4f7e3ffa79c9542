"""The report of one or several studies: score tables, figures, rank statistics and one page with all of them.

Loads no numba. Heavy libraries are imported when a report is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ep_bench.errors import UserError


def build(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    pdf: bool = False,
    all_figures: bool | None = None,
    select: Sequence[str] = (),
    log: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the report of the studies in ``folders`` and return the files written, ``report.html`` first.

    Several folders are merged: their methods are shown next to each other, and a cell (identified by its hash) counts
    once. The page of several studies is also ``index.html``.

    Parameters
    ----------
    folders : results folders
    out : where to write; by default ``report`` in the first folder
    all_figures : whether to draw chains, training and experiments too; by default only for a single study
    select : ``key=glob`` patterns of the cells to report, key is method, dataset or split; requires ``out``
    pdf : whether to write each figure as PDF as well, which takes about a second more
    log : receives each note of the merge, such as cells that disagree

    Raises
    ------
    UserError
        If there is no folder, or one without results, ``out`` is something else than a folder, or no cell matches.
    """
    from ep_bench.report.builder import write

    if out is not None and out.exists() and not out.is_dir():
        raise UserError("is not a folder", where=str(out))
    if select and out is None:
        raise UserError("a report of selected cells needs a folder of its own", where="--select", allowed="--out DIR")
    return write(folders, out, pdf=pdf, all_figures=all_figures, select=select, log=log)
