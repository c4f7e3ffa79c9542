"""The JSON of the page: cells, presets and tests."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pandas as pd
import pytest

from ep_bench.report import build, merge, page_data
from ep_bench.report.context import ReportContext


def content(*folders):
    return json.loads(page_data.page_data(ReportContext(merge.merge(folders))))


def test_every_finished_cell_is_in_the_data(tmp_path, make_study):
    def change(row):
        if row["method"] == "gp" and row["split"] == 2:
            keep = ("study", "method", "dataset", "split", "seed", "cell")
            return {key: row[key] for key in keep} | {"status": "timeout", "reason": "over 600 s"}
        return row

    folder = make_study(tmp_path / "s", change=change)
    data, rows = content(folder), merge.merge([folder]).rows
    assert [m["name"] for m in data["methods"]] == ["pbp", "ridge", "gp"]
    assert [data["families"][m["family"]] for m in data["methods"]] == [
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


def test_presets_have_ranks_and_tests(tmp_path, make_study):
    methods = ["pbp", "hmc", "laplace", "gp"]
    data = content(make_study(tmp_path / "s", methods, ["boston", "yacht"], splits=10))
    found = {preset["name"]: preset for preset in data["presets"]}
    assert set(found) == {"all", "networks"}
    networks = found["networks"]["scores"]["ll"]
    assert sorted(row[0] for row in networks["rows"]) == [0, 1, 2]
    assert [row[1] for row in networks["rows"]] == sorted(row[1] for row in networks["rows"])
    assert networks["test"] == "Not tested: too few independent blocks."


def test_independent_blocks_are_tested(tmp_path, make_study):
    sets = ["boston", "yacht", "wine", "power", "energy"]
    for factor, words in ((2.0, "rejects"), (1.0, "does not reject")):
        factors = {"pbp": 1.0, "hmc": 1.0 / factor, "laplace": factor}

        def change(row, factors=factors):
            return {**row, "rmse": factors[row["method"]] * (1.0 if len(set(factors.values())) == 1 else row["rmse"])}

        folder = make_study(tmp_path / words.replace(" ", "-"), list(factors), sets, splits=4, change=change)
        stored = content(folder)["presets"][0]["scores"]["rmse"]
        assert stored["test"] == f"Friedman's test over 5 data sets {words} equal ranks."


def test_markup_in_names_does_not_end_the_script(tmp_path, make_study):
    name = "</script><b>"
    folder = make_study(tmp_path / "s", [name, "gp"])
    text = build([folder])[0].read_text(encoding="utf-8")
    assert name not in text
    packed = re.search(r'<script type="text/plain" id="cells">(.*?)</script>', text).group(1)
    stored = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert stored == content(folder)
    assert stored["methods"][0]["name"] == name


def test_one_method_needs_no_data(tmp_path, make_study):
    assert page_data.page_data(ReportContext(merge.merge([make_study(tmp_path / "s", ["pbp"])]))) == ""


def test_entries_name_the_scores_by_which_they_are_not_distinguished_from_the_best(tmp_path, make_study):
    folder = make_study(tmp_path / "s")
    data, report = content(folder), ReportContext(merge.merge([folder]))
    for table in (report.table_of(board.score) for board in report.leaderboards):
        marked = {
            (data["methods"][entry["m"]]["name"], data["datasets"][entry["d"]]["name"])
            for entry in data["entries"]
            if table.score.name in entry.get("e", [])
        }
        places = zip(*table.marked.nonzero(), strict=True)
        assert marked == {(table.methods[j], table.datasets[i]) for i, j in places}
