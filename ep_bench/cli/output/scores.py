"""The short table of scores at the end of ``run``."""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ep_bench.cli.output.text import columns
from ep_bench.convergence import DAGGER, ConvergedSplits, count
from ep_bench.results import store

_METHODS = 12  # methods in the table
_SCORES = (("ll", "mean test log-likelihood"), ("rmse", "RMSE"), ("error_rate", "error rate"))
_WIDTH = (80, 24)  # of a terminal of unknown size


def score_lines(folder: Path) -> Iterator[str]:
    """Yield the mean of the first score that a study has, by method and data set.

    * marks means over some splits, and † those with splits that have not converged.

    The table has the methods and data sets that fit; the report has all.
    """
    study = store.read_study(folder, with_cell_files=False)  # the run has just written the tables
    rows = [row for row in study.rows if row["status"] == "ok"]
    planned: dict[tuple[str, str], int] = {}
    for cell in store.lock_cells(study.lock):
        if cell["factors"].get("seed") != study.lock.get("seed"):
            continue  # the table has the first seed
        place = (str(cell["method"]), str(cell["dataset"]))
        planned[place] = planned.get(place, 0) + 1
    for score, title in _SCORES:
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            if (value := _number(row.get(score))) is not None:
                values.setdefault((str(row["method"]), str(row["dataset"])), []).append(value)
        if values:
            yield from table_lines(title, values, planned, _unconverged(rows))
            ended = dict.fromkeys(str(row["method"]) for row in rows)
            if without := [method for method in ended if method not in {place[0] for place in values}]:
                yield f"{', '.join(without)}: no {title}; the report has the other scores"
            return


def _unconverged(rows: Sequence[Mapping[str, object]]) -> dict[tuple[str, str], ConvergedSplits]:
    """Return the counts of the entries of which some splits have not converged."""
    entries: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for row in rows:
        entries.setdefault((str(row["method"]), str(row["dataset"])), []).append(row)
    counts = {place: count(cells) for place, cells in entries.items()}
    return {place: found for place, found in counts.items() if found.unconverged}


def table_lines(
    title: str,
    values: Mapping[tuple[str, str], list[float]],
    planned: Mapping[tuple[str, str], int],
    unconverged: Mapping[tuple[str, str], ConvergedSplits] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield a table of means of scores by method and data set; ``planned`` has the numbers of planned splits.

    ``unconverged`` has the entries that get a dagger.
    """
    methods, datasets = (list(dict.fromkeys(place[i] for place in planned if place in values)) for i in (0, 1))

    def entry(place: tuple[str, str]) -> str:
        found = values.get(place)
        if not found:
            return "-"
        return (
            f"{statistics.fmean(found):.4g}"
            + ("" if len(found) == planned[place] else "*")
            + (DAGGER if place in unconverged else "")
        )

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
        hidden = dict.fromkeys(m for m, d in unconverged if m not in shown or d not in sets)
        yield f"and {' and '.join(left)}: see the report" + (f" ({DAGGER} {', '.join(hidden)})" if hidden else "")
    if unconverged:
        total = sum(found.unconverged for found in unconverged.values())
        cells = "1 cell has" if total == 1 else f"{total} cells have"
        yield f"{DAGGER} {cells} not converged; see the column `reason` of results.csv"


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
