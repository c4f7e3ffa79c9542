"""Figures of results folders as matplotlib figures, for notebooks and papers.

Each function merges the folders as ``ep-bench report`` does, with the same colours. ``score`` is the
name of a main score: ``ll``, ``rmse``, ``crps``, ``error_rate`` or ``brier``; ``ll-classes`` is the log-likelihood of
classes if the folders have regression too. ``select`` keeps the matching cells, as ``--select`` does: texts such as
``dataset=boston`` or ``method=PBP*``. All functions raise UserError for a folder without results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ep_bench.errors import UserError, nearest
from ep_bench.report import inline_charts, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.summary import RankedScore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ep_bench.plotting.method_style import MethodStyle
    from ep_bench.plotting.page import Picture
    from ep_bench.report.sections.leaderboard import Leaderboard


SIZE, TALL, LINE = 5.2, 3.6, 9.0  # inches of the width and height of a figure; points between two names


def score_panels(*folders: str | Path, score: str = "ll", select: Sequence[str] = ()) -> Figure:
    """Return one panel per data set with each method's mean over splits, its standard error and published numbers.

    Scores are in the original units of the target, ``ll`` in nats. Raises UserError for an unknown score.
    """
    from ep_bench.report.sections.score_tables import panels

    report = _report(folders, select)
    return panels(report, _ranked(report, score).table).figure


def critical_difference(*folders: str | Path, score: str = "ll", select: Sequence[str] = ()) -> Figure:
    """Return the critical-difference diagrams of Nemenyi's and of Wilcoxon's tests (Demsar 2006).

    Of more than 15 methods, these are the average ranks with their intervals.

    Raises UserError with the reason if the tests are withheld, and for an unknown score.
    """
    from ep_bench.report.sections import ranks

    report = _report(folders, select)
    one = _ranked(report, score)
    if not ranks.possible(one.rankings):
        reasons = " ".join(ranks.withheld_lines(one.rankings)) or "no two methods are complete on a data set"
        raise UserError(reasons, where="critical_difference")
    return ranks.figure(one, report).figure


def calibration(*folders: str | Path, select: Sequence[str] = ()) -> Figure:
    """Return the coverage of central intervals minus 50, 90 and 95 %, and the calibration error of the PIT, by method.

    Raises UserError without a regression data set.
    """
    from ep_bench.report.sections.calibration_and_time import CALIBRATION, calibration_figure

    report = _report(folders, select)
    if not report.further_scores.keys() & set(CALIBRATION):
        raise UserError("no cell has a coverage or a calibration error", where="calibration")
    return calibration_figure(report).figure


def score_against_time(*folders: str | Path, score: str = "ll", select: Sequence[str] = ()) -> Figure:
    """Return the loss of each ranked method against its median CPU time, with the Pareto front.

    The loss is that of the leaderboard: the mean over data sets of the difference from the best, in nats for a
    log-likelihood and relative for other scores. Raises UserError if no methods are ranked.
    """
    from ep_bench.report.sections.leaderboard import leaderboard

    report = _report(folders, select)
    board = leaderboard(report.merged, _ranked(report, score).table)
    if not has_losses_and_times(board):
        problem = "no two methods have a loss and a CPU time on a common data set on which they are complete"
        raise UserError(problem, where="score_against_time")
    return loss_and_time(board, report.styles).figure


def has_losses_and_times(board: Leaderboard) -> bool:
    """Return whether a ranked method has a loss and a CPU time."""
    return bool(inline_charts.points(board))


def loss_and_time(board: Leaderboard, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return the loss of each ranked method against its median CPU time, with the Pareto front and its methods."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.figure import Figure

    from ep_bench.plotting.axes import family_legend, log_axis
    from ep_bench.plotting.numbers import plain_ticks
    from ep_bench.plotting.style import STYLE, finish

    points, limit = inline_charts.points(board), inline_charts.largest_shown(inline_charts.points(board))
    best = inline_charts.front(points)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(SIZE, TALL))
        room = family_legend(figure, [styles[one.method] for one in points]) / TALL
        ax = figure.add_axes((0.11, 0.13, 0.86, 0.84 - room))
        for one in points:
            style = styles[one.method]
            face = "white" if one.hollow else style.colour
            marker, loss = ("v", limit) if one.loss > limit else (style.marker, one.loss)
            ax.plot(one.seconds, loss, marker, color=style.colour, markersize=5, markerfacecolor=face)
        shown = [min(one.loss, limit) for one in best]
        ax.plot([one.seconds for one in best], shown, "--", color="0.4", linewidth=0.8, zorder=0)
        ax.margins(x=0.2)
        ax.set_ylim(1.06 * limit, -0.16 * limit)
        above, height = np.inf, (0.84 - room) * TALL * 72.0 / 1.22  # points: of the last name, and of the limit
        for one, loss in zip(best, shown, strict=True):  # names are above one another, to the upper left of the front
            own = -loss / limit * height
            above = own + 4.0 if np.isinf(above) else max(own + 4.0, above + LINE)
            place = (-5.0, above - own)
            ax.annotate(one.method, (one.seconds, loss), place, textcoords="offset points", fontsize=7.5, ha="right")
        log_axis(ax)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0.0 <= tick <= limit])
        plain_ticks(ax.yaxis)
        ax.set_xlabel("median CPU seconds per split, tuning included")
        ax.set_ylabel(f"mean loss ({'nats' if board.score.better == 'higher' else 'relative'}), better is up")
    caption = (
        f"{board.score.title}: mean loss from the best ranked mean of each data set against the median CPU time of a "
        f"split, on {', '.join(board.datasets)}. Dashed: Pareto front, the methods that no other one beats in both. "
        "Hollow: some splits have not converged; triangles at the lower edge: larger losses."
    )
    return finish(figure, "score-against-time", caption)


def experiment(folder: str | Path) -> dict[str, Figure]:
    """Return the figures of an experiment by name. Raises UserError if the folder is not that of an experiment."""
    from ep_bench.experiments.figures import section
    from ep_bench.results.store import read_study

    study = read_study(Path(folder))
    if not study.lock.get("experiment"):
        raise UserError("is not the folder of an experiment", where="experiment", found=str(folder))
    return {picture.name: picture.figure for picture in section(study).pictures}


def _report(folders: Sequence[str | Path], select: Sequence[str]) -> ReportContext:
    if not folders:
        raise UserError("name at least one results folder", where="figures")
    paths = [Path(folder) for folder in folders]
    return ReportContext(merge.merge(paths, select))


def _ranked(report: ReportContext, name: str) -> RankedScore:
    found = {one.score.name: one for one in report.scores}
    if name not in found:
        near = nearest(name, list(found))
        allowed = ", ".join(found) or "none"
        hint = f"; did you mean `{near}`?" if near else ""
        if any(study.lock.get("experiment") for study in report.merged.studies):
            hint = "; figures of an experiment: `experiment`"
        raise UserError(f"these results have no score `{name}`; allowed: {allowed}{hint}", where="score")
    return found[name]
