"""What a user's file contains, and the data entry that a study needs for it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ep_bench.data.columns import Column, entry
from ep_bench.data.leaks import find_leaks
from ep_bench.data.user_csv import Contents, contents, require_file, shortened
from ep_bench.errors import UserError
from ep_bench.types import DatasetRef, Task

FEW = 50  # largest number of categories for which the entry has onehot


class CheckedFile(NamedTuple):
    """Rows of a table of the columns, with its header; the number of repeated rows; the entry; leaks; faults."""

    columns: list[tuple[str, ...]]
    rows: int
    repeated: int
    entry: str
    leaks: list[str]  # see `leaks.find_leaks`
    faults: list[UserError]


def check_file(file: str, target: str, task: Task = "regression") -> CheckedFile:
    """Return what a CSV file contains, and a data entry with choices for its missing values, categories and dates."""
    path = require_file(file)
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", path.name.partition(".")[0]).strip("-") or "mine"
    ref = DatasetRef(name, name, csv=str(path), target=target, task=task)
    found = contents(path, ref)
    missing = {each.name: _imputed(each) for each in found.inputs if np.isnan(each.values).any()}
    if any("missing value" in str(fault) for fault in found.target.faults):
        missing[target] = "drop"
    categories = {each.name: _encoded(each) for each in found.inputs if each.kind == "category"}
    dates = {each.name: "days" for each in found.inputs if each.kind == "date"}
    remaining = contents(path, replace(ref, missing=missing, categories=categories, dates=dates))
    texts = {"csv": file, "target": target}
    columns = [*found.inputs, found.target]
    table = np.column_stack([each.values for each in columns])
    repeated = len(table) - len({row.tobytes() for row in table})
    parts = [f"name: {name}", *(f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in texts.items())]
    parts += ["task: classification"] if task == "classification" else []
    choices = {"missing": missing, "categories": categories, "dates": dates}
    parts += [entry(key, each) for key, each in choices.items() if each]
    entry_text, faults = f"{{{', '.join(parts)}}}", shortened(remaining.faults)
    return CheckedFile(_table(columns), len(table), repeated, entry_text, _leaks(found, task), faults)


def _leaks(found: Contents, task: Task) -> list[str]:
    """Return the leaks of the inputs without missing values."""
    whole = [each for each in found.inputs if not np.isnan(each.values).any()]
    if task == "classification" or not whole or np.isnan(found.y).any():
        return []
    return find_leaks(np.column_stack([each.values for each in whole]), found.y, [each.name for each in whole])


def _imputed(column: Column) -> str:
    return "most_frequent" if column.kind == "category" else "median"


def _encoded(column: Column) -> str:
    """Return the choice for a category; an identifier, which has another value in each row, is no useful input."""
    if len(column.names) <= FEW:
        return "onehot"
    return "drop" if len(column.names) == len(column.values) else "ordinal"


def _table(columns: list[Column]) -> list[tuple[str, ...]]:
    """Return the header and one row per column, the target last."""
    rows: list[tuple[str, ...]] = [("column", "type", "missing", "distinct", "note")]
    for column in columns:
        known = column.values[~np.isnan(column.values)]
        distinct = len(np.unique(known))
        notes = ["target"] if column is columns[-1] else []
        notes += ["constant"] if distinct < 2 else []
        missing = len(column.values) - len(known)
        rows.append((column.name, column.kind, str(missing or ""), str(distinct), ", ".join(notes)))
    return rows
