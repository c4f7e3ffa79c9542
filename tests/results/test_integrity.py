"""Rows that were cut, edited or removed are recognised by their checksums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.types import Record

KEYS = tuple(letter * 16 for letter in "abcdef")
LOCK = {
    "study": "s",
    "datasets": {"d": {"name": "d", "n": 500}},
    "splits": {"scheme": "standard"},
    "groups": [
        {"method": "m", "dataset": "d", "factors": {"method": "pbp"}, "cells": {str(i): k for i, k in enumerate(KEYS)}}
    ],
}


def row(key: str, **values: object) -> dict[str, object]:
    split = KEYS.index(key)
    base = {"study": "s", "method": "m", "dataset": "d", "split": split, "status": "ok", "seed": 7, "cell": key}
    scores = {"rmse": 0.1 + 0.2 * split, "ll": -1.5, "coverage95": 0.95, "fit_seconds": 1e-3, "peak_mb": 120.0}
    return {**base, **scores, "n_train": 450, "n_test": 50, "reason": "", **values}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a fresh clone has it: table and lock file, without cell files."""
    write(tmp_path, *(row(key) for key in KEYS))
    return tmp_path


def write(folder: Path, *rows: dict[str, object]) -> None:
    finished = store.FinishedRows()
    for each in rows:
        finished.add(Record(each, {"method": "pbp", "version": 3}, {"revision": "abc", "source": "5eed"}))
    store.write_lock(folder, LOCK)
    store.export(folder, finished)


def test_an_intact_folder_has_no_suspect_rows(folder: Path) -> None:
    finished = store.finished_rows(folder)
    assert finished.rows.keys() == set(KEYS)
    assert finished.suspect == []
    assert store.read_intact(folder).rows == [finished.rows[key] for key in KEYS]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.1,", "0.01,", 1),
        lambda text: text.replace(",ok,", ",failed,", 1),
        lambda text: text.replace("aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaab"),
    ],
    ids=["empty", "half", "score", "status", "cell"],
)
def test_a_damaged_table_is_recognised(folder: Path, damage: Callable[[str], str]) -> None:
    """The rows that remain are the original ones, and each other row is named."""
    path, originals = folder / store.RESULTS, store.finished_rows(folder).rows
    path.write_text(damage(path.read_text()))
    found = store.finished_rows(folder)
    assert found.rows.items() < originals.items()
    assert originals.keys() - found.rows.keys() <= {row.cell for row in found.suspect}
    with pytest.raises(UserError, match="altered or removed"):
        store.read_intact(folder)


def test_an_edited_row_is_named_and_the_table_is_kept(folder: Path) -> None:
    path = folder / store.RESULTS
    edited = path.read_text().replace("0.1,", "0.01,", 1)
    path.write_text(edited)
    finished = store.finished_rows(folder)
    (suspect,) = finished.suspect
    assert str(suspect) == f"results.csv: m on d, split 0: the row does not match its checksum in {store.LOCK}"
    with pytest.raises(UserError, match="m on d, split 0"):
        store.read_intact(folder)
    assert path.read_text() == edited
    store.keep_damaged_table(folder, finished)
    store.export(folder)
    assert (folder / "results.damaged.csv").read_text() == edited
    assert len(store.read_rows(path)) == 5


def test_an_added_row_is_recognised(folder: Path) -> None:
    rows = store.read_rows(folder / store.RESULTS)
    store.write_rows(folder / store.RESULTS, [*rows, {**rows[0], "cell": "9" * 16}])
    (suspect,) = store.finished_rows(folder).suspect
    assert suspect.reason == f"{store.LOCK} has no checksum of this row"


def test_a_cell_file_replaces_a_damaged_row(folder: Path) -> None:
    path = folder / store.RESULTS
    path.write_text(path.read_text().replace("0.1,", "0.01,", 1))
    store.write_record(folder, Record(row(KEYS[0]), {"method": "pbp"}))
    finished = store.finished_rows(folder)
    assert finished.suspect == []
    assert finished.rows[KEYS[0]]["rmse"] == 0.1


def test_each_row_keeps_its_origin(folder: Path) -> None:
    """Rows of two environments in one table, as after a run on another machine."""
    finished = store.finished_rows(folder)
    finished.add(Record(row(KEYS[5]), {"method": "pbp", "version": 4}, {"revision": "def+changes", "source": "feed"}))
    store.export(folder, finished)
    origins = store.finished_rows(folder).origins
    assert all(origins[key] == origins[KEYS[0]] for key in KEYS[:5])
    assert origins[KEYS[0]][:3] == ("pbp", 3, "5eed")
    assert origins[KEYS[5]] == store.Origin("pbp", 4, "feed", {"revision": "def+changes"})
    assert [origins[key].changed_tree for key in KEYS] == [False] * 5 + [True]


@pytest.mark.parametrize("lock", [None, {}, {"study": "s", "groups": LOCK["groups"]}])
def test_without_checksums_no_row_counts(folder: Path, lock: dict[str, object] | None) -> None:
    """A lock file that was lost or cut does not make an edited table valid."""
    if lock is None:
        (folder / store.LOCK).unlink()
    else:
        (folder / store.LOCK).write_text(json.dumps({"format": store.FORMAT, **lock}))
    found = store.finished_rows(folder)
    assert found.rows == {}
    assert {row.cell for row in found.suspect} == set(KEYS)
    assert {row.reason for row in found.suspect} == {f"{store.LOCK} has no checksum of this row"}
    with pytest.raises(UserError, match="run the study again"):
        store.read_intact(folder)
