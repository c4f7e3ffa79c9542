"""Tables of the leaderboard: ranks, scores, coverage, finished splits and seconds on the standard splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from ep_bench.convergence import ConvergedSplits
from ep_bench.plotting.method_style import DEEP, NETWORKS, PROCESSES, family_of
from ep_bench.report import merge, summary
from ep_bench.report.leaderboard import LeaderboardRow
from ep_bench.report.leaderboard import leaderboard as ranked_rows
from ep_bench.report.scores import MAIN
from ep_bench.report.summary import ScoreTable

from .forms import NAMES, NONE, converged, cpu_seconds, table, with_error
from .stored import FIVE, LARGE, board, board_cells, board_convergence, comparison

SCORES = ("ll", "rmse", "crps")
LIMITS = (1, 10, 100, 1000)  # CPU seconds
LEVELS = (50, 90, 95)  # percent
SHOWN = 3  # entries of a limit


def complete_entries(datasets: Sequence[str], families: Sequence[str] = ()) -> list[str]:
    """Return the entries of some families, by default all, with all splits of some data sets."""
    plan = board().planned
    splits = {d: max(count for (_, dataset), count in plan.items() if dataset == d) for d in datasets}
    uses = {label: str(entry["use"]) for study in board().studies for label, entry in study.lock["methods"].items()}
    return [
        name
        for name in board().methods
        if (not families or family_of(uses[name]) in families)
        and all(len(board_cells(name, d)) == splits[d] for d in datasets)
    ]


@cache
def _score_table(score: str) -> ScoreTable:
    found = summary.score_table(board(), next(one for one in MAIN if one.name == score))
    if found is None:
        raise ValueError(f"no row has {score}")
    return found


def _by_rank(score: str, methods: Sequence[str], datasets: Sequence[str]) -> dict[str, LeaderboardRow]:
    """Return the rows of the leaderboard of some methods by their average rank, whether they have converged or not."""
    rows = ranked_rows(board(), _score_table(score), comparison(), methods, datasets).ranked
    return {row.method: row for row in sorted(rows, key=lambda row: row.rank)}


def means(score: str, datasets: Sequence[str]) -> list[str]:
    """Return the complete entries by average rank, with their means."""
    names = _by_rank(score, complete_entries(datasets), datasets)
    return table(["Entry", *datasets], [[name, *(_mean(name, d, score) for d in datasets)] for name in names])


def _mean(method: str, dataset: str, score: str) -> str:
    return with_error([row[score] for row in board_cells(method, dataset)], 0, board_convergence(method, dataset).mark)


def ranking(datasets: Sequence[str], families: Sequence[str] = ()) -> list[str]:
    """Return ranks with intervals, and losses, of the complete entries by three scores."""
    methods = complete_entries(datasets, families)
    found = {score: _by_rank(score, methods, datasets) for score in SCORES}
    body = []
    for name in found["ll"]:
        texts = [text for score, rows in found.items() for text in _rank_and_loss(rows[name], score)]
        body.append([name, *texts, converged(board_convergence(name, *datasets))])
    heads = [head for score in SCORES for head in (f"Rank by {NAMES.get(score, score)}", "Loss")]
    return table(["Entry", *heads, "Converged"], body)


def _rank_and_loss(row: LeaderboardRow, score: str) -> list[str]:
    rank = f"{row.rank:.1f} {row.mark}".rstrip() + f" ({row.low:.1f} to {row.high:.1f})"
    return [rank, f"{row.loss + 0.0:.2f} nats" if score == "ll" else f"{100.0 * row.loss + 0.0:.0f} %"]


def within_limits(datasets: Sequence[str]) -> list[str]:
    """Return the best of the complete entries of which every fit stays within a limit of CPU time."""
    body = []
    for limit in LIMITS:
        names = [name for name in complete_entries(datasets) if _longest_fit(name, datasets) <= limit]
        best = ["; ".join(list(_by_rank(score, names, datasets))[:SHOWN]) or NONE for score in ("ll", "rmse")]
        body.append([f"{limit:,} s", str(len(names)), *best])
    return table(["Limit", "Entries", "Best ranks by LL", "Best ranks by RMSE"], body)


def _seconds(method: str, dataset: str) -> list[float]:
    return [known for row in board_cells(method, dataset) if (known := cpu_seconds(row)) is not None]


def _longest_fit(method: str, datasets: Sequence[str]) -> float:
    """Return the CPU seconds of the longest fit, infinite if some data set has no times."""
    return max(max(_seconds(method, dataset), default=float("inf")) for dataset in datasets)


def median_seconds() -> list[str]:
    """Return the median CPU seconds of one fit, search included, on the five small data sets."""
    body = [[name, *(_median(name, dataset) for dataset in FIVE)] for name in complete_entries(FIVE)]
    return table(["Entry", *FIVE], body)


def _median(method: str, dataset: str) -> str:
    times = _seconds(method, dataset)
    return f"{np.median(times):.3g} {board_convergence(method, dataset).mark}".rstrip() if times else NONE


def interval_coverage() -> list[str]:
    """Return the fraction of test targets in central intervals, mean over the five small data sets, and its range."""
    body = []
    for name in _by_rank("ll", complete_entries(FIVE), FIVE):
        found = np.array([[np.mean([row[f"coverage{level}"] for row in board_cells(name, d)]) for d in FIVE]
                          for level in LEVELS])  # fmt: skip
        texts = (f"{one.mean():.3f} ({one.min():.2f} to {one.max():.2f})" for one in found)
        body.append([f"{name} {board_convergence(name, *FIVE).mark}".rstrip(), *texts])
    return table(["Entry", *(f"{level} % interval" for level in LEVELS)], body)


def finished() -> list[str]:
    """Return the finished and planned splits of every entry, those that have converged, and the CPU hours."""
    rows = board().ok()
    hours = merge.cpu_seconds(rows).groupby(rows["method"]).sum() / 3600.0
    body = []
    for name in board().methods:
        counts = sum((one for (method, _), one in board().convergence.items() if method == name), ConvergedSplits())
        splits = [_finished(name, dataset) for dataset in board().datasets]
        body.append([name, *splits, converged(counts), f"{hours.get(name, 0.0):.2g}"])
    return table(["Entry", *board().datasets, "Converged", "CPU h"], body)


def _finished(method: str, dataset: str) -> str:
    done, total = len(board_cells(method, dataset)), board().planned.get((method, dataset), 0)
    if not total:
        return "out" if (method, dataset) in _left_out() else NONE
    return "all" if done == total else f"{done}/{total}"


@cache
def _left_out() -> dict[tuple[str, str], str]:
    """Return the reasons of the pairs of method and data set that the studies leave out."""
    entries = [entry for study in board().studies for entry in study.lock.get("left_out", [])]
    return {(entry["method"], entry["dataset"]): entry["reason"] for entry in entries}


def left_out() -> list[str]:
    """Return what the studies leave out, with the reasons."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (method, dataset), reason in _left_out().items():
        groups.setdefault((dataset, reason), []).append(method)
    body = [[dataset, ", ".join(methods), reason] for (dataset, reason), methods in groups.items()]
    return table(["Data set", "Left out", "Reason"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "leaderboard-ll": partial(means, "ll", FIVE),
    "leaderboard-rmse": partial(means, "rmse", FIVE),
    "ranking": partial(ranking, FIVE),
    "ranking-networks": partial(ranking, FIVE, (NETWORKS,)),
    "ranking-processes": partial(ranking, FIVE, (PROCESSES, DEEP)),
    "ranking-large": partial(ranking, LARGE),
    "ranking-large-networks": partial(ranking, LARGE, (NETWORKS,)),
    "ranking-large-processes": partial(ranking, LARGE, (PROCESSES, DEEP)),
    "within-limits": partial(within_limits, FIVE),
    "within-limits-large": partial(within_limits, LARGE),
    "interval-coverage": interval_coverage,
    "finished": finished,
    "left-out": left_out,
    "seconds": median_seconds,
}
