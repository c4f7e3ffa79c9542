"""A report of selected cells: studies as if they had planned no others (``report --select``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ep_bench.report import merge
from ep_bench.report.merge import MergedStudies
from ep_bench.results import store
from ep_bench.results.selection import labelled_cells, no_match, restricted, selection

STATED = ("converged", "r_hat", "by_median")  # columns of a row on convergence


def merged_cells(folders: Sequence[Path], select: Sequence[str]) -> MergedStudies:
    """Return the cells of all folders that match ``key=glob`` patterns as one table.

    Raises UserError if a folder has no results, for an invalid pattern, or if no cell matches.
    """
    wanted = selection(select)
    studies = merge.read(folders)
    whole = [replace(study, rows=_with_statements(study)) for study in studies]
    kept = [study for study in (restricted(study, wanted) for study in whole) if study.lock.get("groups")]
    if not kept:
        raise no_match(wanted, (cell for study in studies for cell in labelled_cells(study.lock)))
    found = merge.merge_studies(kept)
    found.notes.append(f"Only the cells that match {' '.join(select)}.")
    if without := [study.name for study in studies if not study.lock.get("groups")]:
        found.notes.append(f"Without cells, and not shown: {', '.join(without)}.")
    return found


def _with_statements(study: store.StudyResults) -> list[store.Row]:
    """Return the rows with what the curves state on convergence, which part of the splits alone may not find."""
    judged = merge.merge_studies([study]).judged_rows
    found = {row["cell"]: {name: row[name] for name in STATED} for row in judged.to_dict("records")}
    return [
        row | {name: value for name, value in found.get(row["cell"], {}).items() if not pd.isna(value)}
        for row in study.rows
    ]
