"""Rows that were cut, edited or removed are recognised by their checksums, and impossible values are refused."""

from __future__ import annotations

import json
import random
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


def test_a_table_cut_at_any_place_is_recognised(folder: Path) -> None:
    """The rows that remain are the original ones, and each other row is named."""
    path, originals = folder / store.RESULTS, store.finished_rows(folder).rows
    whole = path.read_bytes()
    for length in range(len(whole) - 1):  # without the last line break, the table is still complete
        path.write_bytes(whole[:length])
        found = store.finished_rows(folder)
        assert found.rows.items() <= originals.items(), length
        lost = set(KEYS) - found.rows.keys()
        assert lost
        assert lost <= {row.cell for row in found.suspect}, length
        with pytest.raises(UserError, match="altered or removed"):
            store.read_intact(folder)


def test_every_edited_character_is_recognised(folder: Path) -> None:
    path, originals = folder / store.RESULTS, store.finished_rows(folder).rows
    whole = path.read_text()
    names = ("study", "method", "dataset")  # labels are those of the plan, whatever the table contains
    places = [place for place in range(whole.index("\n"), len(whole)) if whole[place] in "0123456789.e-ok"]
    chance = random.Random(1)
    for place in chance.sample(places, min(250, len(places))):
        changed = chance.choice([c for c in "0123456789" if c != whole[place]])
        path.write_text(whole[:place] + changed + whole[place + 1 :])
        found = store.finished_rows(folder).rows
        kept = {key: {k: v for k, v in row.items() if k not in names} for key, row in found.items()}
        before = {key: {k: v for k, v in row.items() if k not in names} for key, row in originals.items()}
        assert kept.items() <= before.items(), place


def test_an_edited_row_is_named_and_the_table_is_kept(folder: Path) -> None:
    path = folder / store.RESULTS
    edited = path.read_text().replace("0.1,", "0.01,", 1)
    path.write_text(edited)
    finished = store.finished_rows(folder)
    (suspect,) = finished.suspect
    assert str(suspect) == f"results.csv: m on d, split 0: the row does not match its checksum in {store.LOCK}"
    with pytest.raises(UserError, match="m on d, split 0"):
        store.read_intact(folder, update=True)
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"coverage95": 3.0}, "impossible value: coverage95 is 3.0"),
        ({"rmse": -0.5}, "impossible value: rmse is -0.5"),
        ({"fit_cpu_seconds": -1.0}, "fit_cpu_seconds is -1.0"),
        ({"ll": float("-inf")}, "impossible value: ll is -inf"),
        ({"n_test": 0}, "impossible value: n_test is 0"),
        ({"converged": "maybe"}, "converged is 'maybe'"),
        ({"n_train": 3}, "3 training and 50 test points, but the data set has 500 points"),
        ({"n_train": 460}, "460 training and 50 test points, but the data set has 500 points"),
    ],
)
def test_impossible_values_are_refused_whatever_their_checksum(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    write(tmp_path, row(KEYS[0], **values))
    with pytest.raises(UserError, match=message):
        store.read_intact(tmp_path)


def test_data_left_out_of_every_split_is_possible(tmp_path: Path) -> None:
    write(tmp_path, row(KEYS[0], n_train=400))
    lock = json.loads((tmp_path / store.LOCK).read_text())
    store.write_lock(tmp_path, {**lock, "splits": {"scheme": "holdout"}})
    assert store.finished_rows(tmp_path).suspect == []


def test_superseded_rows_are_protected_too(folder: Path) -> None:
    lock = json.loads((folder / store.LOCK).read_text())
    del lock["groups"][0]["cells"]["0"]
    store.write_lock(folder, lock)
    store.export(folder)
    path = folder / store.SUPERSEDED
    path.write_text(path.read_text().replace("0.1,", "0.01,", 1))
    assert KEYS[0] not in store.finished_rows(folder).rows
    assert [row.file for row in store.finished_rows(folder).suspect] == [store.SUPERSEDED]


def test_a_folder_of_format_1_is_read_and_upgraded(folder: Path) -> None:
    environment = {"python": "3.11.9", "revision": "abc"}
    old = {**LOCK, "format": 1, "environment": environment}
    (folder / store.LOCK).write_text(json.dumps(old))
    before = (folder / store.RESULTS).read_bytes()
    assert store.read_study(folder).finished.suspect == []
    store.read_intact(folder, update=True)
    lock = store.read_lock(folder)
    assert lock is not None
    assert lock["format"] == store.FORMAT
    assert "environment" not in lock
    assert list(lock["environments"].values()) == [environment]
    (entry,) = lock["provenance"]
    assert entry["rows"].keys() == set(KEYS)
    assert (folder / store.RESULTS).read_bytes() == before
    (folder / store.RESULTS).write_bytes(before.replace(b"0.1,", b"0.2,", 1))
    assert len(store.finished_rows(folder).suspect) == 1


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


def supersede(folder: Path) -> None:
    """Replace the plan by one without the last two cells, whose rows go to superseded.csv."""
    lock = store.read_lock(folder)
    assert lock is not None
    lock["groups"][0]["cells"] = {str(i): key for i, key in enumerate(KEYS[:4])}
    store.write_lock(folder, lock)
    store.export(folder)
    assert {row["cell"] for row in store.read_rows(folder / store.SUPERSEDED)} == set(KEYS[4:])


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_missing_superseded_row_is_named(folder: Path, lines: int) -> None:
    supersede(folder)
    path = folder / store.SUPERSEDED
    kept = path.read_text().splitlines(keepends=True)[:lines]
    path.write_text("".join(kept)) if lines else path.unlink()
    found = store.finished_rows(folder)
    absent = {row.cell for row in found.suspect if row.file == store.SUPERSEDED and row.cell}
    assert len(absent) == 2 - max(0, lines - 1)
    assert absent <= set(KEYS[4:])
    with pytest.raises(UserError, match=r"superseded\.csv"):
        store.read_intact(folder)


def test_superseded_rows_may_have_other_sizes(folder: Path) -> None:
    """The data of the current plan may have more data points than those of replaced cells."""
    supersede(folder)
    lock = store.read_lock(folder)
    assert lock is not None
    lock["datasets"]["d"]["n"] = 400
    for group in lock["groups"]:
        group["cells"] = {}
    store.write_lock(folder, {**lock, "groups": [{**lock["groups"][0], "cells": {"0": "9" * 16}}]})
    assert not [row for row in store.finished_rows(folder).suspect if "training and" in row.reason]


def test_a_row_that_returns_to_the_plan_is_never_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supersede(folder)
    lock = store.read_lock(folder)
    assert lock is not None
    lock["groups"][0]["cells"] = {str(i): key for i, key in enumerate(KEYS)}
    store.write_lock(folder, lock)
    write_rows, known = store.write_rows, []

    def note(*arguments: object) -> None:
        write_rows(*arguments)
        tables = [store.read_rows(folder / name) for name in (store.RESULTS, store.SUPERSEDED)]
        known.append({row["cell"] for rows in tables for row in rows})

    monkeypatch.setattr(store, "write_rows", note)
    store.export(folder)
    assert known == [set(KEYS)] * len(known)
    assert {row["cell"] for row in store.read_rows(folder / store.RESULTS)} == set(KEYS)


def test_rows_without_a_lock_file_are_refused(folder: Path) -> None:
    (folder / store.LOCK).unlink()
    with pytest.raises(UserError, match=r"study\.lock\.json is absent"):
        store.read_intact(folder)


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
    store.keep_damaged_table(folder, found)
    assert (folder / store.DAMAGED[0]).read_bytes() == (folder / store.RESULTS).read_bytes()
