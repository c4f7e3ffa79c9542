"""Reports of selected cells: what is ranked, stated and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext


@pytest.mark.usefixtures("undrawn_figures")
def test_a_report_of_selected_cells_is_that_of_a_study_that_planned_no_others(
    tmp_path: Path, make_study: Callable[..., Path]
) -> None:
    """A method on three sets is ranked against those of a larger study, which the whole report cannot do."""
    mine = make_study(tmp_path / "mine", ["mine"], ["boston", "yacht", "wine"], seed=1)
    others = make_study(tmp_path / "others", ["pbp", "gp"], ["boston", "yacht", "wine", "power", "energy", "naval"])
    select = [f"dataset={name}" for name in ("boston", "yacht", "wine")]
    merged = merge.merge([mine, others], select)
    assert merged.datasets == ["boston", "yacht", "wine"]
    board = ReportContext(merged).leaderboards[0]
    assert {row.method for row in board.ranked} == {"mine", "pbp", "gp"}
    assert f"Only the cells that match {' '.join(select)}." in merged.notes
    whole = ReportContext(merge.merge([mine, others])).leaderboards[0]
    assert {row.method for row in whole.ranked} == {"pbp", "gp"}
    build([mine, others], tmp_path / "out", select=[*select, "method=[mg]*"])
    assert "pbp" not in (tmp_path / "out" / "tables" / "ll.md").read_text()


def test_a_selection_keeps_left_out_cells_and_groups_of_its_methods(
    tmp_path: Path, make_study: Callable[..., Path]
) -> None:
    groups = [{"name": "all", "methods": ["pbp", "gp", "ridge"]}, {"name": "two", "methods": ["pbp", "gp"]}]
    left_out = [{"method": "bp", "dataset": "yacht", "reason": "slow"}]
    folder = make_study(tmp_path / "s", lock={"ranks": groups, "left_out": left_out})
    found = merge.merge([folder], ["method=gp", "method=[pb]*"])
    assert found.methods == ["pbp", "gp"]
    assert [(one["method"], one["dataset"]) for one in found.studies[0].lock["left_out"]] == [("bp", "yacht")]
    assert found.studies[0].lock["ranks"] == groups[1:]
