"""Further scores, such as coverage and times, and all scores as CSV."""

from __future__ import annotations

from ep_bench.plotting.page import Section
from ep_bench.report import tables
from ep_bench.report.context import ReportContext
from ep_bench.report.sections.scores import score_table


def sections(report: ReportContext) -> list[Section]:
    """Return the section of the further scores. Its tables are folded."""
    further = report.further_scores
    every = [*(one.table for one in report.scores), *further.values()]
    if not every:
        return []
    files = {f"{name}.md": tables.markdown(table) for name, table in further.items()}
    files["scores.csv"] = tables.long_csv(every)
    shown = [score_table(table, folded=table.score.axis) for table in further.values()]
    return [Section("more", "Further scores", tables=shown, files=files, notes=report.time_notes)]
