"""Results folders of studies with random scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench.results import curves, row_scores, store
from ep_bench.types import Record

NAMES = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht", "communities")
SCALES = (3.0, 5.6, 1.8, 0.098, 0.006, 4.1, 4.7, 0.64, 1.0, 0.14)


def score_row(rng: np.random.Generator, skill: float, scale: float) -> dict[str, Any]:
    rmse = scale * float(skill) * float(np.exp(0.05 * rng.standard_normal()))
    noise = rng.normal(0.0, 0.01, 3).tolist()
    return {
        "rmse": rmse,
        "mae": 0.75 * rmse,
        "ll": float(-np.log(rmse) - 1.42 + 0.03 * rng.standard_normal()),
        "crps": 0.55 * rmse,
        "coverage50": 0.52 + noise[0],
        "coverage90": 0.91 + noise[1],
        "coverage95": min(0.955 + noise[2], 1.0),
        "width50": 1.35 * rmse,
        "width90": 3.29 * rmse,
        "width95": 3.92 * rmse,
        "pit_error": 0.02 + abs(noise[0]),
        "fit_seconds": float(np.exp(3.0 * skill - 2.0 + 0.1 * rng.standard_normal())),
        "predict_seconds": 0.01 * float(skill),
        "n_train": 450,
        "n_test": 50,
    }


def make_study(
    folder: Path,
    methods: Sequence[str] = ("pbp", "ridge", "gp"),
    datasets: Sequence[str] = ("boston", "yacht", "wine"),
    splits: int = 5,
    *,
    seed: int = 0,
    change: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda row: row,
    lock: dict[str, Any] | None = None,
) -> Path:
    """Write a study's folder. ``change`` alters a row, or returns None for an unfinished cell."""
    rng = np.random.default_rng(seed)
    rows, groups = [], []
    difficulty = rng.normal(0.0, 0.05, (len(datasets), splits))
    for i, dataset in enumerate(datasets):
        for j, method in enumerate(methods):
            factors = {"method": method, "seed": seed, "dataset": {"name": dataset}, "splits": {"scheme": "standard"}}
            hashes = {str(s): store.factor_hash({**factors, "split": s}) for s in range(splits)}
            groups.append({"method": method, "dataset": dataset, "factors": factors, "cells": hashes})
            skill = 1.0 + 0.05 * j + 0.1 * rng.standard_normal()
            for split in range(splits):
                scale = SCALES[NAMES.index(dataset)] if dataset in NAMES else 1.0
                row = score_row(rng, skill * float(np.exp(difficulty[i, split])), scale)
                head = {"study": folder.name, "method": method, "dataset": dataset, "split": split, "status": "ok"}
                changed = change({**head, **row, "seed": seed, "cell": hashes[str(split)]})
                if changed is not None:
                    rows.append(with_cpu_times(changed))
    store.write_rows(folder / store.RESULTS, rows)
    whole = make_lock(folder.name, methods, datasets, groups, seed, splits) | (lock or {})
    for row in rows:
        if "error_rate" in row and row["dataset"] in whole["datasets"]:
            whole["datasets"][row["dataset"]]["task"] = "classification"
    store.write_lock(folder, whole | lock_entries(store.read_rows(folder / store.RESULTS), whole["environment"]))
    return folder


def with_cpu_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose CPU times are its wall times, unless it has other ones."""
    wall = {what: row.get(f"{what}_seconds") for what in ("fit", "predict", "tune")}
    return {f"{what}_cpu_seconds": seconds for what, seconds in wall.items() if seconds is not None} | row


def complete(folder: Path) -> Path:
    """Write curves.json and rows.json from the cell files, as a run does."""
    study = store.read_study(folder)
    curves.update(folder, study.rows)
    row_scores.update(folder, study.lock, study.rows)
    return folder


def make_lock(
    name: str, methods: Sequence[str], datasets: Sequence[str], groups: list[dict[str, Any]], seed: int, splits: int
) -> dict[str, Any]:
    return {
        "study": name,
        "seed": seed,
        "splits": {"scheme": "standard", "count": splits},
        "datasets": {d: {"name": d, "n": 500, "d": 13, "checksum": store.factor_hash({"d": d}) * 4} for d in datasets},
        "methods": {m: {"use": m, "published": [], "options": {"hidden": [50]}} for m in methods},
        "accept": [],
        "groups": groups,
        "environment": {"python": "3.11.9", "packages": {"numpy": "2.0.0"}, "machine": {"cores": 2}, "revision": "abc"},
    }


def lock_entries(rows: Sequence[dict[str, Any]], environment: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a lock file with the checksums of rows."""
    finished = store.FinishedRows()
    for row in rows:
        finished.add(Record(row, {"method": row["method"]}, environment))
    return finished.lock_entries(finished.rows.keys())
