"""Classification: scores, missing classes, failures with their reasons, refused plans."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import Plan
from ep_bench.types import SCORE_COLUMNS, Record
from tests.runner.support import plan_of

LOGISTIC = '{use: "sklearn.linear_model:LogisticRegression", label: logistic, standardize: true}'
TREE = '{use: "sklearn.tree:DecisionTreeClassifier", label: tree}'
CONSTANT = '{use: "ep_bench.baselines:ConstantClassifier", label: constant}'
OF_NUMBERS = {"rmse", "mae", "crps", "coverage95", "ll_gaussian", "se_std", "pit_error", "train_rmse", "target_std"}


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a data set of 60 points; three classes depend on the first input, and one has a single point."""
    monkeypatch.setitem(methods.REGISTRY, "discriminant", "tests.discriminant")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    kinds = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, "red", "blue").astype("U8")
    kinds[7] = "rare"
    lines = [f"{a!r},{kind},{b!r}" for (a, b), kind in zip(X.tolist(), kinds, strict=True)]
    (tmp_path / "mine.csv").write_text("\n".join(["a,kind,b", *lines]))


def planned(tmp_path: Path, *entries: str, datasets: str = "", splits: str = "{scheme: kfold, folds: 5}") -> Plan:
    mine = datasets or "{name: mine, csv: mine.csv, target: kind, task: classification}"
    listed = "".join(f"  - {entry}\n" for entry in entries)
    return plan_of(tmp_path, f"study: s\ndatasets: [{mine}]\nsplits: {splits}\nmethods:\n{listed}")


def records(plan: Plan) -> dict[int, Record]:
    return {cell.job.cell.split: run_cell(cell.job) for cell in plan.cells}


def test_classification_has_only_scores_of_classes(tmp_path: Path) -> None:
    found = records(planned(tmp_path, "discriminant"))
    for record in found.values():
        row = record.row
        assert (row["status"], row["reason"]) == ("ok", "")
        assert {"ll", "error_rate", "brier", "train_ll", "fit_seconds"} <= row.keys()
        assert not OF_NUMBERS & row.keys()
        assert all(math.isfinite(row[name]) for name in SCORE_COLUMNS if name in row)
        assert -1.2 < row["ll"] < 0.0 <= row["error_rate"] < 0.6
        assert record.notes["rows"].keys() == {"error", "ll"}
        assert np.mean(record.notes["rows"]["ll"]) == pytest.approx(row["ll"], rel=1e-3)
        assert record.trace == {"objective": [0.0]}


def test_a_registry_method_handles_a_class_without_training_points(tmp_path: Path) -> None:
    """The only point of the class `rare` is a test point in one split."""
    found = records(planned(tmp_path, "discriminant"))
    worst = min(min(record.notes["rows"]["ll"]) for record in found.values())
    assert worst < -2.5
    assert all(record.row["status"] == "ok" for record in found.values())


def test_an_external_class_without_the_class_fails_and_names_it(tmp_path: Path) -> None:
    found = records(planned(tmp_path, LOGISTIC))
    failed = [record.row for record in found.values() if record.row["status"] != "ok"]
    assert len(failed) == 1
    assert (
        failed[0]["reason"] == "non-finite ll: 1 of 12 test points belong to classes with predicted probability 0: rare"
    )
    assert "ll" not in failed[0]
    assert math.isfinite(failed[0]["error_rate"])


def test_classes_alone_have_no_log_likelihood(tmp_path: Path) -> None:
    found = records(planned(tmp_path, '{use: "sklearn.svm:LinearSVC", label: svm}'))
    for record in found.values():
        assert record.row["status"] == "ok"
        assert record.row["reason"] == "no log-likelihood: the method gives classes without probabilities"
        assert "ll" not in record.row
        assert "error_rate" in record.row


def test_tuning_by_log_likelihood_and_by_error_rate(tmp_path: Path) -> None:
    for score in ("ll", "error_rate"):
        plan = planned(tmp_path, f"{{use: discriminant, tune: {{trials: 3, score: {score}}}}}")
        record = run_cell(plan.cells[1].job)
        assert record.row["status"] == "ok", record.row
        trials = record.notes["tune"]["trials"]
        assert len(trials) == 3
        assert all((trial["score"] < 0.0) == (score == "ll") for trial in trials)
        pick = min if score == "error_rate" else max
        best = trials[record.notes["tune"]["best"]]["score"]
        assert best == pick(trial["score"] for trial in trials)


def refused(tmp_path: Path, *entries: str, **more: Any) -> str:
    with pytest.raises(UserError) as error:
        planned(tmp_path, *entries, **more)
    return str(error.value)


def test_a_method_of_the_other_task_is_refused(tmp_path: Path) -> None:
    text = refused(tmp_path, "pbp", LOGISTIC)
    words = "pbp supports regression only; data sets for classification: mine; allowed: dgp_ep, ep_nn, discriminant"
    assert f"study.yaml:5: methods: {words}" in text
    assert "logistic" not in text
    assert "sklearn.linear_model:LogisticRegression" in text
    text = refused(tmp_path, LOGISTIC, "discriminant", datasets="friedman1, cubic")
    assert "logistic supports classification only; data sets for regression: friedman1, cubic; allowed: " in text
    assert "methods: discriminant supports classification only" in text.splitlines()[1]


def test_tasks_may_be_mixed_if_methods_support_both(tmp_path: Path) -> None:
    mine = "{name: mine, csv: mine.csv, target: kind, task: classification}"
    plan = planned(tmp_path, '{use: "sklearn.pipeline:Pipeline", label: p, steps: []}', datasets=f"cubic, {mine}")
    assert len(plan.cells) == 10
    assert "supports regression only" in refused(tmp_path, "pbp", datasets=f"cubic, {mine}")


def test_the_lock_and_the_factors_contain_the_task(tmp_path: Path) -> None:
    plan = planned(tmp_path, CONSTANT)
    assert plan.lock()["datasets"]["mine"]["task"] == "classification"
    assert plan.cells[0].job.cell.factors["dataset"]["task"] == "classification"
    regression = planned(tmp_path, '{use: "ep_bench.baselines:ConstantRegressor"}', datasets="cubic")
    assert "task" not in regression.lock()["datasets"]["cubic"]
    assert "task" not in regression.cells[0].job.cell.factors["dataset"]


def test_glass_runs_although_a_split_lacks_classes(tmp_path: Path) -> None:
    plan = planned(tmp_path, LOGISTIC, CONSTANT, TREE, datasets="glass", splits="{scheme: standard, count: 3}")
    found = [run_cell(cell.job) for cell in plan.cells]
    assert {record.row["status"] for record in found if record.row["method"] != "tree"} == {"ok"}
    store.write_rows(plan.folder / store.RESULTS, [record.row for record in found])
    tree = [record.row for record in found if record.row["method"] == "tree"]
    assert all(row["status"] == "ok" or row["reason"].startswith("non-finite ll: ") for row in tree)
