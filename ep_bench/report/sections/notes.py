"""Notes of the merge, such as cells that disagree between studies."""

from __future__ import annotations

from ep_bench.plotting.page import Section
from ep_bench.report.context import ReportContext


def sections(report: ReportContext) -> list[Section]:
    """Return the notes, if there are any."""
    notes = report.merged.notes
    return [Section("notes", "Notes", notes)] if notes else []
