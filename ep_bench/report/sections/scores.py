"""Main scores: one table per score and one panel per data set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np

from ep_bench.plotting.axes import canvas, intervals
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture, Section, Table, item
from ep_bench.plotting.style import COLUMNS, STYLE, finish
from ep_bench.report import tables
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES
from ep_bench.report.summary import RankedScore, Ranking, ScoreTable
from ep_bench.types import Task

_LEADS: Mapping[Task, str] = {
    "regression": "Scores are means over test data points, in the original units of the target. The mean test "
    "log-likelihood is that of one observation, noise included, in nats (higher is better).",
    "classification": "Scores of classification sets are means over test data points: the log probability of the true "
    "class in nats (higher is better), the fraction of data points whose most probable class is wrong, and the Brier "
    "score, the sum over classes of the squared difference between probability and outcome (0 to 2).",
}


def sections(report: ReportContext) -> list[Section]:
    """Return the section of the main scores, with one part per score."""
    if not report.scores:
        return []
    parts = [_part(one, report.styles) for one in report.scores]
    lead = _lead(set(report.merged.tasks().values()))
    return [Section("scores", "Scores", [lead], parts=parts)]


def _lead(tasks: Collection[Task]) -> str:
    return " ".join(text for task, text in _LEADS.items() if task in tasks)


def _part(one: RankedScore, styles: Mapping[str, MethodStyle]) -> Section:
    score, ranking = one.score, one.over_datasets
    pictures = [panels(one.table, styles)] if score.source in FIGURES else []
    files = {f"{score.name}.md": tables.markdown(one.table, ranking)}
    files[f"{score.name}.tex"] = tables.latex(one.table, ranking)
    table = score_table(one.table, ranking)
    return Section(f"score-{score.name}", score.axis, pictures=pictures, tables=[table], tables_first=True, files=files)


def score_table(table: ScoreTable, ranking: Ranking | None = None, folded: str = "") -> Table:
    """Return a score table for a page. Methods are rows there, so that a data set's column can be sorted.

    The Markdown has one row per data set.
    """
    head = ["method", *table.datasets, *([f"average rank (N = {ranking.n})"] if ranking else [])]
    decimals = tables.places_by_dataset(table)
    ranks = tables.average_ranks(ranking, table.methods)
    rows: list[list[Any]] = []
    for j, method in enumerate(table.methods):
        cells = [
            item(
                tables.cell(table, i, j, decimals[i]) or "–",
                float(table.mean[i, j]) if table.n[i, j] else "",
                strong=bool(table.marked[i, j]),
                small=tables.shortfall(table, i, j),
            )
            for i in range(len(table.datasets))
        ]
        rank = [item(ranks[j] or "–", ranks[j].partition(" ")[0])] if ranking else []
        rows.append([method, *cells, *rank])
    return Table(head, rows, tables.caption(table), folded, tables.markdown(table, ranking))


def panels(table: ScoreTable, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return one panel per data set with each method's mean and standard error (Bui et al. 2016, figure 3)."""
    score = table.score
    cut = []
    shown = [styles[method] for method in table.methods]
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(table.datasets), table.methods)
        for i, (dataset, ax) in enumerate(zip(table.datasets, axes, strict=True)):
            splits = int(table.n[i].max())
            ax.set_title(f"{dataset} ({splits} split{'s' if splits != 1 else ''})")
            mean, stderr = table.mean[i], table.stderr[i]
            cut.append(intervals(ax, mean, mean - stderr, mean + stderr, np.arange(len(mean)), shown))
            if i + COLUMNS >= len(axes):
                ax.set_xlabel(score.axis)
    uneven = np.any((table.n > 0) & (table.n < table.n.max(axis=1, keepdims=True)))
    caption = (
        f"{score.title} by data set: mean over test splits and one standard error (ddof 0). "
        f"{score.direction.capitalize()}."
        + (" An open triangle with a number shows a mean outside the panel." if any(cut) else "")
        + (" Some means use fewer splits than the title states; see the table." if uneven else "")
    )
    return finish(figure, f"panels-{score.name}", caption)
