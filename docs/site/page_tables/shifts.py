"""Tables of learning curves, and of gaps and tails."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ep_bench.report.context import ReportContext
from ep_bench.report.sections import learning_curves

from .forms import NAMES, NONE, table
from .stored import merged

SHIFTS = {"gap": "gap-public", "tails": "tails"}


def small_n() -> list[str]:
    """Return the best methods by data set and number of training points."""
    report, body, numbers = ReportContext(merged("small-n")), [], []
    for found in (one.table for one in report.scores if one.score.name in ("ll", "rmse")):
        score = found.score.name
        best = learning_curves.best_table(found, learning_curves.curves_of(report))
        numbers = list(best.head[1:])
        body += [[row[0], NAMES[score], *(entry["text"] if entry else NONE for entry in row[1:])] for row in best.rows]
    finished = [row for row in body if set(row[2:]) != {NONE}]
    return table(["Data set", "Score", *numbers], sorted(finished, key=lambda row: row[0]))


def shifts() -> list[str]:
    """Return the coverage of 95 % intervals in gaps and in tails."""
    means = {
        name: merged(folder).ok().groupby(["method", "dataset"], sort=False)["coverage95"].mean()
        for name, folder in SHIFTS.items()
    }
    places = pd.MultiIndex.from_tuples([place for one in means.values() for place in one.index])
    datasets = [name for name in merged("tails").datasets if name in places.unique(1)]
    body = [
        [method, *(" / ".join(_percent(one.get((method, name))) for one in means.values()) for name in datasets)]
        for method in merged("tails").methods
        if method in places.unique(0)
    ]
    return table(["Gap / tails", *datasets], body)


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"


TABLES: dict[str, Callable[[], list[str]]] = {"small-n": small_n, "gap-tails": shifts}
