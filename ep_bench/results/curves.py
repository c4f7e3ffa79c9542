"""``curves.json``: training curves, chains of samplers, chosen options.

Cell files hold the complete curves and are not committed. For each method and data set, ``curves.json`` keeps the
median and the range over the finished splits, at a limited number of epochs. It also keeps the
chains of one split, and of all splits the diagnostics of the chains and the chosen options.

Each entry lists its splits and a hash of their cells. An entry is dropped if one of these cells is no longer a finished
cell of the plan. It is still found if its label has changed. It is replaced only if this machine has the cell files of
at least as many splits. Diagnostics of further splits are added.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench.results import store
from ep_bench.results.cell_curves import Cells, CurveEntries, Entry, hash_of, read_cells, records, splits_used
from ep_bench.types import Record

FILE, FORMAT = "curves.json", 1

Index = dict[tuple[int, ...], dict[str, Entry]]


class Curves(NamedTuple):
    """The curves of a study, sorted by method and data set.

    All entries have ``method``, ``dataset`` (labels), ``splits`` and ``cells`` (a hash of the cells of these splits).

    ``traces``: ``traces`` maps names to ``epoch`` (from 1), ``median`` and, with several splits, ``min`` and ``max``.
    A value is None if no split has a finite one.

    ``chains``: ``diagnostics`` maps names to one value per split, or None. ``chains`` are those of the split ``split``,
    the first that has any (None without). It maps names to ``draws``, the original length of a chain, and ``values``,
    at most DRAWS evenly spaced draws per chain.

    ``tuned``: entries have ``method``, ``dataset`` and ``cells`` only, the searches by the hash of the cell. Their
    ``options`` are the chosen ones, None if no trial has a score; ``trials`` and ``failed`` are the numbers of trials
    and of failed ones, and ``reason`` is the most frequent reason of a failure.

    ``pits``: entries have ``method``, ``dataset`` and ``cells`` only, the numbers of test points with a PIT value in
    each of ten equal bins, by the hash of the cell.

    The file has no keys ``chains``, ``tuned`` and ``pits`` if there are none.
    """

    traces: list[Entry]
    chains: list[Entry]
    tuned: list[Entry]
    pits: list[Entry]


def update(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> None:
    """Update ``curves.json`` from the cell files; ``rows`` are the finished rows.

    ``sources`` are folders of other studies that may have the curves of cells without cell files. Raises UserError and
    OSError.
    """
    path, found = folder / FILE, collect(folder, rows, sources)
    text = _text(found)
    if any(found):
        store.write_if_changed(path, text)
    else:
        path.unlink(missing_ok=True)


def collect(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> Curves:
    """Return the curves of the finished ``rows``, from the cell files or from ``curves.json`` if it has more splits.

    ``curves.json`` is that of the folder, and then those of ``sources``. Raises UserError if it cannot be read.
    """
    on_disk = store.stamps(folder).keys()
    files = [read(path) for path in (folder, *sources)]
    known = [index(entry for one in files for entry in one[place]) for place in range(len(CurveEntries._fields))]
    found, rows = _empty(), list(rows)
    for (method, dataset), cells in sorted(finished(rows).items()):
        old = CurveEntries(*(find(entries, cells) for entries in known))
        local = {split: key for split, key in sorted(cells.items()) if key in on_disk}
        new = CurveEntries() if _is_up_to_date(local, old) else read_cells(folder, local)
        for entry, kind in zip(_better(old, new, cells), found, strict=False):
            if entry is not None:
                kind.append({**entry, "method": method, "dataset": dataset})
    tuned = [row for row in rows if row.get("tune_seconds") is not None]
    searches, pits = (
        {key: one for file in files for entry in getattr(file, kind) for key, one in entry["cells"].items()}
        for kind in ("tuned", "pits")
    )
    found.tuned.extend(_by_cell(folder, tuned, searches, on_disk, _search))
    found.pits.extend(_by_cell(folder, rows, pits, on_disk, lambda record: record.notes.get("pit")))
    return found


def _by_cell(
    folder: Path,
    rows: Iterable[store.Row],
    known: Mapping[str, Any],
    on_disk: AbstractSet[str],
    value: Callable[[Record], Any],
) -> Iterator[Entry]:
    """Yield a value of each finished cell that has it, by method and data set: the known ones, else from cell files."""
    for (method, dataset), cells in sorted(finished(rows).items()):
        read_now = {split: key for split, key in cells.items() if key in on_disk and key not in known}
        new = {read_now[split]: value(record) for split, record in records(folder, read_now)}
        found = {key: one for _, key in sorted(cells.items()) if (one := known.get(key) or new.get(key))}
        if found:
            yield {"method": method, "dataset": dataset, "cells": found}


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
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise store.unreadable(path, error) from error
    return Curves(*(found.get(kind, []) for kind in Curves._fields))


def _empty() -> Curves:
    return Curves([], [], [], [])


def _text(found: Curves) -> str:
    """Return the text of the file, one line per entry, so that differences are easy to read."""
    parts = [f'"format": {FORMAT}']
    for kind, entries in zip(Curves._fields, found, strict=True):
        if kind in {"chains", "tuned", "pits"} and not entries:
            continue
        lines = [json.dumps(entry, sort_keys=True, separators=(",", ":")) for entry in entries]
        parts.append(f'"{kind}": [' + "".join(f"\n{line}," for line in lines).rstrip(",") + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _is_up_to_date(local: Cells, known: CurveEntries) -> bool:
    """Return whether the known entries already include all cell files of this machine."""
    by_split = [entry for entry in (known.traces, known.chains) if entry is not None]
    return all(local.keys() <= set(entry["splits"]) for entry in by_split) if by_split else not local


def _better(old: CurveEntries, new: CurveEntries, cells: Cells) -> CurveEntries:
    """Return the training curves of more splits (in a tie the new ones), and the chains of all splits."""
    return CurveEntries(_larger(old.traces, new.traces), _joined(old.chains, new.chains, cells))


def _larger(old: Entry | None, new: Entry | None) -> Entry | None:
    if old is None or new is None:
        return new if old is None else old
    return old if len(new["splits"]) < len(old["splits"]) else new


def _joined(old: Entry | None, new: Entry | None, cells: Cells) -> Entry | None:
    """Return the diagnostics of the splits of both entries; of a split that both have, the new ones."""
    if old is None or new is None:
        return new if old is None else old
    parts = {
        split: {name: values[place] for name, values in entry["diagnostics"].items()}
        for entry in (old, new)
        for place, split in enumerate(entry["splits"])
    }
    parts = dict(sorted(parts.items()))
    names = sorted({name for part in parts.values() for name in part})
    first = min((one for one in (new, old) if one["split"] is not None), key=lambda one: one["split"], default=new)
    return {
        **splits_used(parts, cells),
        "diagnostics": {name: [part.get(name) for part in parts.values()] for name in names},
        "split": first["split"],
        "chains": first["chains"],
    }
