"""Figures of results as matplotlib figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ep_bench import report
from ep_bench.report import inline_charts, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.inline_charts import Point
from ep_bench.report.sections.leaderboard import loss_and_time

ROOT = Path(__file__).parents[2]
METHODS = ["pbp", "hmc", "gp"]
FACTORS = {"pbp": 1.0, "hmc": 0.7, "gp": 1.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_study):
    def change(row):
        factor = FACTORS[row["method"]]
        return {**row, "rmse": row["rmse"] * factor, "fit_seconds": row["fit_seconds"] / factor**6}

    sets = ["boston", "concrete", "energy", "wine", "yacht"]
    return make_study(tmp_path_factory.mktemp("figures") / "s", METHODS, sets, change=change)


@pytest.fixture(scope="module")
def found(folder):
    return report.figures(folder)


def test_the_figures_of_a_report_are_returned_by_name(found):
    assert found.keys() >= {"panels-rmse", "critical-difference-rmse", "calibration", "score-against-time"}
    assert all(isinstance(figure, Figure) for figure in found.values())
    titles = [ax.get_title() for ax in found["panels-rmse"].axes]
    assert titles == [f"{d} (5 splits)" for d in ("boston", "concrete", "energy", "wine", "yacht")]
    assert "cubic-toy-toy" in report.figures(ROOT / "results" / "toy")


def test_methods_are_sorted_by_rank(found):
    first = found["panels-rmse"].axes[0]
    assert [text.get_text() for text in first.texts] == ["hmc", "pbp", "gp"]
    assert first.figure._supxlabel.get_text() == "RMSE (units of the target), ← better"


def test_many_methods_have_intervals_of_ranks_instead_of_a_diagram(tmp_path, make_study):
    methods = [f"m{place:02}" for place in range(16)]

    def change(row):
        return {**row, "rmse": 1.0 + methods.index(row["method"]) + 0.01 * row["split"]}

    sets = ["boston", "concrete", "energy", "wine", "yacht"]
    (ax,) = report.figures(make_study(tmp_path / "s", methods, sets, change=change))["ranks-rmse"].axes
    assert [text.get_text() for text in ax.texts] == methods


def test_the_pareto_front_has_no_dominated_method(folder):
    """A better method takes longer here, so that all three are on the front."""
    context = ReportContext(merge.merge([folder]))
    board = next(board for board in context.leaderboards if board.score.name == "rmse")
    (ax,) = loss_and_time(board, context.styles).figure.axes
    (front,) = [line.get_xydata().tolist() for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert len(front) == 3
    assert [loss for _, loss in front] == sorted((loss for _, loss in front), reverse=True)
    assert {text.get_text() for text in ax.texts} - {""} == set(METHODS)
    points = [Point("a", 1.0, 3.0, False), Point("b", 2.0, 4.0, False), Point("c", 3.0, 1.0, False)]
    assert [point.method for point in inline_charts.front(points)] == ["a", "c"]
