"""The JSON of the page: cells, presets and tests."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pandas as pd
import pytest

from ep_bench.plotting.page import Section, Table
from ep_bench.report import build, folding, merge, page_data, ranks, summary
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import BY_NAME


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
    assert networks["test"] == "Not tested: too few independent blocks for a test of all pairs."
    for preset in found.values():
        for score in preset["scores"].values():
            assert ("p" in score) == score["test"].startswith(("Wilcoxon", "Nemenyi"))
            for row in score.get("p", []):
                assert len(row) == len(score["rows"])


def test_p_values_are_in_the_order_of_the_rows(tmp_path, make_study):
    """The best of three clearly different methods differs from both others."""
    factors = {"pbp": 1.0, "hmc": 0.5, "laplace": 2.0}

    def change(row):
        return {**row, "rmse": row["rmse"] * factors[row["method"]]}

    lock = {"splits": {"scheme": "holdout"}}
    folder = make_study(tmp_path / "s", list(factors), ["boston", "yacht"], splits=10, change=change, lock=lock)
    stored = content(folder)["presets"][0]["scores"]["rmse"]
    assert [row[0] for row in stored["rows"]] == [1, 0, 2]
    cells = merge.merge([folder]).rows.pivot_table(index=["dataset", "split"], columns="method", values="rmse")
    expected = ranks.wilcoxon_p(cells[["hmc", "pbp", "laplace"]]).to_numpy()
    for found, row in zip(stored["p"], expected, strict=True):
        assert found == pytest.approx(row, rel=2e-3)


def test_few_data_sets_are_compared_by_nemenyis_test(tmp_path, make_study):
    """By Wilcoxon's tests, five data sets can reject nothing for three methods."""
    factors = {"pbp": 1.0, "hmc": 0.5, "laplace": 2.0}

    def change(row):
        return {**row, "rmse": row["rmse"] * factors[row["method"]]}

    sets = ["boston", "yacht", "wine", "power", "energy"]
    folder = make_study(tmp_path / "s", list(factors), sets, splits=4, change=change)
    stored = content(folder)["presets"][0]["scores"]["rmse"]
    assert stored["test"] == "Nemenyi's tests over 5 data sets."
    (ranking, _) = summary.ranked_score(merge.merge([folder]), BY_NAME["rmse"]).rankings
    best_first = ["hmc", "pbp", "laplace"]
    np.testing.assert_allclose(stored["p"], ranking.nemenyi.loc[best_first, best_first], rtol=5e-3)


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


def test_long_sections_are_folded_with_a_summary():
    rows = [["a", "b"]] * 40
    tall = Section(
        "tall", "Tall", parts=[Section(f"p{i}", f"Part {i}", tables=[Table(["x", "y"], rows)]) for i in range(3)]
    )
    short = Section("short", "Short", ["One sentence."])
    assert folding.folded_sections([short, tall]) == {"tall": "3 tables: Part 0, Part 1, Part 2"}
    assert folding.folded_sections([Section("leaderboard", "Leaderboard", tables=tall.parts[0].tables * 9)]) == {}
    many = [Section(f"s{i}", "Short", tables=[Table(["x", "y"], rows[:20])]) for i in range(12)]
    assert 0 < len(folding.folded_sections(many)) < 12
    assert folding.folded_sections([tall, short]) == {}  # the first section is what the reader came for


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
