"""Training curves in the report: figures, numbers of splits, and the figures of a fresh clone."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import training_curves
from ep_bench.results import store
from ep_bench.types import Record
from tests.report.synthetic import complete

LENGTHS = {"pbp": 40, "vi": 400, "gp": 0}


def write(folder, trace):
    """Write a cell file with a trace for every row of a study."""
    for row in store.read_rows(folder / store.RESULTS):
        store.write_record(folder, Record(row=row, factors={}, trace=trace(row)))
    return complete(folder)


def usual(row):
    epochs = np.arange(1.0, LENGTHS[row["method"]] + 1)
    if not len(epochs):
        return {}
    values = 0.3 + (1 + 0.1 * row["split"]) * np.exp(-epochs / 20)
    own = {"undone": [0.0] * len(epochs)} if row["method"] == "pbp" else {"objective": (-500 * values).tolist()}
    return {"noise_deviation": values.tolist(), **own}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_study):
    """Return the folder of a study with its report."""
    folder = make_study(tmp_path_factory.mktemp("r") / "s", ("pbp", "vi", "gp"), ("boston", "yacht"), 3)
    build([write(folder, usual)])
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return drawn(folder)


def drawn(*folders, all_figures=None):
    """Return the section of training curves."""
    (section,) = training_curves.sections(ReportContext(merge.merge(folders), all_figures))
    return section


def axes(picture):
    return {ax.get_title(): ax for ax in picture.figure.axes}


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_one_figure_per_quantity_and_one_panel_per_data_set(found):
    objective, noise, undone = found.pictures
    assert [one.name for one in (objective, noise)] == ["training-objective", "training-noise_deviation"]
    assert lines(axes(undone)["boston (3 splits)"]).keys() == {"pbp"}
    assert list(axes(noise)) == ["boston (3 splits)", "yacht (3 splits)"]
    panel = axes(noise)["boston (3 splits)"]
    assert lines(panel).keys() == {"pbp", "vi"}  # gp traces nothing
    assert lines(axes(objective)["boston (3 splits)"]).keys() == {"vi"}


def test_lines_are_medians_in_the_traces_unit(found):
    line = lines(axes(found.pictures[1])["boston (3 splits)"])["pbp"]
    epochs = np.arange(1.0, 41.0)
    np.testing.assert_array_equal(line.get_xdata(), epochs)
    np.testing.assert_allclose(line.get_ydata(), 0.3 + 1.1 * np.exp(-epochs / 20), rtol=1e-3)


def test_an_objective_is_drawn_as_fraction_of_its_change(found):
    line = lines(axes(found.pictures[0])["yacht (3 splits)"])["vi"]
    assert (line.get_ydata()[0], line.get_ydata()[-1]) == (0.0, 1.0)
    assert np.all(np.diff(line.get_ydata()) >= 0)


def test_very_different_numbers_of_epochs_share_a_logarithmic_axis(found, tmp_path, make_study):
    assert {ax.get_xscale() for ax in found.pictures[1].figure.axes} == {"log"}
    near = write(make_study(tmp_path / "near", ("pbp",), ("boston",), 2), usual)
    assert {ax.get_xscale() for ax in drawn(near).pictures[0].figure.axes} == {"linear"}


def test_curves_without_a_finite_value_report_too(tmp_path, make_study):
    def odd(row):
        infinite = row["dataset"] == "boston"
        return {"objective": [np.nan, np.inf, -np.inf] if infinite else [2.0, np.nan, 1.0], "flat": [1.0, 1.0]}

    folder = write(make_study(tmp_path / "s", ("pbp",), ("boston", "yacht"), 2), odd)
    build([folder])
    picture = drawn(folder).pictures[0]
    line = lines(axes(picture)["yacht (2 splits)"])["pbp"]
    np.testing.assert_allclose(line.get_ydata(), [0.0, np.nan, 1.0])
