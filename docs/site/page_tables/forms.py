"""The forms of the tables: entries by data sets, and comparisons with print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ep_bench import published
from ep_bench.convergence import DAGGER, ConvergedSplits
from ep_bench.report import pairwise

from .stored import FIVE, Row, TextRow, cells, convergence, datasets_of, merged, planned, printed

NONE = "–"
NAMES = {
    "rmse": "RMSE",
    "ll": "LL",
    "crps": "CRPS",
    "lowest": "Lowest test point",
    "converged": "Converged",
    "seconds": "CPU s",
}


class Entry(NamedTuple):
    """An entry of a study, and its name in a table."""

    folder: str
    method: str
    name: str = ""


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(line)} |" for line in body)]


def score(entry: Entry, dataset: str, column: str) -> str:
    """Return a column of an entry on a data set as text; means have their standard error, mark and missing splits."""
    place = (entry.method, dataset)
    rows = cells(entry.folder, *place)
    if column == "converged":
        return _converged(convergence(entry.folder, *place))
    if column == "seconds":
        return _median([known for row in rows if (known := _cpu_seconds(row)) is not None])
    if column == "lowest":
        return f"{min(row['ll_min'] for row in rows):.1f}"
    mark = "" if never_converged(entry) else convergence(entry.folder, *place).mark
    return _mean([row[column] for row in rows], planned(entry.folder)[place], mark)


def never_converged(entry: Entry) -> bool:
    """Return whether no cell of an entry has converged; the mark is then at its name."""
    counts = merged(entry.folder).converged([entry.method], merged(entry.folder).datasets)
    return 0 < counts.unconverged == len(merged(entry.folder).ok().query("method == @entry.method"))


def named(entry: Entry) -> str:
    """Return the name of an entry in a table."""
    return (entry.name or entry.method) + (f" {DAGGER}" if never_converged(entry) else "")


def differences(before: Entry, after: Entry) -> list[Any]:
    """Return the paired comparison of the log-likelihoods of two entries on common splits, one row per data set."""
    both = merged(*dict.fromkeys((before.folder, after.folder)))
    found = pairwise.compare(both.ok(), after.method, before.method, **pairwise.facts(both, "ll"))
    return [row for row in found.itertuples() if row.dataset in FIVE]


def before_after(before: Entry, after: Entry) -> list[str]:
    """Return the mean log-likelihoods of two entries on common splits, with the corrected paired test."""
    body = [
        [str(row.dataset), f"{row.mean_second:.3f}", f"{row.mean_first:.3f}", f"{row.difference:+.3f}",
         f"{row.low:+.3f} to {row.high:+.3f}", f"{row.p:.2g}", f"{row.wins:.0f} of {row.blocks:.0f}"]
        for row in differences(before, after)
    ]  # fmt: skip
    return table(["Data set", *map(named, (before, after)), "Difference", "95 % interval", "p", "Higher on"], body)


def _mean(values: Sequence[float], planned_splits: int, mark: str) -> str:
    if not values:
        return NONE
    text = published.measured(float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values)))
    text += f" {mark}" if mark else ""
    return text + (f" ({len(values)}/{planned_splits})" if len(values) < planned_splits else "")


def _median(seconds: Sequence[float]) -> str:
    middle = float(np.median(seconds)) if seconds else math.nan
    return NONE if math.isnan(middle) else f"{middle:,.0f}" if middle >= 100.0 else f"{middle:.2g}"


def _cpu_seconds(row: Row) -> float | None:
    """Return the CPU seconds of a fit, search included, None for a row without them."""
    return None if row.get("fit_cpu_seconds") is None else row["fit_cpu_seconds"] + (row.get("tune_cpu_seconds") or 0.0)


def _converged(counts: ConvergedSplits) -> str:
    """Return how many of the judged splits have converged or nearly converged, a dash if none is judged."""
    return f"{counts.converged + counts.nearly} of {counts.judged}" if counts.judged else NONE


def scores(column: str, entries: Sequence[Entry], source: tuple[str, str], datasets: Sequence[str] = ()) -> list[str]:
    """Return entries by data sets, below the published row of a source and one of its methods.

    Data sets are by default those on which half of the entries have all splits.
    """
    sets = datasets or datasets_of(entries[0].folder, [entry.method for entry in entries])
    body = [[f"{source[1]}, published", *(printed(*source, dataset, column) for dataset in sets)]]
    body += [[named(entry), *(score(entry, dataset, column) for dataset in sets)] for entry in entries]
    return table([NAMES[column], *sets], body)


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
