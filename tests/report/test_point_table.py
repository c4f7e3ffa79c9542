"""Tables over test data points: pooled moments, percentiles, published numbers, and all formats."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench.report import build, merge
from ep_bench.report.sections import point_tables
from ep_bench.results import row_scores, store

METHODS = ("nn", "GP", "other")
ANSWERS = {"nn": ["NN-EP-LA"], "GP": ["GP"], "other": []}
FOLDS, ROWS, SCALE = 10, 50, 9.0


def scores_of(method: str, split: int) -> dict[str, list[float]]:
    rng = np.random.default_rng([METHODS.index(method), split])
    return {"ll": rng.normal(-2.6, 1.5, ROWS).tolist(), "ae": np.abs(rng.normal(0.0, 3.0, ROWS)).tolist()}


def of_rows(row: dict[str, Any]) -> dict[str, Any]:
    """Give a cell the moments of its data points."""
    scores = scores_of(row["method"], row["split"])
    squares = np.square(scores["ae"])
    return row | {
        "ll": np.mean(scores["ll"]), "ll_std": np.std(scores["ll"]), "rmse": math.sqrt(squares.mean()),
        "se_std": squares.std(), "target_std": SCALE, "fit_seconds": 3.0 if row["method"] == "nn" else 1.2,
        "predict_seconds": 0.0,
    }  # fmt: skip


def folds(folder: Path, make_study: Any, *, kept: bool = True, change: Any = of_rows, **lock: Any) -> Path:
    """Write a study of boston in ten folds, with the scores of data points if ``kept``."""
    settings = {
        "splits": {"scheme": "kfold", "folds": FOLDS, "seed": 0},
        "methods": {m: {"use": m, "published": ANSWERS[m], "options": {}} for m in METHODS},
        **lock,
    }
    make_study(folder, METHODS, ("boston",), FOLDS, change=change, lock=settings)
    if kept:
        cells = store.lock_cells(store.read_lock(folder) or {})
        rows = {cell["cell"]: scores_of(cell["method"], cell["split"]) for cell in cells}
        (folder / row_scores.FILE).write_text(json.dumps({"format": 1, "cells": rows}))
    return folder


def collected(*folders: Path) -> point_tables.PointTable:
    (found,) = point_tables.collect(merge.merge(folders))
    return found


def line(found: point_tables.PointTable, method: str, block: int = 0) -> point_tables.PointTableLine:
    (one,) = (line for line in found.blocks[block].lines if line.method == method)
    return one


def test_all_numbers_are_those_of_the_points(tmp_path: Path, make_study: Any) -> None:
    found = collected(folds(tmp_path / "s", make_study))
    rows = [scores_of("GP", split) for split in range(FOLDS)]
    densities = np.concatenate([row["ll"] for row in rows]) + math.log(SCALE)
    squares = (np.concatenate([row["ae"] for row in rows]) / SCALE) ** 2
    lowest, highest = np.sort(densities), np.sort(squares)
    of_densities = densities.mean(), densities.std(), lowest[4:6].mean()
    expected = (*of_densities, squares.mean(), squares.std(), highest[-6:-4].mean(), 0.4)
    one = line(found, "GP")
    assert one.ours == pytest.approx(expected)  # 1 % of 500 points is between the 5th and the 6th
    assert (one.splits, one.planned, found.unit) == (FOLDS, FOLDS, "nn")
    assert one.printed == ("-0.29", "2.35", "-7.57", "0.13", "0.53", "1.98", "0.3")


def test_published_methods_come_first_in_their_order(tmp_path: Path, make_study: Any) -> None:
    found = collected(folds(tmp_path / "s", make_study))
    names = [(one.method, one.column) for one in found.blocks[0].lines]
    assert names == [
        ("nn", "NN-EP-LA"), ("NN-EP-ARD", "NN-EP-ARD"), ("NN-MC", "NN-MC"), ("GP", "GP"), ("GP-ARD", "GP-ARD"),
        ("other", ""),
    ]  # fmt: skip
    absent = line(found, "NN-MC")
    assert all(math.isnan(value) for value in absent.ours)
    assert (absent.printed[0], point_tables.shortfall(absent)) == ("-0.08", "not run")
    assert line(found, "other").printed == ("",) * len(point_tables.METRICS)
    assert line(found, "nn").ours[-1] == pytest.approx(1.0)


def test_a_single_split_has_percentiles_of_its_own(tmp_path: Path, make_study: Any) -> None:
    folder = make_study(
        tmp_path / "kin", ("GP",), ("kin",), 1,
        change=lambda row: of_rows(row) | {"ll_prct1": -6.0, "se_prct99": 40.5, "n_train": 5000, "n_test": 35000},
        lock={
            "splits": {"scheme": "shuffle", "count": 1, "test_fraction": 0.875, "seed": 0},
            "datasets": {"kin": {"name": "kin40k", "irrelevant_inputs": 92, "n": 40000, "d": 100}},
            "methods": {"GP": {"use": "gp", "published": ["GP"], "options": {}}},
        },
    )  # fmt: skip
    both = collected(folds(tmp_path / "s", make_study), folder)
    assert [(block.dataset, block.size) for block in both.blocks] == [
        ("boston", "n = 500, d = 13"), ("kin", "n = 40000, d = 100"),
    ]  # fmt: skip
    one = line(both, "GP", 1)
    assert one.ours[2] == pytest.approx(-6.0 + math.log(SCALE))
    assert one.ours[5] == pytest.approx(0.5)
    assert one.printed[0] == "-1.15"
    assert math.isnan(one.ours[6])  # its unit was not run here


def test_missing_and_unconverged_folds_are_reported(tmp_path: Path, make_study: Any) -> None:
    def change(row: dict[str, Any]) -> dict[str, Any] | None:
        if row["method"] == "GP" and row["split"] > 6:
            return None
        return of_rows(row) | ({"reason": "not converged: x"} if (row["method"], row["split"]) == ("nn", 3) else {})

    found = collected(folds(tmp_path / "s", make_study, change=change))
    assert point_tables.shortfall(line(found, "GP")) == "7 of 10 splits"
    names = [row[0] for row in point_tables.grids(found)[0].rows]
    words = {row["text"]: row["small"] for row in names}
    assert words["GP"] == "7 of 10 splits"
    assert words["nn† (published as NN-EP-LA)"] == "0 of 1 converged, 1 not"
    assert any(note.startswith("†") for note in point_tables.notes(found))


@pytest.mark.parametrize(
    "lock",
    [
        {"splits": {"scheme": "kfold", "folds": 5, "seed": 0}},
        {"splits": {"scheme": "standard"}},
        {"datasets": {"boston": {"name": "boston", "irrelevant_inputs": 3, "n": 500, "d": 16}}},
    ],
)
def test_other_splits_and_data_have_no_such_table(tmp_path: Path, make_study: Any, lock: dict[str, Any]) -> None:
    assert point_tables.collect(merge.merge([folds(tmp_path / "s", make_study, **lock)])) == []


@pytest.mark.usefixtures("undrawn_figures")
def test_the_page_has_our_number_and_the_printed_one(tmp_path: Path, make_study: Any) -> None:
    folder, out = folds(tmp_path / "s", make_study), tmp_path / "out"
    build([folder], out)
    value = line(collected(folder), "GP").ours[0]
    page = (out / "report.html").read_text()
    assert f"{value:.3f} <small>-0.29</small>".replace("-", "\N{MINUS SIGN}") in page
    assert '<a href="#points">' in page
    assert "concrete-quality is absent: the data are not public." in page
