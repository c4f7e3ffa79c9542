"""``curves.json``: training curves, diagnostics of samplers, chosen options, histograms of the PIT.

Cell files hold the complete curves and are not committed. For each method and data set, ``curves.json`` keeps the
median and the range over the finished splits, at a limited number of epochs. Of each finished cell it keeps the
diagnostics of the chains, the chosen options and the histogram of the PIT.

A training curve has its splits and a hash of their cells. It is dropped if one of these cells is no longer a finished
cell of the plan. It is still found if its label has changed. It is replaced only if this machine has the cell files of
at least as many splits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench.results import store
from ep_bench.results.cell_curves import Cells, Entry, hash_of, read_cells, records
from ep_bench.types import Record

FILE, FORMAT = "curves.json", 1

Index = dict[tuple[int, ...], dict[str, Entry]]


class Curves(NamedTuple):
    """The curves of a study, and what is known of its cells by their hash.

    ``traces``: entries with ``method``, ``dataset`` (labels), ``splits``, ``cells`` (a hash of the cells of these
    splits) and ``traces``. These map names to ``epoch`` (from 1), ``median`` and, with several splits, ``min`` and
    ``max``. A value is None if no split has a finite one.

    ``diagnostics``: numbers by name, or None.

    ``tuned``: ``options`` are the chosen ones, None if no trial has a score; ``trials`` and ``failed`` are the numbers
    of trials and of failed ones, and ``reason`` is the most frequent reason of a failure.

    ``pits``: the numbers of test points with a PIT value in each of ten equal bins.

    In the file, the last three are lists of entries with ``method``, ``dataset`` and ``cells``.
    """

    traces: list[Entry]
    diagnostics: dict[str, dict[str, float | None]]
    tuned: dict[str, dict[str, Any]]
    pits: dict[str, list[int]]


def update(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> None:
    """Update ``curves.json`` from the cell files; ``rows`` are the finished rows.

    ``sources`` are folders of other studies that may have the curves of cells without cell files. Raises UserError and
    OSError.
    """
    path, rows = folder / FILE, list(rows)
    found = collect(folder, rows, sources)
    if any(found):
        store.write_if_changed(path, _text(found, finished(rows)))
    else:
        path.unlink(missing_ok=True)


def collect(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> Curves:
    """Return the curves of the finished ``rows``, from the cell files or from ``curves.json`` if it has more splits.

    ``curves.json`` is that of the folder, and then those of ``sources``. Raises UserError if it cannot be read.
    """
    on_disk = store.stamps(folder).keys()
    known = joined([read(path) for path in (folder, *sources)])
    entries, found = index(known.traces), _empty()
    for (method, dataset), cells in sorted(finished(rows).items()):
        old = find(entries, cells)
        local = {split: key for split, key in sorted(cells.items()) if key in on_disk}
        is_complete = local.keys() <= set(old["splits"] if old else ())  # the known entry has all files of this machine
        new = None if is_complete else read_cells(folder, local)
        if (entry := _larger(old, new)) is not None:
            found.traces.append({**entry, "method": method, "dataset": dataset})
        for kind in _OF_CELL:
            kept = getattr(known, kind)
            getattr(found, kind).update({key: kept[key] for key in cells.values() if key in kept})
        unread = {split: key for split, key in local.items() if not any(key in kept for kept in found[1:])}
        for split, record in records(folder, unread):
            for kind, value in _OF_CELL.items():
                if one := value(record):
                    getattr(found, kind)[cells[split]] = one
    return found


def joined(found: Sequence[Curves]) -> Curves:
    """Return the curves of several folders; of a cell that several have, those of the first."""
    whole = _empty()
    for one in reversed(found):
        whole.traces[:0] = one.traces
        for kind in _OF_CELL:
            getattr(whole, kind).update(getattr(one, kind))
    return whole


def _search(record: Record) -> dict[str, Any] | None:
    """Return the chosen options of a cell's search and the numbers of its trials and of failed ones, None without."""
    notes = record.notes.get("tune")
    if not notes:
        return None
    reasons = Counter(str(trial["reason"]) for trial in notes["trials"] if trial["score"] is None)
    return {
        "options": None if notes["best"] is None else notes["trials"][notes["best"]]["options"],
        "trials": len(notes["trials"]),
        "failed": reasons.total(),
        "reason": reasons.most_common(1)[0][0] if reasons else "",
    }


_OF_CELL: dict[str, Callable[[Record], Any]] = {  # in the order of ``Curves``
    "diagnostics": lambda record: record.notes.get("diagnostics"),
    "tuned": _search,
    "pits": lambda record: record.notes.get("pit"),
}


def finished(rows: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], dict[int, str]]:
    """Return the hashes of the cells with status ok, by (method, data set) and split."""
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        if row["status"] == "ok":
            cells.setdefault((str(row["method"]), str(row["dataset"])), {})[int(row["split"])] = str(row["cell"])
    return cells


def index(entries: Iterable[Entry]) -> Index:
    """Return entries by their splits and the hash of their cells, those with the most splits first."""
    found: Index = {}
    for entry in sorted(entries, key=lambda entry: (-len(entry["splits"]), entry["splits"])):
        found.setdefault(tuple(entry["splits"]), {}).setdefault(entry["cells"], entry)
    return found


def find(entries: Index, cells: Cells) -> Entry | None:
    """Return the entry with the most splits whose cells are all among these; None if there is none."""
    for splits, by_cells in entries.items():
        if all(split in cells for split in splits):
            entry = by_cells.get(hash_of({split: cells[split] for split in splits}))
            if entry is not None:
                return entry
    return None


def read(folder: Path) -> Curves:
    """Return the content of ``curves.json``, empty if there is no file. Raises UserError if it cannot be read."""
    path = folder / FILE
    if not path.exists():
        return _empty()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        store.refuse_newer(found["format"], path, FORMAT)
        of_cell = {kind: [entry["cells"].items() for entry in found.get(kind, ())] for kind in _OF_CELL}
        return Curves(found["traces"], **{kind: dict(chain(*entries)) for kind, entries in of_cell.items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise store.unreadable(path, error) from error


def _empty() -> Curves:
    return Curves([], {}, {}, {})


def _text(found: Curves, cells: Mapping[tuple[str, str], Cells]) -> str:
    """Return the text of the file, one line per entry, so that differences are easy to read."""
    parts = [f'"format": {FORMAT}', _listed("traces", found.traces)]
    for kind in _OF_CELL:
        kept, entries = getattr(found, kind), []
        for (method, dataset), keys in sorted(cells.items()):
            if own := {key: kept[key] for _, key in sorted(keys.items()) if key in kept}:
                entries.append({"method": method, "dataset": dataset, "cells": own})
        parts += [_listed(kind, entries)] if entries else []
    return "{" + ",\n".join(parts) + "}\n"


def _listed(kind: str, entries: Iterable[Entry]) -> str:
    lines = [json.dumps(entry, sort_keys=True, separators=(",", ":")) for entry in entries]
    return f'"{kind}": [' + "".join(f"\n{line}," for line in lines).rstrip(",") + "\n]"





def _larger(old: Entry | None, new: Entry | None) -> Entry | None:
    """Return the training curves of more splits, in a tie the new ones."""
    if old is None or new is None:
        return new if old is None else old
    return old if len(new["splits"]) < len(old["splits"]) else new
