"""Predictions over one input in the report."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.errors import UserError
from ep_bench.report import figures, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import function_panels
from ep_bench.results import store
from ep_bench.types import Record
from tests.report.synthetic import complete

GRID = np.linspace(-6.0, 6.0, 241)


def curve(row, *, std=True, truth=True):
    x = np.linspace(-4.0, 4.0, 18) + 0.01 * row["split"]
    return {
        "grid": GRID.tolist(),
        "mean": (20.0 * GRID).tolist(),
        "std": (3.0 + np.abs(GRID)).tolist() if std else None,
        "truth": (GRID**3).tolist() if truth else None,
        "x_train": x.tolist(),
        "y_train": (x**3).tolist(),
        "x_test": [0.5, 1.5],
        "y_test": [0.0, 3.0],
    }


def write(folder, keep=lambda row: curve(row) if row["dataset"] == "cubic" else None):
    for row in store.read_rows(folder / store.RESULTS):
        found = keep(row)
        store.write_record(folder, Record(row=row, factors={}, notes={} if found is None else {"curve": found}))
    return complete(folder)


def pictures(folder):
    (section,) = function_panels.sections(ReportContext(merge.merge([folder])))
    return section.pictures


def panels(picture):
    return {ax.get_title(): ax for ax in picture.figure.axes if ax.get_title()}


def labels(ax):
    return {artist.get_label() for artist in (*ax.lines, *ax.collections)}


@pytest.fixture
def folder(tmp_path, make_study):
    return write(make_study(tmp_path / "s", ("pbp", "ridge", "gp"), ("cubic", "boston"), 3))


def test_one_panel_per_method_of_the_first_split(folder):
    (picture,) = pictures(folder)
    assert picture.name == "functions-cubic"
    assert "split 0" in picture.caption
    found = panels(picture)
    assert list(found) == ["pbp", "ridge", "gp"]
    assert labels(found["pbp"]) == {"mean ± 3 sd", "true function", "mean", "data", "test data"}
    (mean,) = (line for line in found["pbp"].lines if line.get_label() == "mean")
    np.testing.assert_allclose(mean.get_ydata(), 20.0 * GRID)
    (band,) = found["pbp"].collections
    reach = band.get_paths()[0].get_extents()
    np.testing.assert_allclose((reach.ymin, reach.ymax), (-20.0 * 6 - 3 * 9.0, 20.0 * 6 + 3 * 9.0))


def test_a_method_without_standard_deviations_has_only_its_mean(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ("pbp", "tree"), ("own",), 2)
    write(folder, lambda row: curve(row, std=row["method"] == "pbp", truth=False))
    (picture,) = pictures(folder)
    assert labels(panels(picture)["tree"]) == {"mean", "data", "test data"}
    assert "mean ± 3 sd" in picture.svg
    assert "true function" not in picture.svg
    assert "true function" not in picture.caption


def test_a_panel_of_another_split_names_it(tmp_path, make_study):
    def keep(row):
        return None if row["method"] == "gp" and row["split"] == 0 else curve(row)

    def change(row):
        failed = row["method"] == "gp" and row["split"] == 0
        return {**row, "status": "failed"} if failed else row

    folder = write(make_study(tmp_path / "s", ("pbp", "gp"), ("cubic",), 2, change=change), keep)
    (picture,) = pictures(folder)
    assert list(panels(picture)) == ["pbp (split 0)", "gp (split 1)"]
    assert "the split in the title of each panel" in picture.caption


def test_a_band_that_explodes_does_not_flatten_the_rest(tmp_path, make_study):
    def keep(row):
        wide = {"std": (1e6 * np.ones_like(GRID)).tolist()} if row["method"] == "gp" else {}
        return curve(row) | wide

    folder = write(make_study(tmp_path / "s", ("pbp", "gp"), ("cubic",), 2), keep)
    low, high = panels(pictures(folder)[0])["pbp"].get_ylim()
    assert -500 < low < -216
    assert 216 < high < 500


@pytest.mark.parametrize("count", [1, 2, 7])
def test_no_words_overlap(count, no_overlap):
    kept = curve({"split": 0})
    methods = [f"method {i} of a long family with options" if i % 3 == 0 else f"m{i}" for i in range(count)]
    found = [function_panels._panel(method, kept) for method in methods]
    (picture,) = function_panels._figures(found, "functions-x", "About: ")
    assert len(panels(picture)) == count
    no_overlap(picture.figure)


def test_many_methods_make_several_figures():
    found = [function_panels._panel(f"m{i}", curve({"split": 0})) for i in range(function_panels.PANELS + 2)]
    first, second = function_panels._figures(found, "functions-x", "About: ")
    assert (first.name, second.name) == ("functions-x-1", "functions-x-2")
    assert (len(panels(first)), len(panels(second))) == (function_panels.PANELS, 2)


def test_the_figure_is_in_the_python_api(folder):
    figure = figures.predictions(folder, "cubic")
    assert figure.axes[0].get_title() == "pbp"
    one = figures.predictions(folder, "cubic", select=["method=pbp"])
    assert len(one.axes) == 1
    with pytest.raises(UserError, match="no stored predictions over one input; found 'boston'; allowed: cubic"):
        figures.predictions(folder, "boston")
