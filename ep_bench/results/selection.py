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
    """Return the alternatives of each key of ``key=glob`` patterns, or of one. Raises UserError for an invalid one."""
    wanted: dict[str, list[str]] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        key, sign, glob = pattern.partition("=")
        if not sign:
            allowed = "KEY=GLOB; KEY: method, dataset or split"
            raise UserError("invalid selection", where="--select", found=pattern, allowed=allowed)
        if key not in KEYS:
            raise UserError("unknown key", where="--select", found=pattern, allowed=KEYS, name=key)
        wanted.setdefault(key, []).append(glob)
    return wanted


def matches(cell: Mapping[str, Any], wanted: Wanted) -> bool:
    """Return whether a cell with ``method``, ``dataset`` and ``split`` matches a selection."""
    return all(any(_matches(str(cell[key]), glob) for glob in globs) for key, globs in wanted.items())


def _matches(label: str, glob: str) -> bool:
    """Return whether a label matches; a label with brackets matches itself, although they have a meaning in a glob."""
    return label == glob or fnmatch.fnmatchcase(label, glob)


def require_matches(wanted: Wanted, cells: Iterable[Mapping[str, Any]]) -> None:
    """Raise UserError if there is no cell that matches all keys, or none that matches one of the patterns.

    The error has the values of the first key with a pattern that matches none.
    """
    cells = list(cells)
    if not cells:
        raise UserError("there are no cells", where="--select")
    for key, globs in wanted.items():
        values = list(dict.fromkeys(str(cell[key]) for cell in cells))
        if vain := [glob for glob in globs if not any(_matches(value, glob) for value in values)]:
            found = " ".join(f"{key}={glob}" for glob in vain)
            hint = "; several values need one --select each" * any("," in glob for glob in vain)
            raise UserError(f"no cell matches{hint}", where="--select", found=found, allowed=values, name=vain[0])
    if not any(matches(cell, wanted) for cell in cells):
        found = " ".join(f"{key}={glob}" for key, globs in wanted.items() for glob in globs)
        raise UserError("no cell matches all keys", where="--select", found=found)


def restricted(study: StudyResults, wanted: Wanted) -> StudyResults:
    """Return the results of a study as if it had planned the matching cells only."""
    lock = study.lock
    groups = []
    for group in lock.get("groups", ()):
        cells = {split: key for split, key in group["cells"].items() if matches({**group, "split": split}, wanted)}
        groups += [{**group, "cells": cells}] if cells else []
    methods, datasets = ({group[key] for group in groups} for key in ("method", "dataset"))
    dropped = set(lock.get("methods", {})) - methods
    places = {key: globs for key, globs in wanted.items() if key != "split"}
    smaller = {
        "groups": groups,
        "methods": {name: one for name, one in lock.get("methods", {}).items() if name in methods},
        "datasets": {name: one for name, one in lock.get("datasets", {}).items() if name in datasets},
        "compare": {what: label for what, label in lock.get("compare", {}).items() if label in methods},
        "ranks": [group for group in lock.get("ranks", ()) if not dropped & set(group["methods"])],
        "left_out": [one for one in lock.get("left_out", ()) if matches(one, places)],
    }
    return replace(study, lock={**lock, **smaller}, rows=[row for row in study.rows if matches(row, wanted)])
