"""Tables of the leaderboard: ranks, scores, coverage, seconds and machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from ep_bench.convergence import ConvergedSplits
from ep_bench.report import cell_times

from .convergence_blocks import mark_on, with_headings
from .markdown import table, with_error
from .stored import FIVE, all_results, board, board_cells

SCORES = {"LL": ("ll", True), "RMSE": ("rmse", False), "CRPS": ("crps", False)}  # column, and whether higher is better
UNBOUNDED = {"LL": ("wine",)}  # data sets that do not count in ranks, as in the reports
WALL = "*"  # marks times that are wall times on some splits


def complete_entries(datasets: Sequence[str] = FIVE) -> list[str]:
    """Return the entries with all splits of some data sets, by default the five small ones."""
    plan = board().planned
    most = {d: max(n for (_, dataset), n in plan.items() if dataset == d) for d in datasets}
    return [m for m in board().methods if all(len(board_cells(m, d)) == most[d] for d in datasets)]


def average_ranks(score: str) -> pd.DataFrame:
    """Return the ranks of the complete entries by data set (1 is best), sorted by their mean."""
    metric, higher = SCORES[score]
    sets = ranked_sets(score)
    columns = {m: [np.mean([row[metric] for row in board_cells(m, d)]) for d in sets] for m in complete_entries()}
    ranks = pd.DataFrame(columns, index=sets).rank(axis=1, ascending=not higher)
    return ranks[sorted(ranks, key=lambda method: ranks[method].mean())]


def ranked_sets(score: str) -> list[str]:
    """Return the small data sets that count in ranks by a score."""
    return [dataset for dataset in FIVE if dataset not in UNBOUNDED.get(score, ())]


def leaderboard(score: str) -> list[str]:
    """Return the complete entries by average rank over the small data sets, with their means."""
    ranks = average_ranks(score)

    def line(method: str) -> list[str]:
        place = [method, f"{ranks[method].mean():.1f}", f"{ranks[method].min():.0f} to {ranks[method].max():.0f}"]
        return [*place, *(_score(method, dataset, SCORES[score][0]) for dataset in FIVE)]

    return table(["Entry", "Average rank", "Ranks", *FIVE], with_headings(list(ranks), ranked_sets(score), line))


def _score(method: str, dataset: str, metric: str) -> str:
    return with_error([row[metric] for row in board_cells(method, dataset)], 0, mark_on(method, dataset))


def interval_coverage() -> list[str]:
    """Return the fraction of test targets in central intervals, mean over the five data sets."""
    levels = (50, 90, 95)

    def line(method: str) -> list[str]:
        return [f"{method} {mark_on(method, *FIVE)}".rstrip(), *(_coverage(method, level) for level in levels)]

    body = with_headings(list(average_ranks("LL")), FIVE, line)
    return table(["Entry", *(f"{level} % interval" for level in levels)], body)


def _coverage(method: str, level: int) -> str:
    means = [np.mean([row[f"coverage{level}"] for row in board_cells(method, d)]) for d in FIVE]
    return f"{np.mean(means):.3f} ({min(means):.2f} to {max(means):.2f})"


def finished_of_planned() -> list[str]:
    """Return the finished and planned splits of every entry on every data set, and the CPU hours of all its splits.

    "out" marks entries that a study leaves out on a data set.
    """
    datasets = board().datasets
    body = [
        [method, *(_finished(method, dataset) for dataset in datasets), _convergence(method), _cpu_hours(method)]
        for method in board().methods
    ]
    return table(["Entry", *datasets, "Converged, nearly, not, not stated", "CPU h"], body)


def _convergence(method: str) -> str:
    """Return the numbers of splits of all data sets by convergence."""
    found = sum((mark for (name, _), mark in board().convergence.items() if name == method), ConvergedSplits())
    return f"{found.converged}, {found.nearly}, {found.unconverged}, {found.unstated}"


def _cpu_hours(method: str) -> str:
    rows = board().ok()
    own = rows[rows["method"] == method]
    return f"{float(cell_times.total(own).sum()) / 3600.0:.2g}" + (WALL if own["wall_times"].any() else "")


def finished_cells() -> str:
    """Return how many planned cells of the studies are finished."""
    done, total = len(board().ok()), sum(board().planned.values())
    return f"{done:,} of {total:,} planned cells are finished, {100.0 * done / total:.1f} %"


def converged_cells() -> str:
    """Return how many finished cells have converged."""
    found = sum(board().convergence.values(), ConvergedSplits())
    return (
        f"Of the finished cells, {found.converged:,} have converged, {found.nearly:,} nearly and "
        f"{found.unconverged:,} not; {found.unstated:,} do not state it"
    )


def _finished(method: str, dataset: str) -> str:
    done, total = len(board_cells(method, dataset)), board().planned.get((method, dataset), 0)
    if not total:
        return "out" if (method, dataset) in left_out() else "–"
    return f"{'all' if done == total else f'{done}/{total}'} {mark_on(method, dataset)}".strip()


@cache
def left_out() -> dict[tuple[str, str], str]:
    """Return the reasons of the pairs of method and data set that the studies leave out."""
    entries = [entry for study in board().studies for entry in study.lock.get("left_out", [])]
    return {(entry["method"], entry["dataset"]): entry["reason"] for entry in entries}


def reasons_left_out() -> list[str]:
    """Return the table of what the studies leave out, with the reasons."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (method, dataset), reason in left_out().items():
        groups.setdefault((dataset, reason), []).append(method)
    body = [[dataset, ", ".join(methods), reason] for (dataset, reason), methods in groups.items()]
    return table(["Data set", "Left out", "Reason"], body)


def machines() -> list[str]:
    """Return the machines, revisions and command of every folder with times."""
    body = []
    for study in all_results().studies:
        lock = json.loads((study.folder / "study.lock.json").read_text(encoding="utf-8"))
        found = [one["machine"] for one in lock.get("environments", {}).values() if "machine" in one]
        kinds = dict.fromkeys(f"{one['processor']}, {one['cores']} cores, {one['system']}" for one in found)
        name, known = study.folder.name, "; ".join(kinds) or "not recorded"
        body.append([f"[{name}](../results/{name})", known, f"`ep-bench report results/{name}`"])
    return table(["Folder", "Machines", "Command that prints the times"], body)


def median_seconds() -> list[str]:
    """Return the median CPU seconds of one fit, search included, on the five data sets."""
    return table(["Entry", *FIVE], [[method, *(_seconds(method, d) for d in FIVE)] for method in complete_entries()])


def _seconds(method: str, dataset: str) -> str:
    times = cpu_seconds(method, dataset)
    if not times:
        return "–"
    star = WALL if has_wall_times(method, [dataset]) else ""
    return f"{np.median(times):.3g}{star} {mark_on(method, dataset)}".rstrip()


def has_wall_times(method: str, datasets: Sequence[str]) -> bool:
    """Return whether some rows of an entry are of older versions and have wall times instead of CPU times."""
    return any(row["wall_times"] for dataset in datasets for row in board_cells(method, dataset))


def cpu_seconds(method: str, dataset: str) -> list[float]:
    """Return the CPU seconds of the fits of an entry, search included, empty if no row has them.

    Rows of older versions have wall times instead.
    """
    return [row["fit_cpu_seconds"] + (0.0 if pd.isna(row["tune_cpu_seconds"]) else row["tune_cpu_seconds"])
            for row in board_cells(method, dataset) if not pd.isna(row["fit_cpu_seconds"])]  # fmt: skip


TABLES = {
    "leaderboard-ll": lambda: leaderboard("LL"),
    "leaderboard-rmse": lambda: leaderboard("RMSE"),
    "interval-coverage": interval_coverage,
    "finished": finished_of_planned,
    "left-out": reasons_left_out,
    "machines": machines,
    "seconds": median_seconds,
}
FACTS = [("leaderboard.md", finished_cells), ("leaderboard.md", converged_cells)]
