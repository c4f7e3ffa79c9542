"""Tables of the leaderboard: ranks, costs and convergence on the standard splits, and the best within a time limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import takewhile

from ep_bench.report import summary
from ep_bench.report.scores import MAIN
from ep_bench.report.sections.leaderboard import LeaderboardRow
from ep_bench.report.sections.leaderboard import leaderboard as ranked_rows
from ep_bench.report.summary import ScoreTable

from .forms import NONE, table
from .stored import FIVE, LARGE, board

TOP = 10
LIMITS = (1, 10, 100, 1000)  # CPU seconds
SHOWN = 3  # entries of a limit
LINEAR = "Bayesian ridge"
# Data sets by their number of data points, without naval, whose target has few values.
SIZES = {"300 to 1,600": FIVE, "8,000 to 10,000": ("kin8nm", "power"), "46,000": ("protein",)}


@cache
def _score_table(score: str) -> ScoreTable:
    found = summary.score_table(board(), next(one for one in MAIN if one.name == score))
    if found is None:
        raise ValueError(f"no row has {score}")
    return found


@cache
def ranked(score: str, datasets: Sequence[str] = (), methods: Sequence[str] = ()) -> dict[str, LeaderboardRow]:
    """Return the complete entries by average rank, of all methods and over all data sets by default."""
    rows = ranked_rows(board(), _score_table(score), methods, datasets).ranked
    return {row.method: row for row in sorted(rows, key=lambda row: row.rank)}


def top() -> list[str]:
    """Return the first entries by log-likelihood over all data sets, with the intervals of their ranks."""
    rows = list(ranked("ll").values())
    body = [
        [_position(row, rows), row.method, f"{row.rank:.1f}", f"{row.low:.1f} to {row.high:.1f}", f"{row.seconds:.2g}",
         _converged(row)]
        for row in rows[:TOP]
    ]  # fmt: skip
    return table(["#", "Entry", "Rank", "Interval", "CPU s", "Converged"], body)


def _position(row: LeaderboardRow, rows: Sequence[LeaderboardRow]) -> str:
    """Return the place of a row; rows of equal ranks have the same place, with an equals sign."""
    tied = sum(math.isclose(other.rank, row.rank) for other in rows) > 1
    return "=" * tied + str(1 + sum(other.rank < row.rank - 1e-9 for other in rows))


def _converged(row: LeaderboardRow) -> str:
    """Return the fraction of converged splits, or the number of unconverged ones where only these are stated."""
    counts = row.converged
    if counts.unconverged == counts.judged < row.finished:
        return f"{counts.unconverged}/{row.finished} not" if counts.judged else NONE
    return f"{counts.converged / counts.judged:.0%}"


def leaderboard() -> list[str]:
    """Return all entries by average rank, those without all data sets by their rank on the small ones."""
    lists = [ranked("ll"), ranked("ll", FIVE), ranked("ll", LARGE), ranked("rmse"), ranked("crps")]
    known = {row.method: row for found in (*lists[1:3], lists[0]) for row in found.values()}
    body = []
    for name in {**lists[0], **lists[1]}:
        ranks = [f"{found[name].rank:.1f}" if name in found else NONE for found in lists]
        row = lists[0].get(name)
        costs = [f"{row.loss:.2f}", f"{row.seconds:.2g}"] if row else [NONE, NONE]
        body.append([name, *ranks, *costs, _converged(known[name])])
    head = ["Entry", "Rank", "Small", "Large", "RMSE", "CRPS", "Loss", "CPU s", "Converged"]
    if origins := board().submissions:
        return table([*head, "Origin"], [[*line, origins.get(line[0], "committed")] for line in body])
    return table(head, body)


def within_limits() -> list[str]:
    """Return the best entries by number of data points and median CPU seconds of a fit, with the loss of the first."""
    body = []
    for size, datasets in SIZES.items():
        everything = {score: ranked(score, datasets) for score in ("ll", "rmse")}
        shown: list[list[str]] = []
        for limit in LIMITS:
            names = tuple(name for name, row in everything["ll"].items() if row.seconds <= limit)
            best = [_better_than_linear(ranked(score, datasets, names))[:SHOWN] for score in everything]
            if best != shown:  # a longer limit that changes nothing has no row
                shown = best
                losses = (everything["ll"][best[0][0]].loss, everything["rmse"][best[1][0]].loss)
                texts = (f"{losses[0]:.2f} nats", f"{100.0 * losses[1]:.0f} %")
                cells = [text for found, loss in zip(best, texts, strict=True) for text in ("; ".join(found), loss)]
                body.append([size, f"{limit:,} s", *cells])
    return table(["Data points", "CPU limit", "Best by log-likelihood", "Loss", "Best by RMSE", "Loss"], body)


def _better_than_linear(names: Iterable[str]) -> list[str]:
    return list(takewhile(lambda name: name != LINEAR, names))


TABLES: dict[str, Callable[[], list[str]]] = {
    "leaderboard-top": top,
    "leaderboard": leaderboard,
    "within-limits": within_limits,
}
