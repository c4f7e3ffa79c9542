"""curves.json: its content, when an entry is dropped, and use in a fresh clone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from docs.site.committed_results import committed_folders
from ep_bench.errors import UserError
from ep_bench.results import cell_curves, curves, store
from ep_bench.types import Record

EPOCHS = 5


def trace(split: int, epochs: int = EPOCHS) -> dict[str, list[float]]:
    return {"noise_deviation": [float(split + e) for e in range(epochs)]}


def sampled(split: int) -> dict[str, object]:
    return {"diagnostics": {"r_hat_predictions": 1.0 + split / 100, "divergences": None}}


class Study:
    """A folder with one group of cells per method and data set; cells are finished one by one."""

    def __init__(self, folder: Path, methods=("a",), datasets=("toy",), splits=4) -> None:
        self.folder, self.methods, self.datasets, self.splits = folder, list(methods), list(datasets), splits
        self.version = 1
        self.plan()

    def key(self, method: str, dataset: str, split: int) -> str:
        return store.factor_hash({"m": method, "d": dataset, "split": split, "version": self.version})

    def plan(self, rename=lambda method: method) -> None:
        cells = {
            (m, d): {str(s): self.key(m, d, s) for s in range(self.splits)} for m in self.methods for d in self.datasets
        }
        groups = [{"method": rename(m), "dataset": d, "factors": {}, "cells": cells[m, d]} for m, d in cells]
        finished = store.finished_rows(self.folder)
        known = finished.lock_entries(finished.rows.keys())
        store.write_lock(self.folder, {"study": "s", "groups": groups, **known})

    def finish(self, splits, method="a", dataset="toy", status="ok", **record) -> None:
        for split in splits:
            head = {"study": "s", "method": method, "dataset": dataset, "split": split, "status": status}
            row = {**head, "rmse": 1.0, "cell": self.key(method, dataset, split), "seed": 0}
            kept = {name: make(split) for name, make in (record or {"trace": trace}).items()}
            kept.setdefault("provenance", {"finished": "2026-01-01T00:00:00Z"})
            store.write_record(self.folder, Record(row=row, factors={}, **kept))

    def update(self) -> curves.Curves:
        curves.update(self.folder, store.export(self.folder))
        return curves.read(self.folder)

    def forget(self, splits=range(99), method="a", dataset="toy") -> None:
        """Remove cell files, as on another machine; results.csv keeps their rows."""
        for split in splits:
            (self.folder / store.CELLS / f"{self.key(method, dataset, split)}.json").unlink(missing_ok=True)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "s")


def test_median_and_range_over_the_finished_splits(study: Study) -> None:
    study.finish([0, 1, 3])
    (entry,) = study.update().traces
    assert json.loads((study.folder / curves.FILE).read_text()).keys() == {"format", "traces"}
    assert (entry["method"], entry["dataset"], entry["splits"]) == ("a", "toy", [0, 1, 3])
    assert entry["traces"] == {
        "noise_deviation": {
            "epoch": [1, 2, 3, 4, 5],
            "median": [1.0, 2.0, 3.0, 4.0, 5.0],
            "min": [0.0, 1.0, 2.0, 3.0, 4.0],
            "max": [3.0, 4.0, 5.0, 6.0, 7.0],
        }
    }


def test_one_split_has_no_range_and_cells_that_failed_do_not_count(study: Study) -> None:
    study.finish([2])
    study.finish([0, 1], status="failed")
    (entry,) = study.update().traces
    assert entry["splits"] == [2]
    assert entry["traces"]["noise_deviation"].keys() == {"epoch", "median"}


def test_cells_without_curves_from_another_folder_hide_none(study: Study) -> None:
    """A cell that was taken over from a table has no time of its end, and no trace."""
    study.finish([0], provenance=lambda _: {"source": "0123"})
    study.finish([1, 2])
    (entry,) = study.update().traces
    assert entry["splits"] == [1, 2]


def test_a_fresh_clone_keeps_the_file_byte_by_byte(study: Study) -> None:
    pits = {"pit": [3, *[1] * 9]}
    study.finish(range(4), trace=trace, notes=lambda split: sampled(split) | pits)
    before, text = study.update(), (study.folder / curves.FILE).read_bytes()
    shutil.rmtree(study.folder / store.CELLS)
    assert study.update() == before
    assert [len(kind) for kind in before] == [1, 4, 0, 4]
    assert (study.folder / curves.FILE).read_bytes() == text


def test_a_machine_with_fewer_cell_files_does_not_replace_the_curves(study: Study) -> None:
    study.finish(range(3))
    before = study.update().traces
    study.forget()
    study.finish([3])  # this machine has one cell of the four
    assert study.update().traces == before
    study.finish([0, 1, 2, 3])
    assert study.update().traces[0]["splits"] == [0, 1, 2, 3]


def test_methods_on_the_same_splits_are_distinguished_and_stay_as_they_are(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", methods=("a", "b"))
    for method, value in (("a", 1.0), ("b", 2.0)):
        study.finish(range(4), method=method, trace=lambda _, value=value: {"objective": [value]})
    before = study.update().traces
    shutil.rmtree(study.folder / store.CELLS)
    study.finish(range(2), method="b", trace=lambda _: {"objective": [3.0]})
    assert study.update().traces == before
    assert [entry["traces"]["objective"]["median"] for entry in before] == [[1.0], [2.0]]


def test_an_entry_is_dropped_with_its_cells(study: Study) -> None:
    notes = {"trace": trace, "notes": sampled}
    study.finish(range(4), **notes)
    assert study.update().traces
    study.version = 2  # another version of the method: other hashes
    study.plan()
    assert study.update() == curves.Curves([], {}, {}, {})
    assert not (study.folder / curves.FILE).exists()
    study.finish(range(4), **notes)
    store.export(study.folder)
    shutil.rmtree(study.folder / store.CELLS)  # this machine has the rows of the new cells, but not their files
    assert study.update() == curves.Curves([], {}, {}, {})


def test_a_new_label_keeps_its_curves(study: Study) -> None:
    study.finish(range(4))
    study.update()
    study.forget()
    study.plan(rename=lambda _: "renamed")
    (entry,) = study.update().traces
    assert entry["method"] == "renamed"
    assert entry["splits"] == [0, 1, 2, 3]


def test_splits_of_unequal_length_and_values_that_are_not_finite(study: Study) -> None:
    study.finish([0], trace=lambda _: {"objective": [1.0, np.nan, np.inf, 4.0]})
    study.finish([1], trace=lambda _: {"objective": [3.0, np.nan]})
    (entry,) = study.update().traces
    assert entry["traces"]["objective"] == {
        "epoch": [1, 2, 3, 4],
        "median": [2.0, None, None, 4.0],
        "min": [1.0, None, None, 4.0],
        "max": [3.0, None, None, 4.0],
    }
    json.loads((study.folder / curves.FILE).read_text(), parse_constant=pytest.fail)  # no NaN: strict JSON

def test_thinning_keeps_ends_and_early_epochs() -> None:
    for length in (1, 2, 23, 24):
        assert cell_curves.thinned(length).tolist() == list(range(length))
    for length in (25, 100, 1000, 100_000):
        places = cell_curves.thinned(length)
        assert len(places) <= cell_curves.POINTS
        assert (places[0], places[-1]) == (0, length - 1)
        assert np.all(np.diff(places) > 0)
        assert np.diff(places).max() <= length / (cell_curves.POINTS // 3 - 1) + 1
        assert places[1] == 1
    assert cell_curves.thinned(1000)[:5].tolist() == [0, 1, 2, 3, 5]


def test_diagnostics_of_cells_of_several_machines_are_joined(study: Study) -> None:
    study.finish([1, 2, 3], trace=lambda _: {}, notes=sampled)
    study.update()
    study.forget()
    study.finish([0], notes=sampled)
    found = study.update().diagnostics
    assert found == {study.key("a", "toy", split): sampled(split)["diagnostics"] for split in range(4)}


def test_the_committed_curves_are_read() -> None:
    folders = [folder for folder in committed_folders() if (folder / curves.FILE).is_file()]
    assert folders
    for folder in folders:
        assert any(curves.read(folder))
