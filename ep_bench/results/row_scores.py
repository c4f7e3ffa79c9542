"""``rows.json``: scores of single test points, for studies that compare methods point by point.

Cell files keep these scores in the note ``rows`` and are not committed. A study with ``compare: {rows: LABEL}`` also
has ``rows.json`` next to ``results.csv``. It maps the hash of a cell to the log density and the absolute error of each
test point, in the order of the split. For classification it holds the log probability, and 1 for a wrong class. The
number of digits is sufficient for means over test points.

A file of more than 2^20 bytes is compressed and has the name ``rows.json.xz``.

An entry is dropped if its cell is no longer a finished cell of the plan. It is kept if only the cell file is missing.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ep_bench.results import store
from ep_bench.types import Array

FILE, FORMAT = "rows.json", 1
COMPRESSED, LARGE = f"{FILE}.xz", 2**20  # its name, and the number of bytes, if it is larger than that
NOTE = "rows"  # name of the note in a record
DIGITS = 5
MAX_POINTS = 5000  # largest number of test points of a cell whose scores are kept

Scores = dict[str, list[float]]


def note(scores: Mapping[str, Array]) -> dict[str, Scores]:
    """Return the note of a record from scores (N,) by name; scores of more than MAX_POINTS test points are omitted."""
    kept = {name: values for name, values in scores.items() if len(values) <= MAX_POINTS}
    shortened = {name: [float(f"{value:.{DIGITS}g}") for value in values.tolist()] for name, values in kept.items()}
    return {NOTE: shortened} if shortened else {}


def update(folder: Path, lock: Mapping[str, Any], rows: Iterable[store.Row]) -> None:
    """Update ``rows.json`` from the cell files, if the plan in ``lock`` asks for it; ``rows`` are the finished rows.

    Raises UserError if a file cannot be read and OSError if it cannot be written.
    """
    if not (lock.get("compare") or {}).get("rows"):
        return
    before, found = read(folder), {}
    for row in rows:
        if row["status"] == "ok":
            key = row["cell"]
            if scores := before.get(key) or _of_cell(folder, key):
                found[key] = scores
    if found != before:
        _write(folder, _text(found))


def read(folder: Path) -> dict[str, Scores]:
    """Return the content of ``rows.json`` by hash, empty if there is no file. Raises UserError if it cannot be read."""
    compressed = folder / COMPRESSED
    path = compressed if compressed.exists() else folder / FILE
    if not path.exists():
        return {}
    try:
        content = path.read_bytes()
        found = json.loads(lzma.decompress(content) if path.name == COMPRESSED else content)
        store.refuse_newer(found["format"], path, FORMAT)
        return dict(found["cells"])
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise store.unreadable(path, error) from error





def _write(folder: Path, text: str) -> None:
    is_large = len(text) > LARGE
    if is_large:
        store.write_atomically(folder / COMPRESSED, lzma.compress(text.encode("utf-8"), preset=9))
    else:
        store.write_atomically(folder / FILE, text)
    (folder / (FILE if is_large else COMPRESSED)).unlink(missing_ok=True)


def _of_cell(folder: Path, key: str) -> Scores:
    record = store.read_record(folder / store.CELLS / f"{key}.json")
    return {} if record is None else dict(record.notes.get(NOTE, {}))


def _text(found: Mapping[str, Scores]) -> str:
    """Return the text of the file, one line per cell, so that differences are easy to read."""
    lines = [f'"{key}": {json.dumps(found[key], sort_keys=True, separators=(",", ":"))}' for key in sorted(found)]
    return f'{{"format": {FORMAT},\n"cells": {{\n' + ",\n".join(lines) + "\n}}\n"
