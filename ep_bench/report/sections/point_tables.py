"""Scores over the test data points of all splits, compared with published tables of this kind."""

from __future__ import annotations

from ep_bench.plotting.page import Section
from ep_bench.report import point_table
from ep_bench.report import point_table_formats as formats
from ep_bench.report.context import ReportContext
from ep_bench.report.point_table import PointTable


def sections(report: ReportContext) -> list[Section]:
    """Return the section of tables over data points, with one part per published table."""
    found = point_table.collect(report.merged)
    files = {"points.csv": formats.csv(found)}
    parts = [_part(table) for table in found]
    if not found:
        return []
    return [Section("points", "Scores over test data points", parts=parts, files=files, notes=report.time_notes)]


def _part(found: PointTable) -> Section:
    files = {f"{found.name}.md": formats.markdown(found), f"{found.name}.tex": formats.latex(found)}
    return Section(
        found.name, formats.title(found), tables=formats.grids(found), notes=formats.notes(found), files=files
    )
