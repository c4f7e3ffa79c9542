"""The forms of the tables: entries by data sets, pairs of entries, comparisons with print, and columns of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ep_bench import published
from ep_bench.convergence import ConvergedSplits, count

from .stored import Cells, Row, TextRow, cells, convergence, datasets_of, planned, printed

NONE = "–"
ROUNDING = 1e-5  # differences below it are 0
NAMES = {
    "rmse": "RMSE",
    "ll": "LL",
    "ll_gaussian": "LL, one Gaussian",
    "crps": "CRPS",
    "mse": "Mean squared error",
    "train_ll": "LL, training data",
    "seconds": "CPU s",
    "lowest": "Lowest test point",
    "r_hat": "Median R-hat, test",
    "converged": "Converged",
    published.DENSITY: "Log density",
    published.SQUARE: "Squared error",
}
ERRORS = ("rmse", "ll", "ll_gaussian", "crps", "mse", "train_ll")  # columns that are means with a standard error


class Entry(NamedTuple):
    """An entry of a study, and its name in a table."""

    folder: str
    method: str
    name: str = ""


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(line)} |" for line in body)]


def with_error(values: Sequence[float], planned_splits: int = 0, mark: str = "") -> str:
    """Return mean and standard error (ddof 0), a mark, and the number of splits if some are missing."""
    if not len(values):
        return NONE
    text = published.measured(float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values)))
    text += f" {mark}" if mark else ""
    return text + (f" ({len(values)}/{planned_splits})" if len(values) < planned_splits else "")


def signed(text: str) -> str:
    """Return a number with its sign."""
    return text if text[0] in "-–" else f"+{text}"


def converged(counts: ConvergedSplits) -> str:
    """Return how many of the judged splits have converged or nearly converged, a dash if none is judged."""
    return f"{counts.converged + counts.nearly} of {counts.judged}" if counts.judged else NONE


def cpu_seconds(row: Row) -> float | None:
    """Return the CPU seconds of a fit, search included, None for a row without them."""
    return None if row.get("fit_cpu_seconds") is None else row["fit_cpu_seconds"] + (row.get("tune_cpu_seconds") or 0.0)


def _value(row: Row, column: str) -> float | None:
    if column == "mse":
        return float(row["rmse"] ** 2)
    name = {"lowest": "ll_min"}.get(column, column)
    return cpu_seconds(row) if column == "seconds" else row.get(name)


def summarised(rows: Cells, column: str, planned_splits: int = 0, mark: str = "") -> str:
    """Return one column of the rows of an entry as text, a dash without values."""
    if column == "converged":
        return converged(count(rows))
    values = [value for row in rows if (value := _value(row, column)) is not None]
    if column in ERRORS or not values:
        return with_error(values, planned_splits, mark)
    reduced = {"lowest": np.min, "r_hat": np.median}.get(column, np.mean)
    return f"{reduced(values):.{1 if column == 'lowest' else 2}f}"


def score(entry: Entry, dataset: str, column: str) -> str:
    """Return one column of an entry on a data set, with its mark and missing splits."""
    place = (entry.method, dataset)
    rows = cells(entry.folder, *place)
    return summarised(rows, column, planned(entry.folder).get(place, 0), convergence(entry.folder, *place).mark)


def scores(
    columns: Sequence[str],
    entries: Sequence[Entry],
    datasets: Sequence[str] = (),
    published_rows: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """Return entries by data sets; ``published_rows`` are sources with their methods, printed above the entries.

    Data sets are by default those on which half of the entries of the first study have all splits.
    """
    first = entries[0].folder
    sets = datasets or datasets_of(first, [entry.method for entry in entries if entry.folder == first])
    body = []
    for column in columns:
        more = f", {NAMES[column]}" if len(columns) > 1 else ""
        if not (column == "ll" and "ll_gaussian" in columns):  # a paper that prints the latter has no mixture
            lines = [[f"{method}, published{more}", *(_printed(source, method, d, column) for d in sets)]
                     for source, method in published_rows]  # fmt: skip
            body += [line for line in lines if set(line[1:]) != {NONE}]
        body += [[(entry.name or entry.method) + more, *(score(entry, d, column) for d in sets)] for entry in entries]
    return table([NAMES[columns[0]] if len(columns) == 1 else "", *sets], body)


def _printed(source: str, method: str, dataset: str, column: str) -> str:
    return printed(source, method, dataset, "ll" if column == "ll_gaussian" else column)


def pairs(
    entries: Sequence[tuple[Entry, Entry]],
    names: tuple[str, str],
    columns: Sequence[str] = ("rmse", "ll", "seconds"),
    yardstick: tuple[str, str] | None = None,
) -> list[str]:
    """Return two entries next to each other on their common splits, with the mean of the differences of each score.

    ``yardstick`` is a source with a method, whose log-likelihood is the last column.
    """
    body = []
    for first, second in entries:
        for dataset in [name for method, name in planned(second.folder) if method == second.method]:
            both = _on_common_splits(first, second, dataset)
            texts = [text for column in columns for text in _compared(both, column)]
            texts += [printed(*yardstick, dataset, "ll")] if yardstick else []
            if both[0]:
                body.append([second.name or second.method, dataset, *texts])
    head = ["Entry", "Data set"]
    for column in columns:
        head += [f"{NAMES[column]}, {name}" for name in (*names, *["difference"] * (column in ERRORS))]
    return table(head + ([f"LL, {yardstick[1]}, published"] if yardstick else []), body)


def _on_common_splits(first: Entry, second: Entry, dataset: str) -> tuple[Cells, Cells]:
    both = [{row["split"]: row for row in cells(one.folder, one.method, dataset)} for one in (first, second)]
    common = sorted(both[0].keys() & both[1].keys())
    return [both[0][split] for split in common], [both[1][split] for split in common]


def _compared(both: tuple[Cells, Cells], column: str) -> list[str]:
    texts = [summarised(rows, column, mark=count(rows).mark) for rows in both]
    if column not in ERRORS:
        return texts
    gains = np.array([new[column] - old[column] for old, new in zip(*both, strict=True)])
    return [*texts, "0" if np.abs(gains).max() < ROUNDING else signed(with_error(gains.tolist()))]


def comparisons(rows: Iterable[TextRow]) -> list[str]:
    """Return rows of check.csv: printed and computed numbers with their verdicts."""
    body = [
        [row["dataset"], row["method"], NAMES.get(row["metric"], row["metric"]), row["published_mean"], _computed(row),
         f"{float(row['z']):+.1f}" if row["z"] else NONE, row["verdict"]]
        for row in rows if row["mean"]
    ]  # fmt: skip
    return table(["Data set", "Entry", "Score", "Printed", "ep-bench", "z", "Verdict"], body)


def _computed(row: TextRow) -> str:
    return published.measured(float(row["mean"]), float(row["stderr"]))


Format = str | Callable[[Any], str]


def of_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, tuple[str, Format]]) -> list[str]:
    """Return columns of rows; each heading has a column and its format, which is ``"s"`` for text."""
    body = [[_formatted(row[column], form) for column, form in columns.values()] for row in rows]
    return table(list(columns), body)


def _formatted(value: Any, form: Format) -> str:
    if callable(form):
        return form(value)
    return str(value) or NONE if form == "s" else f"{float(value):{form}}"
