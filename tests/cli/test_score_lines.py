"""The short table of scores at the end of a run."""

from __future__ import annotations

from ep_bench.cli.output.scores import means, score_table
from ep_bench.cli.output.study import status_items
from tests.commands import lines_of
from tests.report.synthetic import make_study

VALUES = {("gp", "boston"): [-2.0, -3.0], ("gp", "yacht"): [-1.0], ("pbp", "boston"): [-3.0, -3.0]}
PLANNED = dict.fromkeys([("gp", "boston"), ("gp", "yacht"), ("pbp", "boston"), ("pbp", "yacht")], 2)


def test_means_are_shown_and_incomplete_ones_marked() -> None:
    head, *rows = lines_of(means("RMSE", VALUES, PLANNED))
    assert head == "RMSE, mean over splits (* some splits only):"
    assert [row.split() for row in rows] == [["boston", "yacht"], ["gp", "-2.5", "-1*"], ["pbp", "-3", "–"]]


def test_entries_that_have_not_converged_get_a_dagger() -> None:
    lines = lines_of(means("RMSE", VALUES, PLANNED, {("gp", "yacht"): 1}))
    assert lines[2].split() == ["gp", "-2.5", "-1*†"]
    assert lines[-1] == "† 1 cell has not converged; see the column `reason` of results.csv"


def test_methods_without_the_score_are_named(tmp_path):
    folder = make_study(
        tmp_path / "s", ["pbp", "svr"], change=lambda row: row | ({"ll": ""} if row["method"] == "svr" else {})
    )
    assert lines_of(score_table(folder))[-1] == "svr: no mean test log-likelihood; the report has the other scores"


def test_status_counts_cells_that_have_not_converged(tmp_path):
    reason = "not converged: too few steps"
    folder = make_study(
        tmp_path / "s", ["pbp", "svr"], change=lambda row: row | ({"reason": reason} if row["method"] == "svr" else {})
    )
    head, *_ = lines_of(status_items(folder)[0])
    total = int(head.split(": ")[1].split()[0])
    assert f": {total} ok ({total // 2} not converged)" in head
