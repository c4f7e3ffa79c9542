"""``curves.json``: training curves, predictions over one input, chains of samplers, and options chosen by tuning.

Cell files hold the complete curves and are not committed. For each method and data set, ``curves.json`` keeps the
median and the range over the finished splits, at a limited number of epochs. It also keeps the predictions and the
chains of one split, and of all splits the diagnostics of the chains and the chosen options.

Each entry lists its splits and a hash of their cells. An entry is dropped if one of these cells is no longer a finished
cell of the plan. It is still found if its label has changed. It is replaced only if this machine has the cell files of
at least as many splits. Diagnostics of further splits are added.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ep_bench.regular_files import read_json, read_text
from ep_bench.results import store
from ep_bench.results.forms import NUMBER, Each, Keys, ListOf, OrNull, Within, problem
from ep_bench.types import Indices, Record

FILE, FORMAT = "curves.json", 1
POINTS = 48  # epochs kept of a longer curve
DRAWS = 100  # draws kept of a longer chain
DIGITS = 4

_VALUE = (*NUMBER, type(None))
_ENTRY: Mapping[str, Any] = {"method": str, "dataset": str, "splits": ListOf(int), "cells": str}
_SUMMARY = ("epoch", "median", "min", "max")
_FINITE = Within(NUMBER, -sys.float_info.max, sys.float_info.max)
_TRACE = Keys(
    {"epoch": ListOf(Within(int, 1, 2**53)), "median": ListOf(_VALUE)},
    {"min": ListOf(_VALUE), "max": ListOf(_VALUE)},
    [_SUMMARY],
)
_GRID, _TRAIN, _TEST = ("grid", "mean", "std", "truth"), ("x_train", "y_train"), ("x_test", "y_test")
_PANEL = Keys(
    dict.fromkeys((*_GRID, *_TRAIN, *_TEST), ListOf(_FINITE))
    | dict.fromkeys(("grid", "x_train"), ListOf(_FINITE, minimum=1))
    | dict.fromkeys(("std", "truth"), OrNull(ListOf(_FINITE))),
    equal=[_GRID, _TRAIN, _TEST],
)
_CHAIN = Keys({"draws": int, "values": ListOf(ListOf(_VALUE), equal=True)})
_CHOSEN = Each((*_VALUE, str, bool, list, dict))
_SEARCH = Keys({"options": OrNull(_CHOSEN), "trials": int, "failed": int, "reason": str})
_SAMPLED = {"diagnostics": Each(ListOf(_VALUE)), "split": (int, type(None)), "chains": Each(_CHAIN)}
FORM = Keys(
    {
        "format": int,
        "traces": ListOf(Keys({**_ENTRY, "traces": Each(_TRACE)})),
        "panels": ListOf(Keys({**_ENTRY, "panel": _PANEL})),
    },
    {
        "chains": ListOf(Keys({**_ENTRY, **_SAMPLED})),
        "tuned": ListOf(Keys({"method": str, "dataset": str, "cells": Each(_SEARCH)})),
    },
)

Entry = dict[str, Any]
Cells = Mapping[int, str]  # split -> hash of a finished cell
Index = dict[tuple[int, ...], dict[str, Entry]]


class Curves(NamedTuple):
    """The curves of a study, sorted by method and data set.

    All entries have ``method``, ``dataset`` (labels), ``splits`` and ``cells`` (a hash of the cells of these splits).

    ``traces``: ``traces`` maps names to ``epoch`` (from 1), ``median`` and, with several splits, ``min`` and ``max``.
    A value is None if no split has a finite one.

    ``panels``: ``panel`` is the result of ``runner.prediction_grid``.

    ``chains``: ``diagnostics`` maps names to one value per split, or None. ``chains`` are those of the split ``split``,
    the first that has any (None without). It maps names to ``draws``, the original length of a chain, and ``values``,
    at most DRAWS evenly spaced draws per chain.

    ``tuned``: entries have ``method``, ``dataset`` and ``cells`` only, the searches by the hash of the cell. Their
    ``options`` are the chosen ones, None if no trial has a score; ``trials`` and ``failed`` are the numbers of trials
    and of failed ones, and ``reason`` is the most frequent reason of a failure.

    The file has no keys ``chains`` and ``tuned`` if there are none.
    """

    traces: list[Entry]
    panels: list[Entry]
    chains: list[Entry]
    tuned: list[Entry]


class CurveEntries(NamedTuple):
    """The entries of one method and data set."""

    traces: Entry | None = None
    panel: Entry | None = None
    chains: Entry | None = None


def update(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> None:
    """Update ``curves.json`` from the cell files; ``rows`` are the finished rows.

    ``sources`` are folders of other studies that may have the curves of cells without cell files. Raises UserError and
    OSError.
    """
    path, found = folder / FILE, collect(folder, rows, sources)
    text = _text(found)
    before = read_text(path) if path.exists() else None
    if any(found):
        if text != before:
            store.write_atomically(path, text)
    elif before is not None:
        path.unlink()


def collect(folder: Path, rows: Iterable[store.Row], sources: Sequence[Path] = ()) -> Curves:
    """Return the curves of the finished ``rows``, from the cell files or from ``curves.json`` if it has more splits.

    ``curves.json`` is that of the folder, and then those of ``sources``. Raises UserError if it cannot be read.
    """
    on_disk = store.stamps(folder).keys()
    files = [read(path) for path in (folder, *sources)]
    known = [index(entry for one in files for entry in one[place]) for place in range(len(CurveEntries._fields))]
    found, rows = Curves([], [], [], []), list(rows)
    for (method, dataset), cells in sorted(finished(rows).items()):
        old = CurveEntries(*(find(entries, cells) for entries in known))
        local = {split: key for split, key in sorted(cells.items()) if key in on_disk}
        new = CurveEntries() if _is_up_to_date(local, old) else _read_cells(folder, local)
        for entry, kind in zip(_better(old, new, cells), found, strict=False):
            if entry is not None:
                kind.append({**entry, "method": method, "dataset": dataset})
    found.tuned.extend(_searches(folder, rows, files, on_disk))
    return found


def _searches(
    folder: Path, rows: Iterable[store.Row], files: Iterable[Curves], on_disk: AbstractSet[str]
) -> Iterator[Entry]:
    """Yield the searches of the finished tuned cells by method and data set: the stored ones, else from cell files."""
    known = {key: search for one in files for entry in one.tuned for key, search in entry["cells"].items()}
    tuned = [row for row in rows if row.get("tune_seconds") is not None]
    for (method, dataset), cells in sorted(finished(tuned).items()):
        read_now = {split: key for split, key in cells.items() if key in on_disk and key not in known}
        new = {
            read_now[split]: _search(record.notes["tune"])
            for split, record in _records(folder, read_now)
            if record.notes.get("tune")
        }
        found = {key: (known | new)[key] for _, key in sorted(cells.items()) if key in known or key in new}
        if found:
            yield {"method": method, "dataset": dataset, "cells": found}


def _search(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options of a search, and the numbers of its trials and of the failed ones."""
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
            entry = by_cells.get(_hash({split: cells[split] for split in splits}))
            if entry is not None:
                return entry
    return None


def read(folder: Path) -> Curves:
    """Return the content of ``curves.json``, empty if there is no file. Raises UserError if it cannot be read."""
    path = folder / FILE
    if not path.exists():
        return Curves([], [], [], [])
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise store.unreadable(path, error) from error
    store.refuse_newer(found.get("format") if isinstance(found, dict) else None, path, FORMAT)
    if different := problem(found, FORM) or next(filter(None, map(_misfit, found.get("chains", ()))), ""):
        raise store.unreadable(path, ValueError(different))
    kinds = ("traces", "panels", "chains")
    kept = {kind: [entry for entry in found.get(kind, []) if entry["splits"]] for kind in kinds}
    return Curves(**kept, tuned=found.get("tuned", []))


def _misfit(entry: Entry) -> str:
    """Return what in an entry of chains does not fit its splits, empty if everything does."""
    splits, split = entry["splits"], entry["split"]
    if (split is not None or entry["chains"]) and split not in splits:
        return f"the chains are those of split {split}, which is not among {splits}"
    lengths = {name: len(values) for name, values in entry["diagnostics"].items() if len(values) != len(splits)}
    return next((f"diagnostics.{name} has {n} values for {len(splits)} splits" for name, n in lengths.items()), "")


def _text(found: Curves) -> str:
    """Return the text of the file, one line per entry, so that differences are easy to read."""
    parts = [f'"format": {FORMAT}']
    for kind, entries in zip(Curves._fields, found, strict=True):
        if kind in {"chains", "tuned"} and not entries:
            continue
        lines = [json.dumps(entry, sort_keys=True, separators=(",", ":")) for entry in entries]
        parts.append(f'"{kind}": [' + "".join(f"\n{line}," for line in lines).rstrip(",") + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _hash(cells: Cells) -> str:
    return store.factor_hash({str(split): key for split, key in cells.items()})


# From cell files


def _is_up_to_date(local: Cells, known: CurveEntries) -> bool:
    """Return whether the known entries already include all cell files of this machine."""
    by_split = [entry for entry in (known.traces, known.chains) if entry is not None]
    if by_split:
        return all(local.keys() <= set(entry["splits"]) for entry in by_split)
    return not local or (known.panel is not None and known.panel["splits"][0] <= min(local))


def _better(old: CurveEntries, new: CurveEntries, cells: Cells) -> CurveEntries:
    """Return the training curves of more splits (in a tie the new ones), the panel of the earlier split, all chains."""
    panel = new.panel
    if old.panel is not None and (panel is None or panel["splits"] > old.panel["splits"]):
        panel = old.panel
    return CurveEntries(_larger(old.traces, new.traces), panel, _joined(old.chains, new.chains, cells))


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
        **_splits_used(parts, cells),
        "diagnostics": {name: [part.get(name) for part in parts.values()] for name in names},
        "split": first["split"],
        "chains": first["chains"],
    }


def _read_cells(folder: Path, cells: Cells) -> CurveEntries:
    """Return the curves and diagnostics of cells in ascending order of splits, and the predictions of the first."""
    panel: Entry | None = None
    traced: dict[int, dict[str, list[float]]] = {}
    sampled: dict[int, dict[str, Any]] = {}
    for split, record in _records(folder, cells):
        curve = record.notes.get("curve")
        if curve and panel is None:
            panel = {**_splits_used([split], cells), "panel": curve}
        notes = {key: record.notes[key] for key in ("chains", "diagnostics") if record.notes.get(key)}
        if not record.trace and not notes:
            if "finished" not in record.provenance:
                continue  # taken over from a table, which has no curves
            break  # a method keeps curves of every fit or of none
        if record.trace:
            traced[split] = record.trace
        if notes:
            sampled[split] = notes
    traces = {**_splits_used(traced, cells), "traces": _summaries(list(traced.values()))} if traced else None
    chains = {**_splits_used(sampled, cells), **_sampled(sampled)} if sampled else None
    return CurveEntries(traces, panel, chains)


def _splits_used(splits: Iterable[int], cells: Cells) -> Entry:
    used = {split: cells[split] for split in splits}
    return {"splits": list(used), "cells": _hash(used)}


def _sampled(notes: Mapping[int, Mapping[str, Any]]) -> Entry:
    """Return the diagnostics of all splits, and the chains of the first that has any, thinned to DRAWS."""
    numbers = [note.get("diagnostics", {}) for note in notes.values()]
    names = sorted({name for known in numbers for name in known})
    split = next((split for split, note in notes.items() if "chains" in note), None)
    chains = {} if split is None else notes[split]["chains"]
    return {
        "diagnostics": {name: [known.get(name) for known in numbers] for name in names},
        "split": split,
        "chains": {
            name: {"draws": kept["draws"], "values": [_thin_chain(values) for values in kept["values"]]}
            for name, kept in chains.items()
        },
    }


def _thin_chain(values: Sequence[Any]) -> list[Any]:
    return [values[i] for i in evenly(len(values), DRAWS).tolist()]


def _records(folder: Path, cells: Cells) -> Iterator[tuple[int, Record]]:
    for split, key in cells.items():
        record = store.read_record(folder / store.CELLS / f"{key}.json")
        if record is not None and record.row["status"] == "ok":
            yield split, record


def _summaries(found: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    names = sorted({name for trace in found for name, values in trace.items() if values})
    return {name: _summary([trace[name] for trace in found if trace.get(name)]) for name in names}


def _summary(curves: Sequence[Sequence[float]]) -> dict[str, list[Any]]:
    """Return the median and the range of curves; each epoch uses the curves that are long enough."""
    length = max(len(curve) for curve in curves)
    table = np.full((len(curves), length), math.nan)
    for row, curve in zip(table, curves, strict=True):
        row[: len(curve)] = curve
    table[~np.isfinite(table)] = math.nan
    indices = np.unique([0, length - 1]) if np.ptp(table) == 0.0 else thinned(length)
    table = table[:, indices]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an epoch without a finite value gives nan
        kept = {"median": np.nanmedian(table, axis=0)}
        if len(curves) > 1:
            kept |= {"min": np.nanmin(table, axis=0), "max": np.nanmax(table, axis=0)}
    return {"epoch": (indices + 1).tolist(), **{name: _short(values) for name, values in kept.items()}}


def evenly(length: int, points: int) -> Indices:
    """Return at most ``points`` evenly spaced indices of ``length`` values, including the first and the last."""
    return np.asarray(np.round(np.linspace(0, length - 1, min(length, points))), dtype=np.int64)


def thinned(length: int, points: int = POINTS) -> Indices:
    """Return at most ``points`` indices of a curve, half of them evenly spaced and half geometrically.

    The first and the last are included. The first epochs change most and remain visible on a logarithmic axis.
    """
    if length <= points:
        return np.arange(length, dtype=np.int64)
    half = points // 2
    indices = np.concatenate([np.linspace(0, length - 1, half), np.geomspace(1, length, half) - 1])
    return np.unique(np.round(indices).astype(np.int64))


def _short(values: Any) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values.tolist()]
