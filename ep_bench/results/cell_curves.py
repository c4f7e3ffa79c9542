"""Training curves of one method and data set, from its cell files; they are entries of ``curves.json``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench.results import store
from ep_bench.types import Indices, Record

POINTS = 24  # epochs kept of a longer curve
DIGITS = 4  # significant

Entry = dict[str, Any]
Cells = Mapping[int, str]  # split -> hash of a finished cell


def hash_of(cells: Cells) -> str:
    """Return the hash of the cells of these splits."""
    return store.factor_hash({str(split): key for split, key in cells.items()})


def read_cells(folder: Path, cells: Cells) -> Entry | None:
    """Return the entry of cells in ascending order of splits, None without a curve."""
    traced: dict[int, dict[str, list[float]]] = {}
    for split, record in records(folder, cells):
        if record.trace:
            traced[split] = record.trace
        elif "finished" in record.provenance:
            break  # a method keeps curves of every fit or of none; a row that was taken over has none
    if not traced:
        return None
    used = {split: cells[split] for split in traced}
    return {"splits": list(used), "cells": hash_of(used), "traces": _summaries(list(traced.values()))}


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
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # an epoch without a finite value gives nan
        kept = {"median": np.nanmedian(table, axis=0)}
        if len(curves) > 1:
            kept |= {"min": np.nanmin(table, axis=0), "max": np.nanmax(table, axis=0)}
    return {"epoch": (indices + 1).tolist(), **{name: _short(values) for name, values in kept.items()}}


def thinned(length: int) -> Indices:
    """Return at most ``POINTS`` indices of a curve, a third of them evenly spaced, the others geometrically.

    The first and the last are included. The first epochs change most and remain visible on a logarithmic axis.
    """
    if length <= POINTS:
        return np.arange(length, dtype=np.int64)
    even = POINTS // 3
    indices = np.concatenate([np.linspace(0, length - 1, even), np.geomspace(1, length, POINTS - even) - 1])
    return np.unique(np.round(indices).astype(np.int64))


def _short(values: Any) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values.tolist()]
