"""Stored results and published numbers, as the tables and sentences of the documentation need them."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.convergence import ConvergedSplits
from ep_bench.published import printed
from ep_bench.report.merge import MergedStudies, merge_studies
from ep_bench.report.published_checks import merged_check
from ep_bench.results import store

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
PUBLISHED = Path(published.__file__).parent / "tables"
# Settings that differ from those of the printed numbers; copies.
OMITTED = (
    "pbp-plain",
    "bp-schedule",
    "dgp-cosine",
    "dgp-classes-training",
    "dgp-classes-seed",
    "gp-options",
    "hmc-length",
    "hmc-noise-prior",
    "pbp-longer",
    "suite",
)
BOARD = (
    "bnn-optimisation",
    "pbp-layers",
    "bnn-sampling",
    "ensemble",
    "ep-nn",
    "gp",
    "dgp",
    "dgp-cosine",
    "controls",
)  # on the standard splits
FIVE = ("boston", "concrete", "energy", "wine", "yacht")
LARGE = ("power", "kin8nm", "naval", "protein")

Row = dict[str, Any]
Cells = Sequence[Row]
TextRow = dict[str, str]


@cache
def stored_study(folder: str) -> store.StudyResults:
    """Return a study with its stored rows, which are read once."""
    return store.read_intact(RESULTS / folder)


@cache
def merged(*folders: str) -> MergedStudies:
    """Return studies as a report on their folders has them."""
    return merge_studies([stored_study(folder) for folder in folders])


@cache
def all_results() -> MergedStudies:
    """Return the cells of all committed folders but ``OMITTED``, not those of folders that are not committed."""
    listing = ["git", "ls-files", "results/*/results.csv"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    folders = sorted(Path(line).parent.name for line in done.stdout.splitlines())
    return merged(*(folder for folder in folders if folder not in OMITTED))


@cache
def board() -> MergedStudies:
    """Return the cells of the studies on the standard splits of the regression sets."""
    return merged(*BOARD)


@cache
def comparison() -> pd.DataFrame:
    """Return the comparison of the committed results with all published numbers; a number may have several rows."""
    studies = [*all_results().studies, stored_study("active-learning")]  # the latter has no cells
    return merged_check(merge_studies(studies))


@cache
def finished(folder: str) -> tuple[Row, ...]:
    """Return the cells of a study that ended ok."""
    return tuple(row for row in stored_study(folder).rows if row["status"] == "ok")


def cells(folder: str, method: str, dataset: str) -> list[Row]:
    """Return the cells of one entry that ended ok, by split."""
    return [row for row in finished(folder) if (row["method"], row["dataset"]) == (method, dataset)]


@cache
def _board_by_entry() -> dict[tuple[str, str], tuple[Row, ...]]:
    """Return the cells of the leaderboard that ended ok by method and data set."""
    found = defaultdict(list)
    for row in board().ok().to_dict("records"):
        found[row["method"], row["dataset"]].append(row)
    return {entry: tuple(rows) for entry, rows in found.items()}


def board_cells(method: str, dataset: str) -> tuple[Row, ...]:
    """Return the cells of an entry of the leaderboard that ended ok."""
    return _board_by_entry().get((method, dataset), ())


def planned(folder: str) -> dict[tuple[str, str], int]:
    """Return the number of planned cells by method and data set."""
    return merged(folder).planned


def covered(folder: str) -> list[str]:
    """Return the data sets on which at least half of the entries of a study have all splits."""
    plan = planned(folder)
    methods = {method for method, _ in plan}
    datasets = list(dict.fromkeys(dataset for _, dataset in plan))
    full = {d: sum(len(cells(folder, m, d)) == plan.get((m, d)) for m in methods) for d in datasets}
    return [dataset for dataset in datasets if 2 * full[dataset] >= len(methods)]


def complete(folder: str, method: str) -> list[str]:
    """Return the data sets on which an entry has all splits."""
    plan = planned(folder)
    return [dataset for (name, dataset), total in plan.items()
            if name == method and len(cells(folder, method, dataset)) == total]  # fmt: skip


def convergence(folder: str, method: str, dataset: str) -> ConvergedSplits:
    """Return the counts of converged splits of one entry."""
    return merged(folder).convergence.get((method, dataset), ConvergedSplits())


def converged_splits(folder: str, method: str) -> ConvergedSplits:
    """Return the counts of converged splits of one entry over the data sets on which it has all splits."""
    return sum((convergence(folder, method, dataset) for dataset in complete(folder, method)), ConvergedSplits())


def rows_of(path: Path) -> tuple[TextRow, ...]:
    """Return the rows of a CSV file as text."""
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@cache
def checked(folder: str, file: str = "check.csv") -> tuple[TextRow, ...]:
    """Return the rows of check.csv, or of another file of a folder."""
    return rows_of(RESULTS / folder / file)


def summary(folder: str) -> tuple[TextRow, ...]:
    """Return the rows of the summary of an experiment."""
    return checked(folder, "summary.csv")


def selected(rows: Sequence[TextRow], **wanted: str) -> list[TextRow]:
    """Return the rows with some values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def check_row(folder: str, **wanted: str) -> TextRow:
    """Return the one row of check.csv with some values."""
    (found,) = selected(checked(folder), **wanted)
    return found


def published_number(rows: Sequence[TextRow], mean: str, stderr: str, **wanted: str) -> str:
    """Return the first published number with some values as it is printed, or a dash; ``mean`` is a column."""
    found = selected(rows, **wanted)
    return printed(float(found[0][mean]), float(found[0][stderr] or "nan")) if found else "–"


def any_published_number(source: str, method: str, dataset: str, metric: str) -> str:
    """Return a number of any published table as it is printed, or a dash."""
    rows = published.load_published()
    wanted = {"source": source, "method": method, "dataset": dataset, "metric": metric}
    found = rows[np.logical_and.reduce([rows[name] == value for name, value in wanted.items()])]
    return printed(float(found["mean"].iloc[0]), float(found["stderr"].iloc[0])) if len(found) else "–"


def mean_seconds(rows: Cells) -> str:
    """Return the mean processor time of a fit over the rows that have it, or a dash."""
    seconds = [row["fit_cpu_seconds"] for row in rows if row.get("fit_cpu_seconds") is not None]
    return f"{sum(seconds) / len(seconds):.2f}" if seconds else "–"


@cache
def curves(folder: str) -> dict[str, Any]:
    """Return the curves of a study."""
    return dict(json.loads((RESULTS / folder / "curves.json").read_text(encoding="utf-8")))
