"""Builds a report from results folders and writes its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from ep_bench.errors import UserError
from ep_bench.plotting.page import Section
from ep_bench.plotting.stored_figures import FILE, StoredFigures, taking_over
from ep_bench.report import merge, page_data, render_html, render_markdown, selected_cells
from ep_bench.report.changed_trees import note_changed_trees
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import SECTIONS
from ep_bench.results import store


def sections(report: ReportContext) -> list[Section]:
    """Return all sections of a report, in the order of the page."""
    changed = report.merged.changed_trees()
    found = [section for function in SECTIONS for section in function(report)]
    return [note_changed_trees(section, changed) for section in found] if changed else found


def write(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    pdf: bool = False,
    all_figures: bool | None = None,
    select: Sequence[str] = (),
    log: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the report of ``folders``; see ``ep_bench.report.build``."""
    if not folders:
        raise UserError("name at least one results folder", where="report")
    merged = selected_cells.merged_cells(folders, select) if select else merge.merge(folders)
    for note in merged.notes:
        log(note)
    drawn = len(merged.studies) == 1 if all_figures is None else all_figures
    report = ReportContext(merged, all_figures=drawn, internal_traces=bool(all_figures))
    out = Path(out) if out is not None else Path(folders[0]) / "report"
    figures = out / "figures"
    stored = StoredFigures(figures)
    with nullcontext() if pdf else taking_over(stored):  # stored figures have no PDF
        found = sections(report)
    page = render_html.page(report.title, report.summary, found, page_data.page_data(report))
    texts = {out / "report.html": page, out / "report.md": render_markdown.page(report.title, report.summary, found)}
    if len(merged.studies) > 1:
        texts[out / "index.html"] = page
    every = [part for section in found for part in section.with_parts()]
    texts |= {out / "tables" / name: text for part in every for name, text in part.files.items()}
    pictures = [picture for part in every for picture in part.pictures]
    written = {f"tables/{name}" for part in every for name in part.files} | {
        f"figures/{one.name}.svg" for one in pictures
    }
    if written:
        texts[figures / FILE] = stored.text(written)
    for path, text in texts.items():
        store.write_atomically(path, text)
    for name in stored.written - written:
        _remove(out / name)
    return [*texts, *(path for picture in pictures for path in picture.write(figures, pdf=pdf))]


def _remove(path: Path) -> None:
    """Remove a figure, with its PDF, or a table of an earlier report, if it is still there."""
    for file in (path, path.with_suffix(".pdf")) if path.suffix == ".svg" else (path,):
        with suppress(OSError):
            file.unlink()
