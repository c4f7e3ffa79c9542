"""The JSON of the page: cells, presets and tests."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib

import numpy as np
import pandas as pd
import pytest

from ep_bench.plotting.method_style import FAMILIES
from ep_bench.report import build, first_screen, merge, render_html, summary
from ep_bench.report.context import ReportContext
from ep_bench.results import store
from ep_bench.types import Record
from tests.report.synthetic import complete


def content(*folders):
    return json.loads(json.dumps(render_html.CellData(ReportContext(merge.merge(folders))).as_dict(), allow_nan=False))


def test_every_finished_cell_is_in_the_data(tmp_path, make_study):
    def change(row):
        if row["method"] == "gp" and row["split"] == 2:
            keep = ("study", "method", "dataset", "split", "seed", "cell")
            return {key: row[key] for key in keep} | {"status": "timeout", "reason": "over 600 s"}
        return row

    folder = make_study(tmp_path / "s", change=change)
    data, rows = content(folder), merge.merge([folder]).rows
    assert [m["name"] for m in data["methods"]] == ["pbp", "ridge", "gp"]
    assert [FAMILIES[m["family"]] for m in data["methods"]] == [
        "networks",
        "other methods",
        "Gaussian processes",
    ]
    for entry in data["entries"]:
        names = data["methods"][entry["m"]]["name"], data["datasets"][entry["d"]]["name"]
        own = rows[(rows["method"] == names[0]) & (rows["dataset"] == names[1])].sort_values("split")
        assert entry["s"] == own["split"].tolist()
        for column in ("rmse", "ll", "crps"):
            stored = [None if pd.isna(value) else pytest.approx(value, rel=1e-5) for value in own[column]]
            assert entry[column] == stored
        reasons = [data["reasons"][place] for place in entry.get("r", [0] * 5)]
        assert reasons == ["", "", "timeout: over 600 s" if names[0] == "gp" else "", "", ""]


def test_views_are_of_all_scores_and_of_small_and_large_sets(tmp_path, make_study):
    def change(row):
        return {**row, "n_train": 9000} if row["dataset"] == "protein" else row

    folder = make_study(tmp_path / "s", datasets=["boston", "yacht", "protein"], change=change)
    lock = store.read_lock(folder)
    lock["datasets"]["protein"]["n"] = 9050
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    report = ReportContext(merge.merge([folder]))
    views = first_screen.views(report)
    assert [(view.board.score.name, view.group) for view in views] == [
        (score, group) for score in ("ll", "rmse", "crps") for group in ("all", "small", "large")
    ]
    for view in views:
        data = view.data()
        assert data["methods"] == [row.method for row in view.board.ranked]
        assert [len(ranks) for ranks in data["ranks"]] == [len(view.board.datasets)] * 3


def test_options_are_those_of_the_cells_not_of_the_entry(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ["hmc", "bp"], ["boston"])
    lock = store.read_lock(folder)
    lock["methods"]["hmc"]["options"] = {"samples": 500}
    for group in lock["groups"]:
        group["factors"]["options"] = {"samples": 37500, "stored": None}
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    data = content(folder)
    assert [data["options"][place] for entry in data["entries"] for place in entry["o"]] == ["samples: 37500"] * 2


def test_traces_are_medians_over_the_splits_without_internal_quantities(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ("pbp", "gp"), ("boston", "yacht"), 3)
    for row in store.read_rows(folder / store.RESULTS):
        known = np.array([2.0, np.nan, 1.0]) + row["split"]
        trace = {"noise_deviation": [np.inf] * 3 if row["dataset"] == "boston" else known.tolist(), "own": [1.0, 2.0]}
        store.write_record(folder, Record(row=row, factors={}, trace=trace if row["method"] == "pbp" else {}))
    found = render_html.page_traces(ReportContext(merge.merge([complete(folder)])))
    assert found["pbp", "yacht"] == [["Noise standard deviation", "standardised units", [1, 3], [3.0, 2.0]]]
    assert found["pbp", "boston"] == []
    assert ("gp", "yacht") not in found


def test_pairs_have_the_p_values_of_the_paired_test(report_of):
    report = report_of()
    data, table = render_html.CellData(report).as_dict(), report.table_of(report.leaderboards[0].score)
    methods, p = data["pairs"]["ll"][1]
    cells = summary.pivot(report.merged, table.score).loc["yacht"]
    pairs = itertools.combinations(["pbp", "ridge", "gp"], 2)
    expected = [table.tests[1].p((cells[a] - cells[b]).to_numpy()) for a, b in pairs]
    assert methods == [0, 1, 2]
    assert p == [round(10000 * value) for value in expected]


def test_markup_in_names_does_not_end_the_script(tmp_path, make_study):
    name = "</script><b>"
    folder = make_study(tmp_path / "s", [name, "gp"])
    text = build([folder])[0].read_text(encoding="utf-8")
    assert name not in text
    packed = re.search(r'<script type="text/plain" id="cells">(.*?)</script>', text).group(1)
    stored = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert {key: stored[key] for key in content(folder)} == content(folder)
    assert stored["methods"][0]["name"] == name
