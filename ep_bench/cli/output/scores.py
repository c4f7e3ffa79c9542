"""The short table of scores at the end of ``run``."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ep_bench.cli.output.text import Item, matrix
from ep_bench.convergence import DAGGER, count
from ep_bench.results import store

_METHODS = 12  # methods in the table
_SCORES = (("ll", "mean test log-likelihood"), ("rmse", "RMSE"), ("error_rate", "error rate"))

Place = tuple[str, str]  # method and data set


def score_table(folder: Path) -> Iterator[Item]:
    """Yield the means of the first score that a study has, by method and data set, for as many as fit.

    * marks means over some splits, and † those with splits that have not converged.
    """
    study = store.read_study(folder, with_cell_files=False)  # the run has just written the tables
    rows = [row for row in study.rows if row["status"] == "ok"]
    cells, seed = store.lock_cells(study.lock), study.lock.get("seed")  # the table has the first seed
    planned = Counter(_place(cell) for cell in cells if cell["factors"].get("seed") == seed)
    for score, title in _SCORES:
        values: dict[Place, list[float]] = {}
        for row in rows:
            if isinstance(value := row.get(score), float | int):
                values.setdefault(_place(row), []).append(value)
        if values:
            yield from means(title, values, planned, _unconverged(rows))
            ended = dict.fromkeys(str(row["method"]) for row in rows)
            if without := [method for method in ended if method not in {place[0] for place in values}]:
                yield f"{', '.join(without)}: no {title}; the report has the other scores"
            return


def _place(row: Mapping[str, object]) -> Place:
    return str(row["method"]), str(row["dataset"])


def _unconverged(rows: Sequence[Mapping[str, object]]) -> Counter[Place]:
    """Return the numbers of splits that have not converged, of the entries that have some."""
    return Counter(_place(row) for row in rows if count([row]).unconverged)


def means(
    title: str,
    values: Mapping[Place, list[float]],
    planned: Mapping[Place, int],
    unconverged: Mapping[Place, int] = MappingProxyType({}),
) -> Iterator[Item]:
    """Yield a table of means of scores; ``planned`` and ``unconverged`` have the numbers of splits of an entry."""
    methods = list(dict.fromkeys(method for method, _ in filter(values.__contains__, planned)))
    shown = [place for place in planned if place in values and place[0] in methods[:_METHODS]]

    def entry(place: Place) -> str:
        found = values.get(place)
        if not found:
            return "–"
        marks = "*" * (len(found) != planned[place]) + DAGGER * (place in unconverged)
        return f"{statistics.fmean(found):.4g}{marks}"

    yield f"{title}, mean over splits (* some splits only):"
    yield matrix("", shown, entry)
    if more := methods[_METHODS:]:
        yield f"and {len(more)} more method{'s' * (len(more) > 1)}: see the report"
    if unconverged:
        total = sum(unconverged.values())
        cells = "1 cell has" if total == 1 else f"{total} cells have"
        yield f"{DAGGER} {cells} not converged; see the column `reason` of results.csv"
