"""The leaderboard: methods by average rank over the largest complete subset of the data sets.

Ranks are those of the mean scores over the splits of each data set (Demsar 2006). Their intervals are bootstrap
percentiles: the splits of each data set are drawn with replacement, the same ones for all methods. Means of J splits
then have the variance s^2 / J about, which is too little for splits that overlap. Their distances from the mean are
multiplied, so that it is (1 / J + r) s^2 as in ``significance``.

From ``FEWEST_BLOCKS`` data sets, these are drawn with replacement too. Percentiles of few draws are too narrow; those
of D data sets are expanded as by Hesterberg (2015), What teachers should know about the bootstrap, The American
Statistician 69.

The intervals are spreads of ranks, not confidence intervals of the ranks of the expected scores. If these are close,
resampled ranks tend to the middle, and the intervals often miss them (tests/report/test_leaderboard.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from ep_bench.convergence import DAGGER, ConvergedSplits
from ep_bench.plotting.axes import family_legend, log_axis
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.numbers import plain_ticks, with_minus
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report import inline_charts, significance, summary
from ep_bench.report import score_table_formats as formats
from ep_bench.report.merge import MergedStudies, cpu_seconds
from ep_bench.report.scores import Score
from ep_bench.report.significance import FEWEST_BLOCKS, PairedTest, block_ranks
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

if TYPE_CHECKING:
    from ep_bench.report.context import ReportContext

ORDER = 10
RESAMPLES = 10_000
CENTRAL = 0.95  # fraction inside the interval of a rank
WIDTH, TALL, LINE = 5.2, 3.6, 9.0  # inches of the width and height of a figure; points between two names


@dataclass(frozen=True)
class LeaderboardRow:
    """One method. Rank, interval, loss and time are NaN for a method that is not ranked.

    The interval is NaN too for few data sets of which one has a single split.

    Attributes
    ----------
    loss : mean over data sets of the loss against the best ranked mean: a relative difference for scores of which lower
        is better (geometric mean of the ratios), without data sets on which a score is 0; a difference in nats for
        log-likelihoods, without data sets on which they have no upper bound
    seconds : median CPU seconds of tuning, fit and prediction over the splits of the ranked data sets
    finished, planned : splits with this score, and planned splits, over the chosen data sets
    converged : counts of splits over the chosen data sets
    mark : mark of convergence over the ranked data sets; over the chosen ones for a method that is not ranked
    """

    method: str
    rank: float
    low: float
    high: float
    loss: float
    seconds: float
    finished: int
    planned: int
    converged: ConvergedSplits

    @property
    def mark(self) -> str:
        """Return the mark of convergence."""
        return self.converged.mark

    @property
    def is_ranked(self) -> bool:
        """Return whether the method has a rank."""
        return not math.isnan(self.rank)


@dataclass(frozen=True)
class Leaderboard:
    """Methods by average rank, then those that are not complete on the data sets of the subset."""

    score: Score
    datasets: tuple[str, ...]  # the ranked ones
    splits: tuple[int, ...]  # of each of the ranked data sets
    rows: tuple[LeaderboardRow, ...]
    means: Array  # (D, M), of the ranked methods in the order of their rows
    chosen: tuple[str, ...]  # data sets, ranked or not

    @property
    def ranked(self) -> list[LeaderboardRow]:
        """Return the ranked methods."""
        return [row for row in self.rows if row.is_ranked]

    @property
    def is_single(self) -> bool:
        """Return whether there is one data set only, so that ranks are no averages."""
        return len(self.datasets) == 1

    def best_within(self, seconds: float) -> list[str]:
        """Return the best methods whose median CPU time is below a limit, by ranks among these; several if they tie."""
        rows = [place for place, row in enumerate(self.ranked) if row.seconds < seconds]
        if not rows:
            return []
        ranks = average_ranks(self.means[:, rows], self.score)
        return [self.ranked[rows[j]].method for j in np.flatnonzero(ranks == ranks.min())]


def average_ranks(means: Array, score: Score) -> Array:
    """Return the average ranks (M,) of means (D, M)."""
    return np.asarray(block_ranks(means, higher_is_better=score.better == "higher").mean(axis=0))


def leaderboard(
    merged: MergedStudies, table: ScoreTable, methods: Sequence[str] = (), sets: Sequence[str] = ()
) -> Leaderboard:
    """Return the leaderboard of one score; ``methods`` and ``sets`` restrict it to some methods and data sets."""
    rows = [i for i, name in enumerate(table.datasets) if not sets or name in sets]
    columns = [j for j, name in enumerate(table.methods) if not methods or name in methods]
    candidates = table.ranked_rows(rows)
    subset = significance.largest_complete_subset(table.complete[np.ix_(candidates, columns)])
    places = [candidates[i] for i in subset.datasets]  # of the ranked data sets in the table
    datasets = tuple(table.datasets[i] for i in places)
    ranked = [table.methods[columns[j]] for j in subset.methods]
    cells = summary.pivot(merged, table.score)
    scores = [cells.loc[name, ranked].to_numpy(dtype=float) for name in datasets]
    means = np.array([block.mean(axis=0) for block in scores]).reshape(len(datasets), len(ranked))
    numbers = _ranks(scores, means, table.score, [table.tests[i] for i in places])
    bounded = [name not in table.unbounded for name in datasets]
    numbers |= {"loss": _losses(means[bounded], table.score), "seconds": _seconds(merged, datasets, ranked)}
    found = [_row(table, j, (ranked, numbers), rows) for j in columns]
    found.sort(key=_place)
    order = [ranked.index(row.method) for row in found if row.is_ranked]
    splits, chosen = tuple(len(block) for block in scores), tuple(table.datasets[i] for i in rows)
    return Leaderboard(table.score, datasets, splits, tuple(found), means[:, order], chosen)


def _place(row: LeaderboardRow) -> tuple[float, float]:
    """Return a key: by rank, then what is not ranked by its finished splits."""
    return (0.0, row.rank) if row.is_ranked else (1.0, -row.finished / max(row.planned, 1))


def _row(
    table: ScoreTable, j: int, ranked: tuple[Sequence[str], dict[str, Array]], rows: Sequence[int]
) -> LeaderboardRow:
    """Return the row of a method (column j of the table) from the ranked methods and their numbers."""
    names, numbers = ranked
    method = table.methods[j]
    own: dict[str, Any] = {
        name: float(values[names.index(method)]) if method in names else math.nan for name, values in numbers.items()
    }
    return LeaderboardRow(
        method,
        **own,
        finished=int(table.n[rows, j].sum()),
        planned=int(table.planned[rows, j].sum()),
        converged=sum((table.converged[i][j] for i in rows), ConvergedSplits()),
    )


def _ranks(scores: Sequence[Array], means: Array, score: Score, tests: Sequence[PairedTest]) -> dict[str, Array]:
    """Return average ranks (M,) of means (D, M) and their intervals by bootstrap of the scores, D arrays (J, M).

    A single split has no spread: without a resampling of data sets, the intervals are NaN then.
    """
    if not scores:
        return dict.fromkeys(("rank", "low", "high"), np.array([]))
    higher = score.better == "higher"
    rank = average_ranks(means, score)
    if min(len(block) for block in scores) < 2 and len(scores) < FEWEST_BLOCKS:
        return {"rank": rank} | dict.fromkeys(("low", "high"), np.full(len(rank), math.nan))
    rng = np.random.default_rng(0)
    drawn = np.empty((RESAMPLES, *means.shape), dtype=np.float32)
    for i, (block, test) in enumerate(zip(scores, tests, strict=True)):
        weights = rng.multinomial(len(block), np.full(len(block), 1.0 / len(block)), RESAMPLES) / len(block)
        resampled = means[i] + _widening(len(block), test) * (weights @ block - means[i])
        drawn[:, i] = block_ranks(resampled, higher_is_better=higher)
    tail = 0.5 - CENTRAL / 2.0
    if (D := len(scores)) >= FEWEST_BLOCKS:
        chosen = rng.integers(D, size=(RESAMPLES, D))
        drawn = np.take_along_axis(drawn, chosen[:, :, None], axis=1)
        tail = float(stats.norm.cdf(math.sqrt(D / (D - 1)) * stats.t.ppf(tail, D - 1)))
    low, high = np.quantile(drawn.mean(axis=1, dtype=np.float64), [tail, 1.0 - tail], axis=0)
    return {"rank": rank, "low": np.minimum(low, rank), "high": np.maximum(high, rank)}


def _widening(J: int, test: PairedTest) -> float:
    """Return the ratio of the standard deviation of the mean of J splits to that of the bootstrap's means."""
    ratio = 0.0 if test.independent else test.ratio
    return math.sqrt((1.0 + ratio * J) * J / (J - 1)) if J > 1 else 0.0


def _losses(means: Array, score: Score) -> Array:
    """Return the mean loss (M,) against the best mean of each data set (D, M), NaN without data sets.

    Ratios to a best error of 0 do not exist: such data sets are omitted.
    """
    if score.better == "higher" and means.size:
        return np.asarray((means.max(axis=1, keepdims=True) - means).mean(axis=0))
    used = means[(means > 0.0).all(axis=1)]
    if not used.size:
        return np.full(means.shape[1], math.nan)
    return np.asarray(np.exp(np.log(used / used.min(axis=1, keepdims=True)).mean(axis=0)) - 1.0)


def _seconds(merged: MergedStudies, datasets: Sequence[str], methods: Sequence[str]) -> Array:
    """Return the median CPU seconds (M,) of a split of each method on data sets."""
    rows = merged.ok()
    rows = rows[rows["dataset"].isin(list(datasets))]
    found = rows.assign(seconds=cpu_seconds(rows)).groupby("method")["seconds"].median()
    return np.array([float(found.get(method, math.nan)) for method in methods])


# The section


def sections(report: ReportContext) -> list[Section]:
    """Return the leaderboard of the first score; the page shows those of other scores and groups of data sets too."""
    boards = report.leaderboards
    if not boards or len(report.merged.methods) < 2:
        return []
    from ep_bench.report.first_screen import headlines

    board = boards[0]
    pictures = [loss_and_time(board, report.styles)] if inline_charts.points(board) else []
    shown = board_table(board, report.table_of(board.score))
    return [Section("leaderboard", "Leaderboard", headlines(report, board), pictures, [shown], tables_first=True)]


def loss_and_time(board: Leaderboard, styles: Mapping[str, MethodStyle]) -> Picture:
    """Return the loss of each ranked method against its median CPU time, with the Pareto front and its methods."""
    points = inline_charts.points(board)
    limit = inline_charts.largest_shown(points)
    best = inline_charts.front(points)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, TALL))
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


def board_table(board: Leaderboard, table: ScoreTable) -> Table:
    """Return the table of the first screen: rank with its interval, loss, CPU time and convergence."""
    k = len(board.ranked)
    ranks = [f"{board.score.inline} on {board.datasets[0]}"] if board.is_single else ["rank", f"interval, 1 to {k}"]
    loss = "loss (nats)" if board.score.better == "higher" else "loss"
    rows = [list(_entries(row, board, table)) for row in board.rows]
    return Table(["method", *ranks, loss, "CPU time", "converged"], rows)


def _entries(row: LeaderboardRow, board: Leaderboard, table: ScoreTable) -> Iterator[Item]:
    best = row.is_ranked and row.rank <= board.rows[0].rank
    yield item(row.method, row.method, strong=best, kind="") | {"method": row.method}
    if board.is_single:
        yield _mean(row, board, table)
    elif row.is_ranked:
        yield item(f"{row.rank:.1f}", row.rank)
        interval = inline_charts.interval(row.rank, row.low, row.high, len(board.ranked), hollow=row.mark == DAGGER)
        text = f"{row.low:.1f} to {row.high:.1f}"
        yield item(text, text, kind="rank") | {"html": interval}
    else:
        yield item("–", "")
        yield item("not ranked", "", kind="small")
    yield _number(row.loss, loss_text(row.loss, board.score))
    yield _number(row.seconds, duration(row.seconds))
    yield _convergence(row.converged, row.finished)


def _convergence(splits: ConvergedSplits, finished: int) -> Item:
    """Return a bar with the fraction of converged splits, and a lighter part for those that nearly converged."""
    if not splits.judged:
        return item("no criterion", "", kind="small")
    share = splits.converged / splits.judged
    text = f"{100.0 * share:.0f} %" if splits.judged == finished else f"{splits.converged} of {splits.judged}"
    if splits.unconverged == splits.judged < finished:  # a criterion that only states failure
        text = f"{splits.unconverged} of {finished} not"
    bar = inline_charts.bar(share, splits.nearly / splits.judged, text, splits.counts)
    return item(text, share, kind="bars") | {"html": bar}


def _mean(row: LeaderboardRow, board: Leaderboard, table: ScoreTable) -> Item:
    """Return mean and standard error on the only data set."""
    if not row.is_ranked:
        return item("not ranked", "", kind="small")
    i, j = table.datasets.index(board.datasets[0]), table.methods.index(row.method)
    return item(mean_text(table, i, j), float(table.mean[i, j]))


def mean_text(table: ScoreTable, i: int, j: int) -> str:
    """Return mean and standard error of data set i and method j."""
    places = formats.decimals(table.stderr[i].tolist(), table.mean[i].tolist())
    error = f" ± {formats.number(table.stderr[i, j], places)}" if table.n[i, j] > 1 else ""
    return with_minus(formats.number(table.mean[i, j], places)) + error


def _number(value: float, text: str) -> Item:
    return item("–", "") if math.isnan(value) else item(text, value)


def loss_text(loss: float, score: Score) -> str:
    """Return a loss as text: nats, or a relative difference in percent."""
    return f"{loss:.3f}" if score.better == "higher" else f"{100.0 * loss:.1f} %"


def duration(seconds: float) -> str:
    """Return a time as text with its unit."""
    for limit, unit, size in ((1.0, "ms", 1e-3), (120.0, "s", 1.0), (7200.0, "min", 60.0)):
        if seconds < limit:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 3600.0)} h"


def _three_digits(value: float) -> str:
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0.0 else "0"
