"""The leaderboard: one table by the first score, and folded ones by the others.

Ranks over a single data set are no averages, so that it then has the means instead of ranks and intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.convergence import DAGGER, NEARLY, R_HAT, RING
from ep_bench.plotting.axes import log_axis
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.numbers import plain_ticks, with_minus
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report import score_table_formats as formats
from ep_bench.report.context import ReportContext
from ep_bench.report.leaderboard import CENTRAL, Leaderboard, LeaderboardRow
from ep_bench.report.summary import ScoreTable

ORDER = 10
NOT_RANKED = "–"
EXPLAINED = (
    f"The interval of a rank contains the central {CENTRAL:.0%} of bootstrap resamples; it is no confidence interval. "
    f"Loss is the mean difference (nats) or relative difference from the best ranked mean of each data set, of those "
    f"without {DAGGER} if there are any."
)
COUNTS = "number counts"  # classes of the style sheet: numbers in words, which may wrap


def sections(report: ReportContext) -> list[Section]:
    """Return the leaderboards of all main scores, the log-likelihood first. A single method has none."""
    boards = report.leaderboards
    if not boards or len(report.merged.methods) < 2:
        return []
    shown = [_table(board, report, folded=place > 0) for place, board in enumerate(boards)]
    lines = list(_lines(boards[0], report))
    pictures = [chart(boards[0], report.styles)] if has_losses_and_times(boards[0]) else []
    notes = report.time_notes
    return [Section("leaderboard", "Leaderboard", lines, pictures, shown, notes, tables_first=True)]


def has_losses_and_times(board: Leaderboard) -> bool:
    """Return whether a ranked method has a loss and a CPU time."""
    return any(row.seconds > 0.0 and math.isfinite(row.loss) for row in board.ranked)


def chart(board: Leaderboard, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return the loss of each ranked method against its median CPU time, with the Pareto front."""
    rows = [row for row in board.ranked if row.seconds > 0.0 and math.isfinite(row.loss)]
    front = list(_front(sorted((row.seconds, row.loss) for row in rows)))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, max(3.2, 0.25 * len(rows))))
        ax: Axes = figure.add_axes((0.1, 0.13, 0.62, 0.84))
        for row in rows:
            style = styles[row.method]
            ax.plot(row.seconds, row.loss, style.marker, color=style.colour, markersize=5)
        ax.plot(*zip(*front, strict=True), linestyle="--", color="0.4", linewidth=0.8, zorder=0)
        ax.margins(x=0.05, y=0.05)
        log_axis(ax)
        ax.invert_yaxis()
        plain_ticks(ax.yaxis)
        ax.set_xlabel("median CPU seconds per split, tuning included")
        unit = "nats" if board.score.better == "higher" else "relative"
        ax.set_ylabel(f"mean loss ({unit})")
        _direct_labels(ax, [(row.seconds, row.loss, row.label, styles[row.method]) for row in rows])
    caption = (
        f"{board.score.title}: mean loss from the best ranked mean of each data set, of those without {DAGGER} if "
        f"there are any, against the median CPU time of a split, on {', '.join(board.datasets)}. Better is "
        "higher up, cheaper is further left. Dashed: "
        "Pareto front, the methods that no other one beats in both."
    )
    return finish(figure, "score-against-time", caption)


def _direct_labels(ax: Axes, places: Sequence[tuple[float, float, str, MethodStyle]]) -> None:
    """Write the names of points in a column on the right, in the order of their heights, with marker and thin line."""
    ordered = sorted(places, key=lambda place: place[1])
    for line, (x, y, name, style) in enumerate(ordered):
        height = 1.0 - (line + 0.5) / len(ordered)
        ax.annotate(
            "", (x, y), xytext=(1.06, height), textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": "0.8", "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 3.0},
        )  # fmt: skip
        ax.plot(1.075, height, style.marker, color=style.colour, markersize=4, transform=ax.transAxes, clip_on=False)
        ax.text(1.1, height, name, transform=ax.transAxes, va="center", fontsize=7.5)


def _front(points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the points (time, loss), sorted by time, that no other point beats in both."""
    lowest = math.inf
    for seconds, loss in points:
        if loss < lowest:
            lowest = loss
            yield seconds, loss


def _lines(board: Leaderboard, report: ReportContext) -> Iterator[str]:
    """Yield what is ranked, and what the columns mean."""
    if not board.ranked:
        yield f"No ranks by {board.score.inline}: no two methods are complete on a common data set."
        return
    yield EXPLAINED
    marks = {row.mark for row in board.rows}
    where = "" if board.is_single else " of the ranked data sets (of all, without a rank)"
    if DAGGER in marks:
        yield f"{DAGGER}: some splits{where} have not converged (a sampler: R-hat above {NEARLY:g})."
    if RING in marks:
        yield f"{RING}: R-hat of some splits{where} is above {R_HAT:g} and at most {NEARLY:g}."
    if unbounded := report.table_of(board.score).unbounded:
        ranked = "" if set(board.datasets) <= unbounded.keys() else "not part of these ranks; "
        names = ", ".join(unbounded.values())
        yield f"The log-likelihood has no upper bound on {names}: {ranked}compare by CRPS there."


def _mean(method: str, board: Leaderboard, table: ScoreTable) -> Item:
    """Return mean and standard error of a ranked method on the only data set."""
    i, j = table.datasets.index(board.datasets[0]), table.methods.index(method)
    places = formats.places_by_dataset(table)[i]
    error = f" ± {formats.number(table.stderr[i, j], places)}" if table.n[i, j] > 1 else ""
    return item(with_minus(formats.number(table.mean[i, j], places)) + error, float(table.mean[i, j]))


def subset_text(board: Leaderboard) -> str:
    """Return the complete subset in words: methods, data sets and splits."""
    counts = sorted(set(board.splits))
    splits = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    several = len(board.datasets) != 1
    return (
        f"{len(board.ranked)} of {len(board.rows)} methods on {len(board.datasets)} data set{'s' * several} "
        f"({', '.join(board.datasets)}), {splits} split{'s' * (counts[-1] != 1)}{' each' * several}"
    )


def _table(board: Leaderboard, report: ReportContext, *, folded: bool) -> Table:
    calibrated = any(not math.isnan(row.calibration) for row in board.rows)
    loss = "loss (nats)" if board.score.better == "higher" else "loss"
    ranks = [f"{board.score.inline} on {board.datasets[0]}"] if board.is_single else ["average rank", "interval"]
    head = ["method", *ranks, loss, *(["calibration error"] * calibrated), "median CPU time"]
    head += ["finished", "converged", "published numbers", "tuning"]
    rows = [list(_entries(row, board, report, calibrated=calibrated)) for row in board.rows]
    ranked = f"Ranked: the largest complete subset, {subset_text(board)}" if board.ranked else "Nothing is ranked"
    caption = f"{board.score.title}, {board.score.direction}. {ranked}"
    return Table(head, rows, caption, f"By {board.score.inline}" if folded else "")


def _entries(row: LeaderboardRow, board: Leaderboard, report: ReportContext, *, calibrated: bool) -> Iterator[Any]:
    best = board.best is not None and row.rank <= board.best.rank and row.mark != DAGGER
    yield item(row.label, row.method, strong=best, kind="")
    if board.is_single:
        yield item(NOT_RANKED, "") if math.isnan(row.rank) else _mean(row.method, board, report.table_of(board.score))
    else:
        yield _number(row.rank, f"{row.rank:.2f}")
        yield _number(row.low, f"{row.low:.1f} to {row.high:.1f}")
    yield _number(row.loss, f"{row.loss:.3f}" if board.score.better == "higher" else percent(row.loss))
    if calibrated:
        yield _number(row.calibration, f"{row.calibration:.3f}")
    yield _number(row.seconds, duration(row.seconds))
    yield item(row.finished_text, row.finished / max(row.planned, 1))
    splits = row.converged
    share = splits.converged / splits.judged if splits.judged else ""
    yield item(splits.counts.replace(" converged", "") or NOT_RANKED, share, kind=COUNTS)
    yield item(row.verdict_text or NOT_RANKED, kind="")
    yield item(row.tuning, kind="")


def _number(value: float, text: str) -> Item:
    return item(NOT_RANKED, "") if math.isnan(value) else item(text, value)


def percent(fraction: float) -> str:
    """Return a relative difference as text."""
    return f"{100.0 * fraction:.1f} %"


def duration(seconds: float) -> str:
    """Return a time as text with its unit."""
    for limit, unit, size in ((1.0, "ms", 1e-3), (120.0, "s", 1.0), (7200.0, "min", 60.0)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 3600.0:.3g} h"
