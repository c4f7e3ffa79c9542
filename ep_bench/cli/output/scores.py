"""The short table of scores at the end of ``run``."""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from ep_bench.cli.output.text import columns
from ep_bench.results import store

_METHODS = 12  # methods in the table
_SCORES = (("ll", "mean test log-likelihood"), ("rmse", "RMSE"), ("error_rate", "error rate"))
_WIDTH = (80, 24)  # of a terminal of unknown size


def score_lines(folder: Path) -> Iterator[str]:
    """Yield the mean of the first score that a study has, by method and data set; * marks means over some splits.

    The table has the methods and data sets that fit; the report has all.
    """
    study = store.read_study(folder)
    rows = [row for row in study.rows if row["status"] == "ok"]
    planned: dict[tuple[str, str], int] = {}
    for cell in store.lock_cells(study.lock):
        place = (str(cell["method"]), str(cell["dataset"]))
        planned[place] = planned.get(place, 0) + 1
    for score, title in _SCORES:
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            if (value := _number(row.get(score))) is not None:
                values.setdefault((str(row["method"]), str(row["dataset"])), []).append(value)
        if values:
            yield from table_lines(title, values, planned)
            return


def table_lines(
    title: str, values: dict[tuple[str, str], list[float]], planned: dict[tuple[str, str], int]
) -> Iterator[str]:
    """Yield a table of means of scores by method and data set; ``planned`` has the numbers of planned splits."""
    methods, datasets = (list(dict.fromkeys(place[i] for place in planned if place in values)) for i in (0, 1))

    def entry(place: tuple[str, str]) -> str:
        found = values.get(place)
        if not found:
            return "-"
        return f"{statistics.fmean(found):.4g}" + ("" if len(found) == planned[place] else "*")

    shown, sets = methods[:_METHODS], datasets
    while True:
        lines = columns([("", *sets), *((m, *(entry((m, d)) for d in sets)) for m in shown)])
        if max(map(len, lines)) < shutil.get_terminal_size(_WIDTH).columns or len(sets) <= 1:
            break
        sets = sets[:-1]
    yield f"{title}, mean over splits (* some splits only):"
    yield from lines
    counts = {"method": len(methods) - len(shown), "data set": len(datasets) - len(sets)}
    left = [f"{count} more {word}{'s' * (count > 1)}" for word, count in counts.items() if count]
    if left:
        yield f"and {' and '.join(left)}: see the report"


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
