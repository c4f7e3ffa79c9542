"""Comparison of merged studies with published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.experiments.as_cells import as_cells
from ep_bench.report.merge import MergedStudies
from ep_bench.results import store
from ep_bench.results.spreadsheets import harmless

CELL_COLUMNS = ["method", "dataset", "split", "status", "rmse", "ll"]  # of an experiment
_KEYS = ["source", "table", "method", "dataset", "metric", *published.COLUMN_NAMES, "published_mean"]


def merged_check(merged: MergedStudies, against: Sequence[str] = ()) -> pd.DataFrame:
    """Return the comparison of merged studies with published values, with the columns of ``published.check``.

    Each study is compared with the cells that any of the folders has for its methods and data sets. A row that several
    studies share counts once. A difference that one of them accepts is accepted.
    """
    frames = [_check(merged, study, tag, against) for study, tag in zip(merged.studies, merged.tags, strict=True)]
    found = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    accepted = found["reason"].str.startswith(published.ACCEPTED)
    found = found.iloc[(~accepted).argsort(kind="stable")].drop_duplicates(_KEYS)
    return found.sort_values(_KEYS, kind="stable", ignore_index=True)


def check_table(checks: pd.DataFrame) -> str:
    """Return the content of check.csv."""
    return str(checks[list(published.CHECK_COLUMNS)].map(harmless).to_csv(index=False, lineterminator="\n"))


def _check(merged: MergedStudies, study: store.StudyResults, tag: str, against: Sequence[str]) -> pd.DataFrame:
    """Return the comparison of one study, with the cells and the labels of the report."""
    if study.lock.get("experiment"):
        cells, about = as_cells(study)
        return published.check(pd.DataFrame(cells, columns=CELL_COLUMNS), about, against)
    methods = {label: merged.names.get((tag, label), label) for label in study.lock.get("methods") or ()}
    datasets = {label: merged.dataset_names.get((tag, label), label) for label in study.lock.get("datasets") or ()}
    lock = _relabelled(study.lock, methods, datasets)
    rows = merged.rows
    mine = rows["method"].isin(set(methods.values())) & rows["dataset"].isin(set(datasets.values()))
    return published.check(rows[mine], lock, against)


def _relabelled(lock: dict[str, Any], methods: dict[str, str], datasets: dict[str, str]) -> dict[str, Any]:
    """Return a lock with the labels of the report."""
    places = {"method": methods, "dataset": datasets}
    entries = {
        kind: [
            entry | {key: names.get(entry[key], entry[key]) for key, names in places.items() if key in entry}
            for entry in lock[kind]
        ]
        for kind in ("groups", "accept")
        if lock.get(kind)
    }
    return {
        **lock,
        **entries,
        "methods": {methods[label]: entry for label, entry in (lock.get("methods") or {}).items()},
        "datasets": {datasets[label]: {"name": label} | ref for label, ref in (lock.get("datasets") or {}).items()},
    }
