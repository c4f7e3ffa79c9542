"""Committed results and published numbers, as the tables of the documentation need them."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from committed_results import committed_folders, submitted_folders

from ep_bench import published
from ep_bench.convergence import ConvergedSplits
from ep_bench.report.merge import MergedStudies, merge_studies
from ep_bench.report.published_checks import merged_check
from ep_bench.results import store

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
FIGURES = DOCS / "figures"
# Settings that differ from those of the printed numbers, and copies. They do not count in comparisons. Pages
# have their verdicts on claims that no other folder has.
OMITTED = (
    "breadth",
    "league",
    "league-large",
    "small-n",
    "gap-public",
    "tails",
    "pbp-plain",
    "bp-schedule",
    "ep-nn-classes",
    "dgp-cosine",
    "dgp-classes-training",
    "dgp-classes-starts",
    "dgp-classes-more-starts",
    "dgp-classes-full",
    "gp-options",
    "hmc-length",
    "hmc-budget",
    "hmc-noise-prior",
    "pbp-longer",
    "recalibration",
    "suite",
)
# Studies on the standard splits of the regression sets, and those of the five small sets only.
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
)
SMALL = ("kernels", "choices", "settings", "closed-form", "last-layer")
FIVE = ("boston", "concrete", "energy", "wine", "yacht")
LARGE = ("power", "kin8nm", "naval", "protein")

Row = dict[str, Any]
Cells = Sequence[Row]
TextRow = dict[str, str]


def with_cells() -> list[str]:
    """Return the committed folders with cells; the others are experiments."""
    return [folder.name for folder in committed_folders() if (folder / store.RESULTS).exists()]


def experiments() -> list[str]:
    """Return the committed folders of experiments."""
    return [folder.name for folder in committed_folders() if not (folder / store.RESULTS).exists()]


@cache
def stored_study(folder: str) -> store.StudyResults:
    """Return a study with its stored rows."""
    return store.read_intact(RESULTS / folder)


@cache
def merged(*folders: str) -> MergedStudies:
    """Return studies as a report on their folders has them."""
    return merge_studies([stored_study(folder) for folder in folders])


def board() -> MergedStudies:
    """Return the cells of ``BOARD``, ``SMALL`` and of submitted results."""
    return merged(*BOARD, *SMALL, *(folder.name for folder in submitted_folders()))


def all_results() -> MergedStudies:
    """Return the cells of all committed folders but ``OMITTED``."""
    return merged(*(name for name in with_cells() if name not in OMITTED))


@cache
def comparison() -> pd.DataFrame:
    """Return the comparison of the committed results with all published numbers; a number may have several rows."""
    studies = [*all_results().studies, stored_study("active-learning")]  # the latter has no cells
    return merged_check(merge_studies(studies))


def own_numbers() -> pd.DataFrame:
    """Return the comparison with the numbers that the papers print, without those that they quote from each other."""
    return published.counted_once(comparison())


@cache
def _by_entry(*folders: str) -> dict[tuple[str, str], list[Row]]:
    rows = merged(*folders).ok()
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        found[row["method"], row["dataset"]].append(row)
    return found


def cells(folder: str, method: str, dataset: str) -> list[Row]:
    """Return the cells of an entry that ended ok."""
    return _by_entry(folder).get((method, dataset), [])


def board_cells(method: str, dataset: str) -> list[Row]:
    """Return the cells of an entry of the leaderboard that ended ok."""
    return _by_entry(*BOARD).get((method, dataset), [])


def planned(folder: str) -> dict[tuple[str, str], int]:
    """Return the number of planned cells by method and data set."""
    return merged(folder).planned


def methods_of(folder: str) -> list[str]:
    """Return the entries of a study."""
    return list(dict.fromkeys(method for method, _ in planned(folder)))


def datasets_of(folder: str, methods: Sequence[str]) -> list[str]:
    """Return the data sets on which at least half of some entries have all splits."""
    plan = planned(folder)
    datasets = dict.fromkeys(dataset for method, dataset in plan if method in methods)
    full = {d: sum(len(cells(folder, m, d)) == plan.get((m, d)) for m in methods) for d in datasets}
    return [dataset for dataset in datasets if 2 * full[dataset] >= len(methods)]


def convergence(folder: str, method: str, dataset: str) -> ConvergedSplits:
    """Return the counts of converged splits of one entry."""
    return merged(folder).convergence.get((method, dataset), ConvergedSplits())


def rows_of(path: Path) -> tuple[TextRow, ...]:
    """Return the rows of a CSV file as text."""
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def selected(rows: Sequence[TextRow], **wanted: str) -> list[TextRow]:
    """Return the rows with some values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


@cache
def checked(folder: str) -> tuple[TextRow, ...]:
    """Return the rows of check.csv of a folder."""
    return rows_of(RESULTS / folder / "check.csv")


def printed(source: str, method: str, dataset: str, metric: str) -> str:
    """Return a published number with its error as it is printed, or a dash."""
    rows = published.load_published()
    name = dataset.replace("wine-cultivars", "wine")  # as the papers name it
    wanted = {"source": source, "method": method, "dataset": name, "metric": metric}
    found = rows[np.logical_and.reduce([rows[name] == value for name, value in wanted.items()])]
    return published.printed(float(found["mean"].iloc[0]), float(found["stderr"].iloc[0])) if len(found) else "–"
