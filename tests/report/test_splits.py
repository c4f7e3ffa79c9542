"""Splits that are low for many methods at once."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import splits

METHODS = [f"method {i}" for i in range(10)]


def low_splits(row):
    """Splits 1 and 7 of energy are low for the first six methods; no split of boston is."""
    is_low = row["dataset"] == "energy" and row["split"] in {1, 7} and row["method"] in METHODS[:6]
    noise = np.random.default_rng([row["split"], METHODS.index(row["method"])]).normal()
    return {**row, "ll": -1.0 + 0.01 * noise - 5.0 * is_low}


@pytest.fixture
def report(tmp_path, make_study):
    folder = make_study(tmp_path / "s", METHODS, ["boston", "energy"], 10, change=low_splits)
    return ReportContext(merge.merge([folder]))


def test_several_low_splits_do_not_hide_one_another(report):
    maps = splits.split_maps(report, report.leaderboards[0].score)
    assert {split: count for split, count in maps["energy"].low.items() if count >= 6}.keys() == {1, 7}
    assert not any(count >= 6 for count in maps["boston"].low.values())
    ranked = [row.method for row in report.leaderboards[0].rows]
    assert list(maps["energy"].methods) == ranked


def test_the_section_names_them_and_has_a_map_of_each_data_set(report):
    (section,) = splits.sections(report)
    assert "energy: splits 1" in section.summary
    assert "methods" in section.lines[-1]
    assert [table.folded for table in section.tables] == ["boston", "energy"]
    assert section.tables[0].head == ["method", *map(str, range(10))]
    row = next(row for row in section.tables[1].rows if row[0]["text"] == METHODS[0])
    assert float(row[2]["text"]) < -splits.LOW
    assert row[2]["style"] == "--low:1.0"


def test_few_splits_have_no_map(tmp_path, make_study):
    assert splits.sections(ReportContext(merge.merge([make_study(tmp_path / "s", splits=3)]))) == []


def test_without_spread_no_split_is_low():
    assert not splits._standardised(np.ones((3, 8))).any()
