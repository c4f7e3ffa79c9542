"""The report of one or several studies: score tables, figures, rank statistics and one page with all of them.

Loads no numba. Heavy libraries are imported when a report is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ep_bench.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    all_figures : whether to draw experiments too; by default only for one study of few methods
    select : ``key=glob`` patterns of the cells to report, key is method, dataset or split; requires ``out``
    pdf : whether to write each figure as PDF as well, which takes about a second more
    log : receives each note of the merge, such as cells that disagree

    Raises
    ------
    UserError
        If there is no folder, or one without results, ``out`` is something else than a folder, or no cell matches.
    """
    from ep_bench.plotting.style import write_picture
    from ep_bench.report import first_screen, merge, render_html
    from ep_bench.report.context import ReportContext
    from ep_bench.report.sections import all_sections
    from ep_bench.results import store

    if not folders:
        raise UserError("name at least one results folder", where="report")
    if out is not None and out.exists() and not out.is_dir():
        raise UserError("is not a folder", where=str(out))
    if select and out is None:
        raise UserError("a report of selected cells needs a folder of its own", where="--select", allowed="--out DIR")
    merged = merge.merge(folders, select)
    for note in merged.notes:
        log(note)
    report = ReportContext(merged, all_figures=all_figures)
    found = all_sections(report)
    out = out or Path(folders[0]) / "report"
    every = [part for section in found for part in section.with_parts()]
    source = report.merged.source
    files = {name: text for part in every for name, text in part.files.items()}
    views = first_screen.views(report)
    data = render_html.CellData(report).as_dict() if views else None
    page = render_html.page(report.title, found, views, data, source)
    texts = {out / "report.html": page}
    if len(merged.studies) > 1:
        texts[out / "index.html"] = page
    texts |= {out / "tables" / name: text for name, text in files.items()}
    for path, text in texts.items():
        store.write_atomically(path, text)
    pictures = [picture for part in every for picture in part.pictures]
    return [
        *texts,
        *(path for picture in pictures for path in write_picture(picture, out / "figures", pdf=pdf, source=source)),
    ]


def figures(*folders: str | Path, select: Sequence[str] = ()) -> dict[str, Figure]:
    """Return all figures of a report as matplotlib figures, by the name of their file.

    Parameters
    ----------
    *folders : str or Path
        Results folders; several are merged as by ``ep-bench report``.
    select : sequence of str
        Patterns of the cells, such as ``dataset=boston`` or ``method=PBP*``.

    Returns
    -------
    dict of str to matplotlib Figure
        Among others ``panels-ll``, ``critical-difference-ll``, ``calibration`` and ``score-against-time``, and the
        figures of experiments.

    Raises
    ------
    UserError
        There is no folder, one has no results, or no cell matches.
    """
    from ep_bench.report import merge
    from ep_bench.report.context import ReportContext
    from ep_bench.report.sections import all_sections

    if not folders:
        raise UserError("name at least one results folder", where="figures")
    report = ReportContext(merge.merge([Path(folder) for folder in folders], select), all_figures=True)
    parts = [part for section in all_sections(report) for part in section.with_parts()]
    return {picture.name: picture.figure for part in parts for picture in part.pictures}
