"""Rows and trials of tuned cells, recomputed directly."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ep_bench import Estimator, adapters, data, estimator, tuning
from ep_bench.runner import cell
from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import make_plan
from ep_bench.runner.pool import run_jobs
from ep_bench.spec import read_study
from ep_bench.types import COLUMNS, Record
from tests.runner.tuning_support import RIDGE, plan_of, with_methods

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_methods(tmp_path)


def run_one(folder: Path, entry: str, **study: str) -> Record:
    return run_cell(plan_of(folder, entry, **study).cells[0].job)


def trials_of(record: Record) -> list[dict[str, Any]]:
    """Return the trials without their times."""
    return [{k: v for k, v in trial.items() if "seconds" not in k} for trial in record.notes["tune"]["trials"]]


def best_of(record: Record) -> Mapping[str, Any]:
    note = record.notes["tune"]
    options: Mapping[str, Any] = note["trials"][note["best"]]["options"]
    return options


def test_trials_scored_by_rmse_have_the_means_of_a_whole_fit(folder: Path) -> None:
    entry = "{use: bp, hidden: [4], epochs: 3, tune: {trials: 3, fraction: 0.2, score: rmse}}"
    job = plan_of(folder, entry).cells[0].job
    diabetes = data.load_dataset("diabetes")
    train, _ = data.standard_split(442, 0)
    fitting, validation = (train[rows] for rows in tuning.validation_rows(len(train), 0.2, job.cell.seed))
    for trial in trials_of(run_cell(job)):
        model = Estimator("bp", hidden=[4], epochs=3, **trial["options"], random_state=job.cell.seed)
        means = model.fit(diabetes.X[fitting], diabetes.y[fitting]).predict(diabetes.X[validation])
        assert trial["score"] == pytest.approx(np.sqrt(np.mean((diabetes.y[validation] - means) ** 2)), rel=1e-12)


def test_trials_and_row_by_hand(folder: Path) -> None:
    job = plan_of(folder, RIDGE).cells[1].job
    record = run_cell(job)
    diabetes = data.load_dataset("diabetes")
    train, test = data.standard_split(442, 1)
    fitting, validation = (train[rows] for rows in tuning.validation_rows(len(train), 0.2, job.cell.seed))
    assert len(validation) == record.notes["tune"]["validation_rows"] == 80

    def rmse(alpha: float, fitted: Any, judged: Any) -> float:
        model = Ridge(alpha=alpha).fit(diabetes.X[fitted], diabetes.y[fitted])
        return float(np.sqrt(np.mean((diabetes.y[judged] - model.predict(diabetes.X[judged])) ** 2)))

    trials = trials_of(record)
    assert len(trials) == 8
    assert trials[0]["options"] == {"alpha": 1.0}
    for trial in trials:
        assert trial["score"] == pytest.approx(rmse(trial["options"]["alpha"], fitting, validation), rel=1e-12)
    best = best_of(record)["alpha"]
    assert best == min(trials, key=lambda trial: trial["score"])["options"]["alpha"]
    assert record.row["rmse"] == pytest.approx(rmse(best, train, test), rel=1e-12)
    assert record.row.keys() <= set(COLUMNS)
    spent = sum(trial["seconds"] for trial in record.notes["tune"]["trials"])
    assert record.row["tune_seconds"] > spent > 0
    assert record.row["fit_seconds"] < record.row["tune_seconds"]


def test_a_registry_method_by_hand(folder: Path) -> None:
    entry = "{use: pbp, epochs: 3, tune: {trials: 4, space: {epochs: {int: [1, 4]}, hidden: [[5], [5, 5]]}}}"
    record = run_one(folder, entry)
    diabetes = data.load_dataset("diabetes")
    train, test = data.standard_split(442, 0)
    X, y, seed = diabetes.X, diabetes.y, record.row["seed"]
    fitting, validation = (train[rows] for rows in tuning.validation_rows(len(train), 0.2, seed))
    trials = trials_of(record)
    assert trials[0]["options"] == {"epochs": 3, "hidden": [50]}
    for trial in trials:
        model = Estimator("pbp", **trial["options"], random_state=seed).fit(X[fitting], y[fitting])
        assert trial["score"] == pytest.approx(
            model.predict_dist(X[validation]).logpdf(y[validation]).mean(), rel=1e-12
        )
    model = Estimator("pbp", **best_of(record), random_state=seed).fit(X[train], y[train])
    assert record.row["ll"] == pytest.approx(model.predict_dist(X[test]).logpdf(y[test]).mean(), rel=1e-12)
    assert len(record.trace["noise_deviation"]) == best_of(record)["epochs"]


def test_a_tuned_cell_is_a_plain_one_with_the_best_options(folder: Path) -> None:
    """Trials must not advance the global random generators, from which the method draws."""
    for use in ('"./m.py:Global"', '"sklearn.ensemble:RandomForestRegressor"'):
        option = "a: {uniform: [0, 50]}" if "m.py" in use else "n_estimators: {int: [1, 9]}"
        record = run_one(folder, f"{{use: {use}, tune: {{trials: 5, score: rmse, space: {{{option}}}}}}}")
        ((name, value),) = best_of(record).items()
        plain = run_one(folder, f"{{use: {use}, {name}: {value!r}}}")
        assert record.row["rmse"] == plain.row["rmse"]
        assert record.row["train_rmse"] == plain.row["train_rmse"]


def test_all_methods_use_the_same_validation_points(folder: Path) -> None:
    space = "tune: {trials: 3, space: {a: {uniform: [0, 1]}}}"
    plan = plan_of(folder, f'{{use: "./m.py:Spy", {space}}}', f'{{use: "./m.py:Other", {space}}}')
    for planned_cell in plan.cells:
        run_cell(planned_cell.job)
    spy, other = (adapters.resolve(f"./m.py:{name}", folder).seen for name in ("Spy", "Other"))
    assert len(spy) == len(other) == 2 * (3 + 1)
    for mine, theirs in zip(spy, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (
        len({tuple(fitted) for fitted in spy}) == 4
    )  # two splits, each with the fitting points and all training points
    diabetes = data.load_dataset("diabetes")
    train, _ = data.standard_split(442, 0)
    np.testing.assert_array_equal(spy[3], diabetes.y[train])
    assert [len(fitted) for fitted in spy[:4]] == [318, 318, 318, 398]


def test_no_trial_uses_test_points(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(60, 3)), rng.normal(size=60)])
    records = []
    for planted in (0.0, 1e6):
        changed = rows.copy()
        changed[50:] += planted * rng.normal(size=(10, 4))
        lines = "\n".join(",".join(map(repr, row)) for row in changed.tolist())
        place = folder / f"planted {planted}"  # separate files, because a process caches data sets
        place.mkdir()
        (place / "own.csv").write_text("a,b,c,y\n" + lines)
        own = "study: s\ndatasets: [{name: own, csv: own.csv, target: y}]\nsplits: {scheme: holdout, test_rows: 10}\n"
        (place / "h.yaml").write_text(f"{own}methods:\n  - {RIDGE}\n")
        plan = make_plan(read_study(place / "h.yaml"), folder / "results")
        records.append(run_cell(plan.cells[0].job))
    clean, altered = records
    assert trials_of(clean) == trials_of(altered)
    assert clean.row["train_rmse"] == altered.row["train_rmse"]
    assert altered.row["rmse"] > 1000 * clean.row["rmse"]


@pytest.mark.slow
def test_ridge_finds_the_penalty_of_its_prior(folder: Path) -> None:
    """Weights with variance 1 under noise of variance 100: the posterior mean is ridge regression with penalty 100."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 150))
    y = X @ rng.normal(size=150) + 10.0 * rng.normal(size=600)
    names = [f"x{i}" for i in range(150)]
    lines = "\n".join(",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist())
    (folder / "own.csv").write_text(",".join([*names, "y"]) + "\n" + lines)
    entry = RIDGE.replace("trials: 8", "trials: 40, fraction: 0.5").replace("tune:", "alpha: 0.001, tune:")
    record = run_one(folder, entry, datasets="[{name: own, csv: own.csv, target: y}]", splits="count: 1")
    assert 100 / 3 < best_of(record)["alpha"] < 100 * 3
    curve = sorted((trial["options"]["alpha"], trial["score"]) for trial in trials_of(record))
    minimum = min(score for _, score in curve)
    assert minimum < min(curve[0][1], curve[-1][1]) - 0.3  # the optimum is inside the range
    plain = run_one(
        folder, '{use: "sklearn.linear_model:Ridge", alpha: 0.001}',
        datasets="[{name: own, csv: own.csv, target: y}]", splits="count: 1",
    )  # fmt: skip
    assert record.row["rmse"] < plain.row["rmse"]


def test_density_and_error_select_different_options(folder: Path) -> None:
    by_ll = run_one(folder, '{use: "./m.py:Spread", tune: {trials: 30}}')
    assert best_of(by_ll)["off"] == 0.0
    assert 60 < best_of(by_ll)["std"] < 100  # the standard deviation of the targets is 77
    by_rmse = run_one(folder, '{use: "./m.py:Spread", tune: {trials: 30, score: rmse}}')
    assert best_of(by_rmse) == {"std": 1.0, "off": 0.0}  # no trial is better than the start
    assert all(trial["score"] > 0 for trial in trials_of(by_rmse))


def test_a_score_that_only_the_predictions_show_to_be_missing_is_named_in_the_reason(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Hidden", tune: {trials: 2, space: {a: [0, 1]}}}')
    assert record.row["status"] == "failed"
    assert "do not have the score ll; set `score: rmse`" in record.row["reason"]


@pytest.mark.parametrize("score", ["crps", "pinball"])
def test_quantiles_are_tuned_by_their_own_scores(folder: Path, score: str) -> None:
    tune = f"tune: {{trials: 3, score: {score}, space: {{width: [500, 1, 80]}}}}"
    record = run_one(folder, f'{{use: "./m.py:Levels", {tune}}}')
    assert record.row["status"] == "ok"
    assert best_of(record) == {"width": 80}
    assert all(trial["score"] > 0 for trial in trials_of(record))


def test_trials_that_fail_count(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Fails", tune: {trials: 20, space: {a: {uniform: [0.31, 1]}}}}')
    trials = trials_of(record)
    assert record.row["status"] == "ok"
    assert record.row["reason"] == ""  # the final fit has a = 0 and issues no warning
    assert len(trials) == 20
    failed = [trial for trial in trials if trial["score"] is None]
    assert 0 < len(failed) < 19
    assert {trial["reason"] for trial in failed} == {"FloatingPointError: too much of a (m.py:32)"}
    assert {trial["options"]["a"] > 0.5 for trial in failed} == {True}
    warned = [trial for trial in trials if 0.3 < trial["options"]["a"] <= 0.5]
    assert {trial["reason"] for trial in warned} == {"not converged: stopped early"}


def test_a_cell_fails_if_every_trial_fails(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Fails", a: 0.6, tune: {trials: 3, space: {a: {uniform: [0.6, 1]}}}}')
    assert record.row["status"] == "failed"
    assert record.row["reason"] == "all 3 trials failed, 3 of them: FloatingPointError: too much of a (m.py:32)"
    assert "too much of a" in record.traceback
    assert "m.py" in record.traceback
    assert record.notes["tune"]["best"] is None
    assert len(record.notes["tune"]["trials"]) == 3


def test_an_option_that_must_be_given_may_be_searched_instead(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Needs", tune: {trials: 3, space: {a: {uniform: [0, 1]}}}}')
    assert record.row["status"] == "ok"
    assert all(0 <= trial["options"]["a"] <= 1 for trial in trials_of(record))


def test_overrides_move_the_start(folder: Path) -> None:
    tune = "tune: {trials: 2, score: rmse, space: {alpha: [2, 5]}}"
    entry = f'{{use: "sklearn.linear_model:Ridge", label: R, alpha: 2.0, {tune}}}'
    plan = plan_of(folder, entry, head="overrides: {diabetes: {R: {alpha: 5}}}\n")
    assert trials_of(run_cell(plan.cells[0].job))[0]["options"] == {"alpha": 5}
    assert trials_of(run_one(folder, entry))[0]["options"] == {"alpha": 2.0}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_same_numbers_in_other_processes(folder: Path) -> None:
    tune = "tune: {trials: 6, score: rmse, space: {max_depth: {int: [1, 6]}}}"
    entry = f'{{use: "sklearn.ensemble:RandomForestRegressor", {tune}}}'
    jobs = [planned_cell.job for planned_cell in plan_of(folder, entry, RIDGE, splits="count: 1").cells]
    assert all(pickle.loads(pickle.dumps(job)) == job for job in jobs)
    here = {job.cell.key: run_cell(job) for job in jobs}
    for record in run_jobs(jobs, n_jobs=1):
        assert trials_of(record) == trials_of(here[record.key])
        assert record.row["rmse"] == here[record.key].row["rmse"]


@pytest.mark.slow
def test_a_limit_covers_the_search(folder: Path) -> None:
    entry = '{use: "./m.py:Slow", tune: {trials: 100, space: {a: {uniform: [0, 1]}}}}'
    job = plan_of(folder, entry, head="limits: {seconds: 0.7}\n").cells[0].job
    (record,) = run_jobs([job], n_jobs=1)
    assert (record.row["status"], record.row["reason"]) == ("timeout", "over the limit of 0.7 seconds")


def test_kernels_of_every_choice_are_compiled_before_the_clock_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []
    warm_up, search = estimator.warm_up, tuning.search
    monkeypatch.setattr(
        estimator,
        "warm_up",
        lambda use, options, task: events.append(options["hidden"]) or warm_up(use, options, task),
    )
    monkeypatch.setattr(cell.tuning, "search", lambda *a, **k: events.append("search") or search(*a, **k))
    entry = "{use: pbp, epochs: 1, tune: {trials: 2, space: {hidden: [[4], [4, 4]]}}}"
    record = cell.run_cell(plan_of(folder, entry).cells[0].job, started=lambda: events.append("started"))
    assert record.row["status"] == "ok"
    assert events == [[50], [4], [4, 4], "started", "search"]
