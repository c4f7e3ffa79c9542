"""Tuned options in the report, with and without their cell files."""

from __future__ import annotations

import re
import shutil

import pytest

from ep_bench.report import build, merge
from ep_bench.report.sections import what_was_run
from ep_bench.results import curves, store
from ep_bench.types import Record
from tests.report.synthetic import complete, lock_entries

TUNE = {
    "trials": 3,
    "fraction": 0.2,
    "space": {"C": {"log": [0.01, 1000.0]}, "kernel": {"choice": ["rbf", "linear"]}, "depth": {"int": [1, 9]}},
    "score": "rmse",
}


@pytest.fixture
def folder(tmp_path, make_study):
    """A study of three methods on two data sets with 3 splits. Ridge is tuned; one search on yacht failed."""
    folder = make_study(tmp_path / "s", datasets=("boston", "yacht"), splits=3)
    lock = store.read_lock(folder)
    old = {}
    for group in lock["groups"]:
        if group["method"] == "ridge":
            group["factors"]["tune"] = TUNE
            for split, key in group["cells"].items():
                old[key] = store.factor_hash({**group["factors"], "split": int(split)})
                group["cells"][split] = old[key]
    lock["methods"]["ridge"]["tune"] = TUNE
    rows = store.read_rows(folder / store.RESULTS)
    for row in rows:
        if row["cell"] in old:
            row |= {"cell": old[row["cell"]], "tune_seconds": 12.5, "tune_cpu_seconds": 12.5}
            store.write_record(folder, Record(row=row, factors={}, notes={"tune": note(row)}))
    store.write_rows(folder / store.RESULTS, rows)
    store.write_lock(folder, lock | lock_entries(rows, {}))
    return complete(folder)


def note(row):
    split = row["split"]
    good = {"options": {"C": 10.0**split, "kernel": ["rbf", "linear", "rbf"][split], "depth": 4}, "score": 1.0}
    bad = {"options": {"C": 5.0, "kernel": "rbf", "depth": 9}, "score": None, "reason": "LinAlgError: singular"}
    trials = [bad, {**good, "reason": ""}, {**good, "score": 2.0, "reason": ""}]
    all_failed = row["dataset"] == "yacht" and split == 2
    return {"validation_rows": 90, "trials": [bad] * 3 if all_failed else trials, "best": None if all_failed else 1}


def test_the_chosen_options_by_data_set(folder):
    lines, rows = what_was_run.collect(merge.merge([folder]))
    assert rows == [
        ["ridge", "boston", "C", "0.01 to 1000, log", "10 (1 to 100)", "3"],
        ["ridge", "boston", "kernel", "rbf, linear", "rbf × 2, linear × 1", "3"],
        ["ridge", "boston", "depth", "1 to 9", "4", "3"],
        ["ridge", "yacht", "C", "0.01 to 1000, log", "5.5 (1 to 10)", "2"],
        ["ridge", "yacht", "kernel", "rbf, linear", "rbf × 1, linear × 1", "2"],
        ["ridge", "yacht", "depth", "1 to 9", "4", "2"],
    ]
    assert lines == [
        "ridge on boston: 3 of 9 trials failed, most often: LinAlgError: singular",
        "ridge on yacht: 5 of 9 trials failed, most often: LinAlgError: singular",
    ]


def test_the_page_shows_them_with_the_time(folder):
    build([folder])
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="tuned">.*?</section>', page, re.DOTALL).group()
    assert "rbf × 2, linear × 1" in section
    assert '<a href="#tuned">Tuned options</a>' in page
    assert "hidden: [50]; tune: {fraction: 0.2, score: rmse, space: {C: {log: [0.01, 1000.0]}" in page
    assert "CPU time of tuning" in (folder / "report" / "figures" / "times.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn_figures")
def test_options_that_are_not_stored_are_counted(folder):
    shutil.rmtree(folder / store.CELLS)
    (folder / curves.FILE).unlink()
    lines, rows = what_was_run.collect(merge.merge([folder]))
    assert rows == []
    assert lines[0] == "The chosen options of none of 6 tuned cells are stored."
    build([folder])
    assert "options of none of 6" in (folder / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "chosen", "text"),
    [
        ("log", [0.001, 0.1, 20000.0], "0.1 (0.001 to 20000)"),
        ("int", [3, 4], "3.5 (3 to 4)"),
        ("int", [3, None, 3], "3 × 2, none × 1"),  # a default outside the space was the best in one search
        ("choice", [[50], [50, 50], [50]], "[50] × 2, [50, 50] × 1"),
        ("choice", [True, False, None], "true × 1, false × 1, none × 1"),
        ("choice", [1, 2, 2], "2 × 2, 1 × 1"),
    ],
)
def test_numbers_and_choices_in_short(kind, chosen, text):
    assert what_was_run.summarise(kind, chosen) == text
