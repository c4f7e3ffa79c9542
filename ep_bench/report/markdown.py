"""report.md: the tables, statistics and figures of a report as a repository shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ep_bench.plotting.page import Picture
from ep_bench.report import page_rows, point_table_pages, tables

if TYPE_CHECKING:
    from ep_bench.report.builder import Report


def page(report: Report) -> str:
    """Return the report as GitHub Markdown; figures are links to the files beside it."""
    merged = report.merged
    lines = [f"# {report.title}", "", page_rows.summary_line(merged), ""]
    lines += [f"- {note}" for note in merged.notes]
    for drawn in report.experiments:
        lines += ["", f"## {drawn.title}", "", *_pictures(drawn.pictures)]
        for table in drawn.tables:
            lines += [*([table.caption, ""] if len(drawn.tables) > 1 else []), *_grid(table.head, table.rows)]
    for part in report.parts:
        lines += ["", f"## {part.score.title}", "", tables.markdown(part.table, part.ranking)]
        lines += _pictures([part.panels] if part.panels else [])
        lines += [f"- {line}" for line in page_rows.rank_lines(part.rankings)]
        lines += ["", *_pictures([part.diagram] if part.diagram else [])]
    for shown in report.grouped:
        lines += ["", f"## Ranks by group: {shown.title}", "", *_pictures(shown.pictures)]
        for table in shown.tables:
            lines += [f"{table.caption}.", "", *_grid(table.head, table.rows)]
        lines += [f"- {line}" for line in shown.lines]
    if report.compared is not None:
        lines += ["", "## Row by row", "", *_pictures(report.compared.pictures)]
        for table in report.compared.tables:
            lines += [f"{table.caption}.", "", *_grid(table.head, table.rows)]
    for found in report.points:
        lines += ["", f"## Over test points: {point_table_pages.title(found)}", "", point_table_pages.markdown(found)]
    if report.functions:
        lines += ["", "## Predictions over one input", "", *_pictures(report.functions)]
    if report.plots:
        lines += ["", f"## {report.plots_title}", "", *_pictures(report.plots)]
    sampled = page_rows.chains_part(report.chains)
    if sampled is not None and report.chains is not None:
        lines += ["", "## Markov chains", ""]
        lines += [f"{sampled['caption']}.", "", *_grid(sampled["head"], sampled["rows"])] if sampled["rows"] else []
        lines += (
            [f"{sampled['more_caption']}.", "", *_grid(sampled["more_head"], sampled["more"])]
            if sampled["more"]
            else []
        )
        lines += [*(f"- {line}" for line in sampled["lines"]), "", *_pictures(report.chains.pictures)]
    if report.training is not None:
        lines += ["", "## Training curves", "", *(f"- {line}" for line in report.training.lines), ""]
        lines += _pictures(report.training.pictures)
    choices = page_rows.tuned_table(report.tuned)
    if choices is not None:
        lines += ["", "## Tuned options", "", *(f"- {line}" for line in choices["lines"]), ""]
        caption, grid = f"{choices['caption']}.", _grid(choices["head"], choices["rows"])
        lines += [caption, "", *grid] if choices["rows"] else []
    if report.checks is not None and len(report.checks):
        checks = page_rows.check_rows(report.checks)
        lines += ["", "## Published numbers", "", checks["summary"], "", *_grid(checks["head"], checks["rows"])]
    gaps, remarks = page_rows.gap_rows(merged), page_rows.remark_rows(merged)
    if gaps or remarks:
        lines += ["", "## Missing cells and remarks", "", *_grid(["method", "data set", "finished", "the rest"], gaps)]
        lines += _grid(["method", "data set", "status", "reason", "splits"], remarks)
    lines += ["", "## What was run", ""]
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        facts = page_rows.study_facts(study, tag)
        lines += [f"**{tag}**: {facts['line']}", ""]
        lines += _grid(["method", "uses", "options given", "published as"], facts["methods"])
        lines += _grid(["data set", "rows", "inputs", "options", "SHA-256"], facts["datasets"])
        lines += _grid(["what", "value"], facts["environment"])
    return "\n".join(lines).rstrip("\n") + "\n"


def _pictures(pictures: Sequence[Picture]) -> list[str]:
    return [line for p in pictures for line in (f"![{p.name}](figures/{p.name}.svg)", "", p.caption, "")]


def _grid(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    if not rows:
        return []
    body = [tables.pipes([_text(entry) for entry in row]) for row in rows]
    return [tables.pipes(head), tables.pipes(["---"] * len(head)), *body, ""]


def _text(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    text = f"**{entry['text']}**" if entry["strong"] and entry["text"] else entry["text"]
    return f"{text} ({entry['small']})" if entry["small"] else str(text)
