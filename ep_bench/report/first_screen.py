"""The first section of the page: one view per score and group of data sets, with everything that the page shows of it.

The page's script sorts, filters and exchanges views; all numbers of a view are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from ep_bench.convergence import DAGGER, NEARLY, R_HAT
from ep_bench.plotting.page import Item, Table, item
from ep_bench.report import inline_charts, summary
from ep_bench.report import score_table_formats as formats
from ep_bench.report.merge import NAMED, listed
from ep_bench.report.sections.leaderboard import CENTRAL, Leaderboard, LeaderboardRow, board_table, mean_text
from ep_bench.report.sections.ranks import friedman_line
from ep_bench.report.significance import ALPHA, block_ranks
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.types import Array

if TYPE_CHECKING:
    from ep_bench.report.context import ReportContext

BUDGETS = (1.0, 5.0, 10.0)  # CPU seconds
CLOSE = 0.02  # methods lead together if their ranks differ by at most this fraction of the range of ranks
READING = f"""\
Rank: the mean score on a data set gives a rank, 1 is the best, and ranks are averaged over data sets. The line is the \
central {CENTRAL:.0%} of bootstrap resamples, which is no confidence interval.
Loss: the mean over data sets of the difference from the best mean, in nats for a log-likelihood, else in percent of \
the best.
CPU time: tuning, fit and prediction of one split, median over the splits of the ranked data sets with stored times.
Converged: splits that meet the method's own criterion, of those that have one. For a sampler, R-hat of the worst test \
prediction is at most {R_HAT:g}, or at most {NEARLY:g} for the lighter part of the bar. Methods are ranked by what \
they scored, converged or not. A hollow marker means that some splits have not converged.
Map: mean scores, coloured by the rank on each data set. Bold is the best mean, ≈ is not distinguished from it by the \
paired test, and grey entries lack splits. Data sets on which the score has no upper bound have no marks."""


class View(NamedTuple):
    """The leaderboard of a score on a group of data sets, ready to be shown."""

    group: str
    board: Leaderboard
    lines: list[str]  # headline
    table: Table
    chart: Markup  # empty without times
    heat: Table
    excluded: list[str]

    def data(self) -> dict[str, Any]:
        """Return the numbers that filters of the page need, by method."""
        ranked = self.board.ranked
        return {
            "score": self.board.score.name,
            "group": self.group,
            "methods": [row.method for row in ranked],
            "seconds": [_number(row.seconds) for row in ranked],
            "ranks": block_ranks(self.board.means, higher_is_better=self.board.score.better == "higher").T.tolist(),
        }


def views(report: ReportContext) -> list[View]:
    """Return all views, that of the first score on all data sets first; empty for fewer than two methods."""
    if len(report.merged.methods) < 2:
        return []
    return [_view(report, group, board) for (_, group), board in report.boards.items()]


def _view(report: ReportContext, group: str, board: Leaderboard) -> View:
    table = report.table_of(board.score)
    lines, shown = headlines(report, board), board_table(board, table)
    return View(group, board, lines, shown, _chart(report, board), _heat(table, board), _excluded(report, board))


def _chart(report: ReportContext, board: Leaderboard) -> Markup:
    points = inline_charts.points(board)
    if len(points) < 2:
        return Markup()
    axis, unit = ("mean loss (nats)", 1.0) if board.score.better == "higher" else ("mean loss (%)", 100.0)
    return inline_charts.LossAndTime(points, report.styles, axis, unit).svg()


def _heat(table: ScoreTable, board: Leaderboard) -> Table:
    """Return the mean scores of all methods on the data sets of a board, coloured by their ranks on each data set."""
    rows = [table.datasets.index(name) for name in board.chosen]
    columns = [table.methods.index(row.method) for row in board.rows]
    parts = _parts(table)
    places = formats.places_by_dataset(table)
    body: list[list[Item]] = []
    for row, j in zip(board.rows, columns, strict=True):
        cells = [_heat_entry(table, i, j, max(places[i] - 1, 0), parts[i, j]) for i in rows]
        body.append([item(row.method, row.method, kind="") | {"method": row.method}, *cells])
    return Table(["method", *board.chosen], body)


def _parts(table: ScoreTable) -> Array:
    """Return how good the complete entries (D, M) are: from 0 (worst of a data set) to 1 (best), NaN for others."""
    counts = table.complete.sum(axis=1, keepdims=True)
    return np.where(counts > 1, 1.0 - (table.ranks - 1.0) / np.maximum(counts - 1.0, 1.0), math.nan)


def _heat_entry(table: ScoreTable, i: int, j: int, places: int, part: float) -> Item:
    if not table.n[i, j]:
        return item("–", "", small=formats.absence(table, i, j)) | {"dataset": table.datasets[i]}
    mark = " ≈" if table.equal[i, j] else ""
    text, best = formats.number(table.mean[i, j], places) + mark, bool(table.is_best[i, j])
    if math.isnan(part):
        kind, style = ("heat n" if table.complete[i, j] else "heat n faint"), ""
    else:
        kind, style = "heat n", f"--part:{part:.2f}"
    value = float(table.mean[i, j]) if table.complete[i, j] else ""
    return item(text, value, strong=best, kind=kind) | {"style": style, "dataset": table.datasets[i]}


def _excluded(report: ReportContext, board: Leaderboard) -> list[str]:
    """Return what is ranked, and which data sets and methods are not, with the reasons."""
    if not board.ranked:
        return []
    lines = [f"Ranked is the largest complete subset: {subset_text(board)}."]
    table = report.table_of(board.score)
    lines += _sets_left_out(table, board)
    lines += [_why_not_ranked(table, board, row.method) for row in board.rows if not row.is_ranked]
    if not board.is_single:
        lines.append(f"Test of equal ranks: {friedman_line(ranking_of(report, board))}")
    return [*lines, *report.time_notes]


def _sets_left_out(table: ScoreTable, board: Leaderboard) -> Iterator[str]:
    for name in board.chosen:
        if name in table.unranked and name not in board.datasets:
            yield f"{name} does not count in these ranks: {table.unranked[name]}."
        elif name in table.unbounded and name not in board.datasets:
            reason = table.unbounded[name].removeprefix(name).strip(" ()")
            yield (
                f"{name} does not count in these ranks: with {reason}, the log-likelihood has no upper bound. "
                "Compare by CRPS there."
            )
        elif name in table.unbounded:
            yield f"The log-likelihood has no upper bound on {table.unbounded[name]}: compare by CRPS there."
    named = {*board.datasets, *table.unranked, *table.unbounded}
    if lacking := [name for name in board.chosen if name not in named]:
        yield f"Some ranked methods lack splits on data sets that do not count in these ranks: {', '.join(lacking)}."


def _why_not_ranked(table: ScoreTable, board: Leaderboard, method: str) -> str:
    """Return the ranked data sets on which a method lacks splits or the score, in one sentence."""
    j, lacking = table.methods.index(method), []
    rows = [table.datasets.index(name) for name in board.datasets]
    if reason := {formats.absence(table, i, j) for i in rows} - {""}:
        return f"{method} is not ranked: {reason.pop()}."
    for name in board.datasets:
        i = table.datasets.index(name)
        if not table.complete[i, j]:
            without = f", {table.without[i, j]} without this score" if table.without[i, j] else ""
            lacking.append(f"{name} ({table.n[i, j]} of {table.plan[i]} splits{without})")
    return f"{method} is not ranked: it lacks scores on {listed(lacking)}."


def subset_text(board: Leaderboard) -> str:
    """Return the complete subset in words: methods, data sets and splits."""
    counts = sorted(set(board.splits))
    splits = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    several = len(board.datasets) != 1
    return (
        f"{len(board.ranked)} of {len(board.rows)} methods on {len(board.datasets)} data set{'s' * several} "
        f"({', '.join(board.datasets)}), {splits} split{'s' * (counts[-1] != 1)}{' each' * several}"
    )


def _number(value: float) -> float | None:
    return float(f"{value:.8g}") if math.isfinite(value) else None


# The headline


def headlines(report: ReportContext, board: Leaderboard) -> list[str]:
    """Return the headline of a leaderboard, the best methods on groups of data sets and within budgets, and origins."""
    origins = (f"{method}: {origin}." for method, origin in report.merged.submissions.items())
    return [text for text in (verdict(report, board), further(report, board), *origins) if text]


def verdict(report: ReportContext, board: Leaderboard) -> str:
    """Return at most three sentences on the best methods and on what the tests distinguish."""
    score = board.score.inline
    if not board.ranked:
        return f"No ranks by {score}: no two methods are complete on a common data set."
    if board.is_single:
        return f"{_single(report, board)}{_unconverged(_tied(board))}"
    leaders, (first, *others) = leading(board), board.ranked
    names = _ranks(leaders)
    if len(leaders) == 1:
        leads = f"{names} has the lowest rank by {score}, followed by {_ranks(_down_to(others, 1))}"
    elif len(leaders) > NAMED or leaders[-1].rank == first.rank:
        leads = f"{listed([row.method for row in leaders])} tie by {score} (rank {first.rank:.1f})"
    else:
        leads = f"By {score}, {names} lead"
    separated, reason = separated_from_best(report, board)
    if len(separated) == len(others):
        tests = f"tests separate {first.method} from {_all(others)}"
        return f"{leads}; {tests}.{_unconverged(leaders)}"
    if reason:
        tests = f"no test separates them: {reason}"
    else:
        rest = f": {listed(separated)}" if separated else ""
        tests = f"tests separate {first.method} from {len(separated)} of {len(others)} methods{rest}"
    return f"No single winner. {leads}; {tests}.{_unconverged(leaders)}"


def further(report: ReportContext, board: Leaderboard) -> str:
    """Return the leaders on the groups of data sets, and the best methods within budgets of CPU time."""
    parts = []
    if not board.is_single and set(board.chosen) == set(report.table_of(board.score).datasets):
        for name in list(report.set_groups)[1:]:
            other = report.boards.get((board.score.name, name))
            if other and other.ranked and not other.is_single:
                parts.append(f"{name.capitalize()} sets: {_ranks(_down_to(other.ranked, 2))}")
    parts += _budgets(board)
    return ". ".join(parts) + "." * bool(parts)


def _budgets(board: Leaderboard) -> Iterator[str]:
    found = {seconds: board.best_within(seconds) for seconds in BUDGETS}
    unconverged = {row.method for row in board.ranked if 2 * row.converged.unconverged > row.finished}
    words = [
        f"{seconds:g} s: "
        + listed([name + " (not converged on most splits)" * (name in unconverged) for name in names])
        for seconds, names in found.items()
        if names
    ]
    if words and any(row.seconds >= BUDGETS[0] for row in board.ranked):
        yield "Best with a median CPU time under " + ", under ".join(words)


def leading(board: Leaderboard) -> list[LeaderboardRow]:
    """Return the methods whose ranks are close to the lowest one, at least those that tie."""
    first = board.ranked[0].rank
    return [row for row in board.ranked if row.rank - first <= CLOSE * (len(board.ranked) - 1)]


def _all(others: Sequence[Any]) -> str:
    return "the other method" if len(others) == 1 else f"all {len(others)} other methods"


def _tied(board: Leaderboard) -> list[LeaderboardRow]:
    return _down_to(board.ranked, 1)


def _down_to(rows: Sequence[LeaderboardRow], place: int) -> list[LeaderboardRow]:
    """Return the first rows by rank down to a place, with those that tie with the last one."""
    return [row for row in rows if row.rank <= rows[min(place, len(rows)) - 1].rank]


def ranking_of(report: ReportContext, board: Leaderboard) -> Ranking:
    """Return the ranking of the methods of a board over its data sets."""
    cells = summary.pivot(report.merged, board.score)[[row.method for row in board.ranked]]
    cells = cells[cells.index.get_level_values("dataset").isin(list(board.datasets))].dropna()
    over_sets, over_splits = summary.rankings_of(report.merged, board.score, cells, cells)
    return over_splits if over_splits.independent and not summary.no_nemenyi(over_splits) else over_sets


def separated_from_best(report: ReportContext, board: Leaderboard) -> tuple[list[str], str]:
    """Return the methods that a test over blocks distinguishes from the first one, or why there is no test."""
    ranking, (first, *others) = ranking_of(report, board), [row.method for row in board.ranked]
    no_nemenyi, no_wilcoxon = summary.no_nemenyi(ranking), summary.no_wilcoxon(ranking)
    if no_nemenyi and no_wilcoxon:
        return [], no_nemenyi
    if no_nemenyi:
        p = ranking.wilcoxon
        found: dict[Any, Any] = {} if p is None else p.loc[first].to_dict()
        return [name for name in others if found.get(name, 1.0) < ALPHA], ""
    ranks = ranking.mean_ranks
    return [name for name in others if ranks[name] - ranks[first] > ranking.cd], ""


def _single(report: ReportContext, board: Leaderboard) -> str:
    """Return the best method on the only data set, and which methods the paired test distinguishes from it."""
    table = report.table_of(board.score)
    i = table.datasets.index(board.datasets[0])
    columns = {row.method: table.methods.index(row.method) for row in board.ranked}
    best = [row.method for row in _tied(board)]
    text = f"Best by {board.score.inline}: {listed(best)} ({mean_text(table, i, columns[best[0]])})."
    tested = [name for name, j in columns.items() if math.isfinite(table.p[i, j])]
    if not tested:
        return f"{text} One split has no test."
    equal = [name for name in tested if table.equal[i, columns[name]]]
    if not equal:
        return f"{text} By the paired test at level {ALPHA}, {_all(tested)} differ{'s' * (len(tested) == 1)} from it."
    differ = [name for name in tested if name not in equal]
    few = f"not distinguished are {', '.join(equal)}"
    if 0 < len(differ) < len(equal):
        few = f"{'it is' if len(differ) == 1 else 'these are'} {', '.join(differ)}"
    verb = "differs" if len(differ) == 1 else "differ"
    return f"{text} By the paired test at level {ALPHA}, {len(differ)} of {len(tested)} methods {verb} from it; {few}."


def _unconverged(leaders: Sequence[LeaderboardRow]) -> str:
    """Return a sentence, after a space, on leaders with splits that have not converged, empty if there are none."""
    parts = [
        f"{row.method} has not converged on {row.converged.unconverged} of {row.finished} splits"
        for row in leaders
        if row.mark == DAGGER
    ]
    return f" {listed(parts)}." if parts else ""


def _ranks(rows: Sequence[LeaderboardRow]) -> str:
    """Return methods with their ranks."""
    return listed([f"{row.method} ({'rank ' * (j == 0)}{row.rank:.1f})" for j, row in enumerate(rows)])
