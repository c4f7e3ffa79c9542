"""Main scores: one table per score and one panel per data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ep_bench.convergence import DAGGER
from ep_bench.plotting.axes import HOLLOW, canvas, intervals, shared_label
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish, towards_better
from ep_bench.report import score_table_formats as formats
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES
from ep_bench.report.summary import RankedScore, Ranking, ScoreTable
from ep_bench.types import Task

ORDER = 30
BELOW = 0.3  # distance of published marks from the line of a method
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
    parts = [_part(report, one) for one in report.scores]
    tasks = set(report.merged.tasks().values())
    lead = " ".join(text for task, text in _LEADS.items() if task in tasks)
    return [Section("scores", "Scores", [lead], parts=parts)]


class PublishedMark(NamedTuple):
    """A published mean with its standard error (NaN if unknown) for a method on a data set, in our units."""

    dataset: str
    method: str
    mean: float
    stderr: float
    disputed: bool = False


def published_marks(report: ReportContext, table: ScoreTable) -> list[PublishedMark]:
    """Return the published numbers of a score, without numbers of later papers and numbers in other units."""
    checks = report.checks
    if not len(checks):
        return []
    rows = checks[(checks["metric"] == table.score.source) & (checks["verdict"] != "yardstick")]
    found = []
    for row in rows.to_dict("records"):
        place = (row["dataset"], row["method"])
        if place[0] in table.datasets and place[1] in table.methods:
            ours = table.mean[table.datasets.index(place[0]), table.methods.index(place[1])]
            if math.isclose(float(row["mean"]), float(ours), rel_tol=1e-6):
                stderr = pd.to_numeric(row["published_stderr"], errors="coerce")
                disputed = row["verdict"] == "disputed"
                found.append(PublishedMark(*place, float(row["published_mean"]), float(stderr), disputed))
    return list(dict.fromkeys(found))


def _part(report: ReportContext, one: RankedScore) -> Section:
    score, ranking = one.score, one.headline
    drawn = score.source in FIGURES and report.draws_panels
    pictures = [panels(report, one.table)] if drawn else []
    shown = [score_table(one.table, ranking)]
    files = table_files([one], report.merged.source)
    return Section(f"score-{score.name}", score.axis, pictures=pictures, tables=shown, tables_first=True, files=files)


def table_files(scores: Sequence[RankedScore], source: str) -> dict[str, str]:
    """Return the tables of scores in Markdown and LaTeX, by file name, with their source as a comment."""
    found = {}
    for one in scores:
        found[f"{one.score.name}.md"] = f"{formats.markdown(one.table, one.headline)}\n<!-- {source} -->\n"
        # Inside the table, which is copied into a paper.
        latex = formats.latex(one.table, one.headline)
        found[f"{one.score.name}.tex"] = latex.replace(r"\end{table}", f"% {source}\n\\end{{table}}")
    return found


def score_table(table: ScoreTable, ranking: Ranking | None = None, folded: str = "") -> Table:
    """Return a score table for a page. Methods are rows there, so that a data set's column can be sorted.

    Incomplete entries are grey and have no value, so that they are sorted last.
    """
    head = ["method", *(["rank"] if ranking else []), *table.datasets]
    decimals = formats.places_by_dataset(table)
    ranks = formats.average_ranks(ranking, table.methods)
    rows: list[list[Any]] = []
    for j in formats.order(table, ranking):
        rank = [item(ranks[j] or "–", ranks[j].partition(" ")[0])] if ranking else []
        cells = [_entry(table, i, j, decimals[i]) for i in range(len(table.datasets))]
        rows.append([table.methods[j], *rank, *cells])
    caption = formats.caption(table, ranking)
    if ranking and len(ranking.datasets) < len(table.datasets):
        caption += f" Ranks are those over {', '.join(ranking.datasets)}."
    return Table(head, rows, caption, folded)


def _entry(table: ScoreTable, i: int, j: int, decimals: int) -> Item:
    return item(
        formats.cell(table, i, j, decimals) or "–",
        float(table.mean[i, j]) if table.complete[i, j] else "",
        strong=bool(table.is_best[i, j]),
        small=formats.shortfall(table, i, j) or formats.absence(table, i, j),
        kind="number faint" if formats.is_incomplete(table, i, j) else "number",
    )


def panels(report: ReportContext, table: ScoreTable) -> Picture:
    """Return one panel per data set with each method's mean and standard error (Bui et al. 2016, figure 3).

    Methods are sorted by average rank. Published means are open squares below a method's line, disputed ones crosses.
    """
    score, published = table.score, published_marks(report, table)
    methods = [method for method in report.by_rank(score) if method in table.methods]
    order = [table.methods.index(method) for method in methods]
    cut: list[bool] = []
    seen: list[PublishedMark] = []
    with mpl.rc_context(STYLE):
        styles = [report.styles[method] for method in methods]
        figure, axes = canvas(len(table.datasets), methods, styles)
        for i, (dataset, ax) in enumerate(zip(table.datasets, axes, strict=True)):
            ax.set_title(f"{dataset} ({table.plan[i]} split{'s' if table.plan[i] != 1 else ''})")
            mean, stderr = table.mean[i, order], table.stderr[i, order]
            looks = [
                style._replace(is_hollow=table.converged[i][j].mark == DAGGER)
                for j, style in zip(order, styles, strict=True)
            ]
            lines, faint = np.arange(len(mean)), ~table.complete[i, order]
            cut.append(intervals(ax, mean, mean - stderr, mean + stderr, lines, looks, faint))
            seen += _draw_published(ax, [one for one in published if one.dataset == dataset], methods)
        shared_label(figure, towards_better(score.axis, score.better))
    return finish(figure, f"panels-{score.name}", _panels_caption(table, seen, len(published), cut=any(cut)))


def _draw_published(ax: Axes, marks: Sequence[PublishedMark], methods: Sequence[str]) -> list[PublishedMark]:
    """Draw the published numbers within the limits of a panel, and return them."""
    left, right = ax.get_xlim()
    shown = [one for one in marks if left <= one.mean <= right]
    for one in shown:
        y = methods.index(one.method) + BELOW
        marker = "x" if one.disputed else "s"
        ax.plot(one.mean, y, marker, color="0.3", markersize=2.4, fillstyle="none", markeredgewidth=0.7)
        if one.stderr > 0.0 and not one.disputed:
            ax.plot([one.mean - one.stderr, one.mean + one.stderr], [y, y], color="0.3", linewidth=0.7, zorder=1.9)
    ax.set_xlim(left, right)
    return shown


def _panels_caption(table: ScoreTable, found: Sequence[PublishedMark], known: int, *, cut: bool) -> str:
    """Return the caption, with what the marks of the ``found`` ones of ``known`` published numbers mean."""
    shown = len(found)
    is_marked = any(splits.mark == DAGGER for row in table.converged for splits in row)
    return (
        f"{table.score.title} by data set, sorted by average rank: mean over test splits and standard error (ddof 0)."
        + HOLLOW * is_marked
        + (" An open triangle with a number shows a mean outside the panel." if cut else "")
        + (" Grey: incomplete entries; see the table." if (table.n > 0)[~table.complete].any() else "")
        + (" Open squares below: published means and standard errors" if shown else "")
        + (" (crosses: disputed ones)" if any(one.disputed for one in found) else "")
        + (f"; {known - shown} of {known} are outside the panels." if 0 < shown < known else "." if shown else "")
    )
