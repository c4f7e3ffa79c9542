"""Training curves and chains of one method and data set, from its cell files.

They are entries of ``curves.json`` (``results.curves``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ep_bench.results import store
from ep_bench.types import Indices, Record

POINTS = 48  # epochs kept of a longer curve
DRAWS = 100  # draws kept of a longer chain
DIGITS = 4  # significant, of training curves

Entry = dict[str, Any]
Cells = Mapping[int, str]  # split -> hash of a finished cell


class CurveEntries(NamedTuple):
    """The entries of one method and data set."""

    traces: Entry | None = None
    chains: Entry | None = None


def hash_of(cells: Cells) -> str:
    """Return the hash of the cells of these splits."""
    return store.factor_hash({str(split): key for split, key in cells.items()})


def read_cells(folder: Path, cells: Cells) -> CurveEntries:
    """Return the entries of cells in ascending order of splits."""
    traced: dict[int, dict[str, list[float]]] = {}
    sampled: dict[int, dict[str, Any]] = {}
    for split, record in records(folder, cells):
        notes = {key: record.notes[key] for key in ("chains", "diagnostics") if record.notes.get(key)}
        if not record.trace and not notes:
            if "finished" not in record.provenance:
                continue  # taken over from a table, which has no curves
            break  # a method keeps curves of every fit or of none
        if record.trace:
            traced[split] = record.trace
        if notes:
            sampled[split] = notes
    traces = {**splits_used(traced, cells), "traces": _summaries(list(traced.values()))} if traced else None
    chains = {**splits_used(sampled, cells), **_sampled(sampled)} if sampled else None
    return CurveEntries(traces, chains)


def splits_used(splits: Iterable[int], cells: Cells) -> Entry:
    """Return the splits and the hash of their cells."""
    used = {split: cells[split] for split in splits}
    return {"splits": list(used), "cells": hash_of(used)}


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


def records(folder: Path, cells: Cells) -> Iterator[tuple[int, Record]]:
    """Yield the splits and records of the finished cells."""
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
