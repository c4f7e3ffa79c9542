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
    found = splits.low_splits(report, report.leaderboards[0].score)
    assert {split for split, count in found["energy"].counts.items() if count >= 6} == {1, 7}
    assert not any(count >= 6 for count in found["boston"].counts.values())


def test_the_section_names_them(report):
    (section,) = splits.sections(report)
    assert "energy: splits 1" in section.summary
    assert "of 10 methods" in section.lines[-1]


def test_few_splits_have_no_section(tmp_path, make_study):
    assert splits.sections(ReportContext(merge.merge([make_study(tmp_path / "s", splits=3)]))) == []


def test_without_spread_no_split_is_low():
    assert not splits._standardised(np.ones((3, 8))).any()
