"""The leaderboard: one table by the first score, and folded ones by the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ep_bench.convergence import DAGGER, NEARLY, R_HAT, RING
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.dataset_facts import independent_draws
from ep_bench.report.leaderboard import CENTRAL, RESAMPLES, Leaderboard, LeaderboardRow

NOT_RANKED = "–"


def sections(report: ReportContext) -> list[Section]:
    """Return the leaderboards of all main scores, the log-likelihood first. A single method has none."""
    boards = report.leaderboards
    if not boards or len(report.merged.methods) < 2:
        return []
    shown = [_table(board, report, folded=place > 0) for place, board in enumerate(boards)]
    return [
        Section("leaderboard", "Leaderboard", list(_lines(boards[0], report)), tables=shown, notes=report.time_notes)
    ]


def _lines(board: Leaderboard, report: ReportContext) -> Iterator[str]:
    """Yield what is ranked, and what the columns mean."""
    if not board.ranked:
        yield f"No ranks by {board.score.inline}: no two methods are complete on a common data set."
        return
    yield f"Bold: the lowest average rank of the methods without {DAGGER}. {_lowest(board, report)}"
    draws = set(board.datasets) <= independent_draws(report.merged)
    drawn = "data sets, and splits of each," if board.resamples_datasets else "splits of each data set"
    interval = (
        f"The interval of a rank has {100.0 * CENTRAL:g} % of {RESAMPLES:,} resamples of {drawn} with replacement"
        + (". " if board.resamples_datasets else "; it is one for these data sets only. ")
        + ("" if draws else "Splits overlap, so that it tends to be too narrow.")
    )
    loss = (
        "Loss is the mean difference in nats from the best ranked method of each data set."
        if board.score.better == "higher"
        else "Loss is the mean relative difference from the best ranked method of each data set."
    )
    yield f"{interval.strip()} {loss}"
    marks = set(report.marks.values())
    if DAGGER in marks:
        yield f"{DAGGER}: some splits have not converged (a sampler: R-hat above {NEARLY:g})."
    if RING in marks:
        yield f"{RING}: R-hat of some splits is above {R_HAT:g} and at most {NEARLY:g}."
    if unbounded := report.table_of(board.score).unbounded:
        yield f"The log-likelihood has no upper bound on {', '.join(unbounded)}: compare by CRPS there."


def _lowest(board: Leaderboard, report: ReportContext) -> str:
    """Return the method with the lowest average rank in one sentence."""
    row = board.ranked[0]
    rank = f"{row.rank:.2f}, interval {row.low:.1f} to {row.high:.1f}"
    return f"Lowest average rank by {board.score.inline}: {report.label(row.method)} ({rank})."


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
    head = ["method", "average rank", "interval", loss, *(["calibration error"] * calibrated), "median CPU time"]
    head += ["finished", "converged", "published numbers", "tuning"]
    rows = [list(_entries(row, board, report, calibrated=calibrated)) for row in board.rows]
    ranked = f"Ranked: the largest complete subset, {subset_text(board)}" if board.ranked else "Nothing is ranked"
    caption = f"{board.score.title}, {board.score.direction}. {ranked}"
    return Table(head, rows, caption, f"By {board.score.inline}" if folded else "")


def _entries(row: LeaderboardRow, board: Leaderboard, report: ReportContext, *, calibrated: bool) -> Iterator[Any]:
    best = next((one for one in board.ranked if report.marks.get(one.method) != DAGGER), None)
    settled = best is not None and row.rank <= best.rank and report.marks.get(row.method) != DAGGER
    yield item(report.label(row.method), row.method, strong=settled, kind="")
    yield _number(row.rank, f"{row.rank:.2f}")
    yield _number(row.low, f"{row.low:.1f} to {row.high:.1f}")
    yield _number(row.loss, f"{row.loss:.3f}" if board.score.better == "higher" else percent(row.loss))
    if calibrated:
        yield _number(row.calibration, f"{row.calibration:.3f}")
    yield _number(row.seconds, duration(row.seconds))
    yield item(f"{row.finished}/{row.planned}", row.finished / max(row.planned, 1))
    splits = row.converged
    yield (
        item(splits.counts.replace(" converged", ""), splits.converged / (splits.judged + splits.unstated))
        if splits.judged
        else item("not stated", "")
    )
    yield item(", ".join(f"{count} {verdict}" for verdict, count in row.verdicts.items()) or NOT_RANKED, kind="")
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
