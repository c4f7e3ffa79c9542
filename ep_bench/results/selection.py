"""Selection of cells by ``key=glob`` patterns, the option ``--select``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ep_bench.errors import UserError
from ep_bench.results.store import StudyResults

KEYS = ("method", "dataset", "split")
Wanted = Mapping[str, Sequence[str]]  # the globs of each key, of which one has to match


def selection(patterns: Iterable[str]) -> dict[str, list[str]]:
    """Return the alternatives of each key of ``key=glob`` patterns. Raises UserError for an invalid pattern."""
    wanted: dict[str, list[str]] = {}
    for pattern in patterns:
        key, sign, glob = pattern.partition("=")
        if not sign or key not in KEYS:
            raise UserError(
                "invalid selection", where="--select", found=pattern, allowed="KEY=GLOB; KEY: method, dataset or split"
            )
        wanted.setdefault(key, []).append(glob)
    return wanted


def matches(cell: Mapping[str, Any], wanted: Wanted) -> bool:
    """Return whether a cell with ``method``, ``dataset`` and ``split`` matches a selection."""
    return all(any(fnmatch.fnmatchcase(str(cell[key]), glob) for glob in globs) for key, globs in wanted.items())


def no_match(wanted: Wanted, cells: Iterable[Mapping[str, Any]]) -> UserError:
    """Return the error of a selection without a matching cell, with the values of the first key that none matches."""
    cells = list(cells)
    for key, globs in wanted.items():
        if not any(matches(cell, {key: globs}) for cell in cells):
            values = list(dict.fromkeys(str(cell[key]) for cell in cells))
            found = " ".join(f"{key}={glob}" for glob in globs)
            return UserError("no cell matches", where="--select", found=found, allowed=values, name=globs[0])
    found = " ".join(f"{key}={glob}" for key, globs in wanted.items() for glob in globs)
    return UserError("no cell matches all keys", where="--select", found=found)


def restricted(study: StudyResults, wanted: Wanted) -> StudyResults:
    """Return the results of a study as if it had planned the matching cells only."""
    groups = []
    for group in study.lock.get("groups", ()):
        cells = {split: key for split, key in group["cells"].items() if matches({**group, "split": split}, wanted)}
        groups += [{**group, "cells": cells}] if cells else []
    kept = {key: {group[key] for group in groups} for key in ("method", "dataset")}
    lock = {
        **study.lock,
        "groups": groups,
        "methods": {name: one for name, one in study.lock.get("methods", {}).items() if name in kept["method"]},
        "datasets": {name: one for name, one in study.lock.get("datasets", {}).items() if name in kept["dataset"]},
        "compare": {what: label for what, label in study.lock.get("compare", {}).items() if label in kept["method"]},
        "left_out": [
            one for one in study.lock.get("left_out", ()) if all(one[key] in kept[key] for key in ("method", "dataset"))
        ],
    }
    return replace(study, lock=lock, rows=[row for row in study.rows if matches(row, wanted)])
