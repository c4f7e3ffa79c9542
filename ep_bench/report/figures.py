"""Figures of results folders as matplotlib figures, for notebooks and papers.

Each function merges the folders as ``ep-bench report`` does, with the same colours. ``score`` is the
name of a main score: ``ll``, ``rmse``, ``crps``, ``error_rate`` or ``brier``; ``ll-classes`` is the log-likelihood of
classes if the folders have regression too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ep_bench.errors import UserError, nearest
from ep_bench.report import leaderboard, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.summary import RankedScore

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def score_panels(*folders: str | Path, score: str = "ll") -> Figure:
    """Return one panel per data set with each method's mean over splits, its standard error and published numbers.

    Scores are in the original units of the target, ``ll`` in nats. Raises UserError for an unknown score or folder.
    """
    from ep_bench.report.sections.scores import panels, published_marks

    report = _report(folders)
    table = _ranked(report, score).table
    return panels(table, report.styles, published_marks(report, table)).figure


def critical_difference(*folders: str | Path, score: str = "ll") -> Figure:
    """Return the critical-difference diagrams of Nemenyi's and of Wilcoxon's tests (Demsar 2006).

    Raises UserError with the reason if the tests are withheld, and for an unknown score or folder.
    """
    from ep_bench.report import rank_diagrams

    report = _report(folders)
    rankings = _ranked(report, score).rankings
    diagrams = rank_diagrams.possible(rankings)
    if not diagrams:
        reasons = " ".join(rank_diagrams.withheld_lines(rankings)) or "no two methods are complete on a data set"
        raise UserError(reasons, where="critical_difference")
    return rank_diagrams.critical_difference(diagrams, report.styles).figure


def calibration(*folders: str | Path) -> Figure:
    """Return the coverage of central 50, 90 and 95 % intervals and the calibration error of the PIT, by method.

    Raises UserError without a regression data set, and for an unknown folder.
    """
    from ep_bench.report.sections.calibration_and_time import CALIBRATION, calibration_figure

    report = _report(folders)
    tables = [report.further_scores[name] for name in CALIBRATION if name in report.further_scores]
    if not tables:
        raise UserError("no cell has a coverage or a calibration error", where="calibration")
    return calibration_figure(tables, report.labels, report.styles).figure


def score_against_time(*folders: str | Path, score: str = "ll") -> Figure:
    """Return the loss of each ranked method against its median CPU time, with the Pareto front.

    The loss is that of the leaderboard: the mean over data sets of the difference from the best, in nats for a
    log-likelihood and relative for other scores. Raises UserError if no methods are ranked.
    """
    from ep_bench.report.sections import leaderboard as drawing

    report = _report(folders)
    board = leaderboard.leaderboard(report.merged, _ranked(report, score).table, report.checks)
    if not drawing.has_losses_and_times(board):
        problem = "no two methods have a loss and a CPU time on a common data set on which they are complete"
        raise UserError(problem, where="score_against_time")
    return drawing.score_against_time(board, report.styles, report.merged.wall_times).figure


def _report(folders: tuple[str | Path, ...]) -> ReportContext:
    if not folders:
        raise UserError("name at least one results folder", where="figures")
    return ReportContext(merge.merge([Path(folder) for folder in folders]))


def _ranked(report: ReportContext, name: str) -> RankedScore:
    found = {one.score.name: one for one in report.scores}
    if name not in found:
        near = nearest(name, list(found))
        allowed = ", ".join(found) or "none"
        hint = f"; did you mean `{near}`?" if near else ""
        raise UserError(f"these results have no score `{name}`; allowed: {allowed}{hint}", where="score")
    return found[name]
