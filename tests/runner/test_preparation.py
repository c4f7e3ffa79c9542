"""Preparation of a user's inputs: fitted to the training points of a split only, in cells and in searches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import data, tuning
from ep_bench.errors import UserError
from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import Plan, make_plan
from ep_bench.spec import read_study
from ep_bench.types import Array, Dataset, SplitScheme

RECORDER = """
import numpy as np
from ep_bench.baselines import ConstantRegressor

SEEN = []

class Recorder(ConstantRegressor):
    def __init__(self, shift=0.0):
        self.shift = shift
    def fit(self, X, y):
        SEEN.append(("fit", X.copy()))
        return super().fit(X, y)
    def predict(self, X, return_std=False):
        SEEN.append(("predict", X.copy()))
        return super().predict(X, return_std=return_std)

class Accepts:
    accepts_missing = True
    def fit(self, X, y):
        SEEN.append(("fit", X.copy()))
        self.mean = y.mean()
        return self
    def predict(self, X, return_std=False):
        SEEN.append(("predict", X.copy()))
        return np.full(len(X), self.mean), np.ones(len(X))
"""
CHOICES = "missing: median, categories: onehot, dates: days"


def rows(n: int = 40) -> list[str]:
    """Return lines with holes whose values differ much between data points; only the last has the kind "rare"."""
    stream = np.random.default_rng(0)
    sizes = np.exp(3.0 * stream.normal(size=n))
    kinds = [*stream.choice(["red", "green", ""], size=n - 1), "rare"]
    return [f"{'' if i % 3 == 0 else sizes[i]},{kinds[i]},2024-01-{i % 28 + 1:02d},{stream.normal()}" for i in range(n)]


def plan_of(folder: Path, choices: str = CHOICES, method: str = '"./rec.py:Recorder"', more: str = "") -> Plan:
    (folder / "rec.py").write_text(RECORDER)
    (folder / "mine.csv").write_text("size,kind,day,y\n" + "\n".join(rows()) + "\n")
    (folder / "s.yaml").write_text(
        f"study: s\ndatasets: [{{name: mine, csv: mine.csv, target: y, {choices}}}]\n"
        f"splits: {{scheme: holdout, test_rows: 8}}\nmethods: [{{use: {method}, label: A{more}}}]\n"
    )
    plan = make_plan(read_study(folder / "s.yaml"), folder / "results")
    assert isinstance(plan, Plan)
    return plan


def seen(folder: Path, **given: str) -> tuple[list[tuple[str, Array]], Dataset, Any]:
    """Return the inputs that the method saw, the data set and the record of the only cell."""
    (planned,) = plan_of(folder, **given).cells
    record = run_cell(planned.job)
    module = next(each for each in _modules() if each.__file__ == str(folder / "rec.py"))
    return module.SEEN, data.load(planned.job.dataset), record


def _modules() -> list[Any]:
    import sys

    return [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) and hasattr(each, "SEEN")]


def test_inputs_are_prepared_by_the_training_points_only(tmp_path: Path) -> None:
    found, dataset, record = seen(tmp_path)
    assert record.row["status"] == "ok", record.row["reason"]
    train, test = found[0][1], found[1][1]
    assert (found[0][0], found[1][0]) == ("fit", "predict")
    known = dataset.X[:32, 0][~np.isnan(dataset.X[:32, 0])]
    assert np.median(known) != np.nanmedian(dataset.X[:, 0])
    np.testing.assert_array_equal(train[np.isnan(dataset.X[:32, 0]), 0], np.median(known))
    np.testing.assert_array_equal(test[np.isnan(dataset.X[32:, 0]), 0], np.median(known))
    assert train.shape[1] == 4  # size, green, red, day: the category of a test point alone is none
    np.testing.assert_array_equal(test[-1, 1:3], [0.0, 0.0])
    assert test[0, 3] == np.datetime64("2024-01-05").astype(int)
    assert train.flags.c_contiguous


def test_ordinal_gives_unknown_categories_minus_1(tmp_path: Path) -> None:
    choices = "missing: most_frequent, categories: {kind: ordinal}, dates: days"
    found, _, _ = seen(tmp_path, choices=choices)
    assert set(found[0][1][:, 1]) == {0.0, 1.0}
    assert found[1][1][-1, 1] == -1.0


def test_kept_missing_categories_are_one_with_onehot_and_nan_with_ordinal(tmp_path: Path) -> None:
    for name, choice in (("a", "onehot"), ("b", "ordinal")):
        (tmp_path / name).mkdir()
        choices = f"missing: {{size: median, kind: keep}}, categories: {choice}, dates: days"
        method = '"./rec.py:Accepts"'
        found, dataset, _ = seen(tmp_path / name, choices=choices, method=method)
        train = found[0][1]
        is_missing = np.isnan(dataset.X[:32, 1])
        if choice == "onehot":
            np.testing.assert_array_equal(train[:, 3] == 1.0, is_missing)
            assert np.isfinite(train).all()
        else:
            np.testing.assert_array_equal(np.isnan(train[:, 1]), is_missing)


def test_a_search_prepares_by_the_points_that_its_trials_are_fitted_to(tmp_path: Path) -> None:
    tune = ", tune: {trials: 1, fraction: 0.25, space: {shift: {uniform: [0.0, 1.0]}}}"
    found, dataset, record = seen(tmp_path, more=tune)
    assert record.row["status"] == "ok", record.row["reason"]
    (planned,) = plan_of(tmp_path, more=tune).cells
    fitting, validation = tuning.validation_rows(32, 0.25, planned.job.cell.seed)
    prepared = data.fit_inputs(dataset.preparation, dataset.X[fitting])
    np.testing.assert_array_equal(found[0][1], prepared(dataset.X[fitting]))
    np.testing.assert_array_equal(found[1][1], prepared(dataset.X[validation]))
    assert np.nanmedian(dataset.X[fitting, 0]) != np.nanmedian(dataset.X[:32, 0])


def test_points_that_recalibrate_are_prepared_as_the_training_points(tmp_path: Path) -> None:
    found, dataset, record = seen(tmp_path, more=", recalibrate: conformal, fraction: 0.25")
    assert record.row["status"] == "ok", record.row["reason"]
    whole = data.fit_inputs(dataset.preparation, dataset.X[:32])
    known = {point.tobytes() for point in whole(dataset.X)}
    for _, inputs in found:
        assert {point.tobytes() for point in inputs} <= known


def test_choices_are_factors_of_their_own_cells_only(tmp_path: Path) -> None:
    factors = plan_of(tmp_path).cells[0].job.cell.factors["dataset"]
    assert (factors["missing"], factors["categories"], factors["dates"]) == ("median", "onehot", "days")
    choices = "missing: {size: median, kind: keep}, categories: {kind: onehot}, dates: days"
    factors = plan_of(tmp_path, choices=choices).cells[0].job.cell.factors["dataset"]
    assert factors["missing"] == {"kind": "keep", "size": "median"}
    ref = plan_of(tmp_path).cells[0].job.dataset
    plain = type(ref)("m", "m", csv="x", target="y", missing="error", categories={}, dates={"a": "error"})
    assert plain.options() == {"target": "y"}
    assert hash(plain) == hash(type(ref)("m", "m", csv="x", target="y"))


@pytest.mark.parametrize("scheme", ["standard", "kfold", "gap"])
def test_splits_do_not_depend_on_the_choices(tmp_path: Path, scheme: str) -> None:
    one, two = (
        data.load(plan_of(tmp_path, choices=c).cells[0].job.dataset)
        for c in (CHOICES, CHOICES.replace("onehot", "ordinal"))
    )
    a, b = (data.make_split(SplitScheme(scheme), each, 1) for each in (one, two))
    np.testing.assert_array_equal(a.test, b.test)


KEPT = "missing: keep, categories: onehot, dates: days"


@pytest.mark.parametrize(
    ("method", "is_accepted"),
    [
        ('"./rec.py:Recorder"', False),
        ('"./rec.py:Accepts"', True),
        ("gp", False),
        ('"sklearn.ensemble:HistGradientBoostingRegressor"', True),
        ('"sklearn.linear_model:BayesianRidge"', False),
    ],
)
def test_kept_missing_values_are_refused_for_methods_that_accept_none(
    tmp_path: Path, method: str, is_accepted: bool
) -> None:
    if is_accepted:
        assert len(plan_of(tmp_path, choices=KEPT, method=method).cells) == 1
        return
    with pytest.raises(UserError, match="A accepts no missing inputs; mine keeps those of size"):
        plan_of(tmp_path, choices=KEPT, method=method)


def test_missing_values_do_not_reach_a_method_that_does_not_declare_them(tmp_path: Path) -> None:
    (planned,) = plan_of(tmp_path, choices=KEPT, method='"./rec.py:Accepts"').cells
    job = planned.job
    for use in ("./rec.py:Recorder", "gp"):
        record = run_cell(replace(job, use=use, cell=replace(job.cell, factors={**job.cell.factors, "version": None})))
        assert record.row["status"] == "failed"
        assert "missing values (NaN) at" in record.row["reason"]
    assert run_cell(job).row["status"] == "ok"


@pytest.mark.parametrize("standardize", [True, False])
def test_missing_values_remain_so_when_the_others_are_standardised(tmp_path: Path, standardize: bool) -> None:
    method, more = '"./rec.py:Accepts"', f", standardize: {str(standardize).lower()}"
    found, dataset, record = seen(tmp_path, choices=KEPT, method=method, more=more)
    assert record.row["status"] == "ok", record.row["reason"]
    sizes, given = found[0][1][:, 0], dataset.X[:32, 0]
    np.testing.assert_array_equal(np.isnan(sizes), np.isnan(given))
    assert (abs(np.nanmean(sizes)) < 1e-9) == standardize
