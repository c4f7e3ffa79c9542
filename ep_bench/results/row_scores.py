"""Scores of single test rows in a file that is committed, of studies that compare their methods row by row.

Cell files keep them of every cell (note ``rows``) and stay on their machine. A study with ``compare: {rows: LABEL}``
has ``rows.json`` beside results.csv too: by a cell's hash the log density and the absolute error of each test row (of
classes the log probability, and 1 where the class is wrong), in the order of the split, with so many digits as a mean
over rows needs. A cell that is no longer a finished one of the plan is dropped; one whose cell file is not here keeps
its entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ep_bench.results import store
from ep_bench.types import Array

FILE, FORMAT = "rows.json", 1
NOTE = "rows"  # of a record
SCORES = ("ll", "ae", "error")  # log density (nats), absolute error (unit of the target), of classes 1 where wrong
DIGITS = 5
MOST = 5000  # test rows of a cell; with more, none are kept

Scores = dict[str, list[float]]


def note(scores: Mapping[str, Array]) -> dict[str, Scores]:
    """Return what a record keeps of the scores (N,) of test rows, by name: nothing of too many rows."""
    kept = {name: values for name, values in scores.items() if len(values) <= MOST}
    shortened = {name: [float(f"{value:.{DIGITS}g}") for value in values.tolist()] for name, values in kept.items()}
    return {NOTE: shortened} if shortened else {}


def update(folder: Path, lock: Mapping[str, Any], rows: Iterable[store.Row]) -> None:
    """Bring rows.json up to the cell files and the finished ``rows`` of a plan that asks for it.

    Raises UserError where the file cannot be read, OSError where it cannot be written.
    """
    if not (lock.get("compare") or {}).get("rows"):
        return
    before, found = read(folder), {}
    for row in rows:
        if row["status"] == "ok":
            scores = before.get(row["cell"]) or _of_cell(folder, row["cell"])
            if scores:
                found[row["cell"]] = scores
    if found != before:
        store.write_atomically(folder / FILE, _text(found))


def read(folder: Path) -> dict[str, Scores]:
    """Return what rows.json holds by hash, nothing where there is none. Raises UserError where it cannot be read."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version, cells = found["format"], {str(key): dict(scores) for key, scores in found["cells"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise store.unreadable(path, error) from error
    store.refuse_newer(version, path, FORMAT)
    return cells


def _of_cell(folder: Path, key: str) -> Scores:
    record = store.read_record(folder / store.CELLS / f"{key}.json")
    return {} if record is None else dict(record.notes.get(NOTE, {}))


def _text(found: Mapping[str, Scores]) -> str:
    """Return the file's text: one line a cell, so that a change shows where it is."""
    lines = [f'"{key}": {json.dumps(found[key], sort_keys=True, separators=(",", ":"))}' for key in sorted(found)]
    return f'{{"format": {FORMAT},\n"cells": {{\n' + ",\n".join(lines) + "\n}}\n"
