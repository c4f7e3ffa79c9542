"""Figures of results as matplotlib figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ep_bench.errors import UserError
from ep_bench.report import figures, inline_charts
from ep_bench.report.inline_charts import Point

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


def test_every_function_returns_a_figure(folder):
    panels = figures.score_panels(folder, score="rmse")
    assert [ax.get_title() for ax in panels.axes] == [
        f"{d} (5 splits)" for d in ("boston", "concrete", "energy", "wine", "yacht")
    ]
    for figure in (panels, figures.critical_difference(folder, score="rmse"), figures.calibration(folder)):
        assert isinstance(figure, Figure)


def test_methods_are_sorted_by_rank(folder):
    first = figures.score_panels(folder, score="rmse").axes[0]
    assert [text.get_text() for text in first.texts] == ["hmc", "pbp", "gp"]
    assert first.figure._supxlabel.get_text() == "RMSE (units of the target), ← better"


def test_many_methods_have_intervals_of_ranks_instead_of_a_diagram(tmp_path, make_study):
    methods = [f"m{place:02}" for place in range(16)]

    def change(row):
        return {**row, "rmse": 1.0 + methods.index(row["method"]) + 0.01 * row["split"]}

    sets = ["boston", "concrete", "energy", "wine", "yacht"]
    figure = figures.critical_difference(make_study(tmp_path / "s", methods, sets, change=change), score="rmse")
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == methods


def test_the_pareto_front_has_no_dominated_method(folder):
    """A better method takes longer here, so that all three are on the front."""
    figure = figures.score_against_time(folder, score="rmse")
    (ax,) = figure.axes
    (front,) = [line.get_xydata().tolist() for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert len(front) == 3
    assert [loss for _, loss in front] == sorted((loss for _, loss in front), reverse=True)
    assert {text.get_text() for text in ax.texts} - {""} == set(METHODS)
    points = [Point("a", 1.0, 3.0, False), Point("b", 2.0, 4.0, False), Point("c", 3.0, 1.0, False)]
    assert [point.method for point in inline_charts.front(points)] == ["a", "c"]


def test_wrong_input_is_named(folder, tmp_path):
    with pytest.raises(UserError, match="no score `rsme`; allowed: rmse, ll, crps; did you mean `rmse`"):
        figures.score_panels(folder, score="rsme")
    with pytest.raises(UserError, match="at least one"):
        figures.calibration()
    with pytest.raises(UserError, match="no results found"):
        figures.calibration(tmp_path)


def test_figures_of_an_experiment_are_returned_by_name(folder):
    assert list(figures.experiment(ROOT / "results" / "toy")) == ["cubic-toy-toy"]
    with pytest.raises(UserError, match="figures of an experiment: `experiment`"):
        figures.score_panels(ROOT / "results" / "toy")
    with pytest.raises(UserError, match="is not the folder of an experiment"):
        figures.experiment(folder)
