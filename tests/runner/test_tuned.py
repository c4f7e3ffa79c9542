"""Tuned cells: their rows and trials recomputed by hand, their factors, their times."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ep_bench import Estimator, adapters, data, estimator, methods, store, tuning
from ep_bench.runner import execute, tuned
from ep_bench.runner import plan as planning
from ep_bench.runner.catalogue import Installed
from ep_bench.runner.execute import run_cell
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan, make_plan
from ep_bench.runner.pool import run_jobs
from ep_bench.spec import read_study
from ep_bench.types import COLUMNS, Record, UserError
from tests.runner.test_plan import finish, planned, states

ROOT = Path(__file__).parents[2]
RIDGE = '{use: "sklearn.linear_model:Ridge", tune: {trials: 8, score: rmse, space: {alpha: {log: [0.001, 1000]}}}}'

SPIES = '''
import time
import numpy as np
from ep_bench.baselines import ConstantRegressor

class Spy(ConstantRegressor):
    """Keeps what it is fitted to."""
    seen = []
    def __init__(self, a=0.5, random_state=None):
        self.a, self.random_state = a, random_state
    def fit(self, X, y):
        type(self).seen.append(np.array(y))
        return super().fit(X, y)

class Other(Spy):
    seen = []

class Spread(ConstantRegressor):
    """Says its deviation and how far its mean is off; its search space is declared."""
    tune_space = {"std": {"log": [1.0, 1000.0]}, "off": [0.0, 500.0]}
    def __init__(self, std=1.0, off=0.0):
        self.std, self.off = std, off
    def predict(self, X, return_std=False):
        mean = super().predict(X) + self.off
        return (mean, np.full(len(X), self.std)) if return_std else mean

class Fails(ConstantRegressor):
    def __init__(self, a=0.0, seed=None):
        self.a = a
    def fit(self, X, y):
        if self.a > 0.5:
            raise FloatingPointError("too much of a")
        if self.a > 0.3:
            import warnings
            from sklearn.exceptions import ConvergenceWarning
            warnings.warn("stopped early", ConvergenceWarning)
        return super().fit(X, y)

class Needs(ConstantRegressor):
    def __init__(self, a):
        self.a = a

class Global(ConstantRegressor):
    """Draws from the global generator."""
    def __init__(self, a=0.5):
        self.a = a
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ += self.a * np.random.normal()
        return self

class Slow(ConstantRegressor):
    def __init__(self, a=0.5):
        self.a = a
    def fit(self, X, y):
        time.sleep(0.25)
        return super().fit(X, y)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(SPIES)
    return tmp_path


def plan_of(
    folder: Path, *entries: str, datasets: str = "[diabetes]", splits: str = "count: 2", head: str = ""
) -> Plan:
    lines = "".join(f"  - {entry}\n" for entry in entries)
    text = f"study: s\n{head}datasets: {datasets}\nsplits: {{scheme: standard, {splits}}}\nmethods:\n{lines}"
    (folder / "s.yaml").write_text(text)
    return make_plan(read_study(folder / "s.yaml", Installed()), folder / "results")


def run_one(folder: Path, entry: str, **study: str) -> Record:
    return run_cell(plan_of(folder, entry, **study).cells[0].job)


def trials_of(record: Record) -> list[dict[str, Any]]:
    """Return the trials without their times."""
    return [{k: v for k, v in trial.items() if k != "seconds"} for trial in record.notes["tune"]["trials"]]


def best_of(record: Record) -> Mapping[str, Any]:
    note = record.notes["tune"]
    options: Mapping[str, Any] = note["trials"][note["best"]]["options"]
    return options


def test_trials_and_row_by_hand(folder: Path) -> None:
    job = plan_of(folder, RIDGE).cells[1].job
    record = run_cell(job)
    diabetes = data.load_dataset("diabetes")
    train, test = data.standard_split(442, 1)
    inner, held = (train[rows] for rows in tuning.validation_rows(len(train), 0.2, job.cell.seed))
    assert len(held) == record.notes["tune"]["validation_rows"] == 80

    def rmse(alpha: float, fitted: Any, judged: Any) -> float:
        model = Ridge(alpha=alpha).fit(diabetes.X[fitted], diabetes.y[fitted])
        return float(np.sqrt(np.mean((diabetes.y[judged] - model.predict(diabetes.X[judged])) ** 2)))

    trials = trials_of(record)
    assert len(trials) == 8
    assert trials[0]["options"] == {"alpha": 1.0}
    for trial in trials:
        assert trial["score"] == pytest.approx(rmse(trial["options"]["alpha"], inner, held), rel=1e-12)
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
    inner, held = (train[rows] for rows in tuning.validation_rows(len(train), 0.2, seed))
    trials = trials_of(record)
    assert trials[0]["options"] == {"epochs": 3, "hidden": [50]}
    for trial in trials:
        model = Estimator("pbp", **trial["options"], random_state=seed).fit(X[inner], y[inner])
        assert trial["score"] == pytest.approx(model.predict_dist(X[held]).logpdf(y[held]).mean(), rel=1e-12)
    model = Estimator("pbp", **best_of(record), random_state=seed).fit(X[train], y[train])
    assert record.row["ll"] == pytest.approx(model.predict_dist(X[test]).logpdf(y[test]).mean(), rel=1e-12)
    assert len(record.trace["noise_deviation"]) == best_of(record)["epochs"]


def test_a_tuned_cell_is_a_plain_one_with_the_best_options(folder: Path) -> None:
    """Also where the method draws from the global generators, which trials must not have moved on."""
    for use in ('"./m.py:Global"', '"sklearn.ensemble:RandomForestRegressor"'):
        option = "a: {uniform: [0, 50]}" if "m.py" in use else "n_estimators: {int: [1, 9]}"
        record = run_one(folder, f"{{use: {use}, tune: {{trials: 5, score: rmse, space: {{{option}}}}}}}")
        ((name, value),) = best_of(record).items()
        plain = run_one(folder, f"{{use: {use}, {name}: {value!r}}}")
        assert record.row["rmse"] == plain.row["rmse"]
        assert record.row["train_rmse"] == plain.row["train_rmse"]


def test_all_methods_meet_the_same_validation_rows(folder: Path) -> None:
    space = "tune: {trials: 3, space: {a: {uniform: [0, 1]}}}"
    plan = plan_of(folder, f'{{use: "./m.py:Spy", {space}}}', f'{{use: "./m.py:Other", {space}}}')
    for planned_cell in plan.cells:
        run_cell(planned_cell.job)
    spy, other = (adapters.resolve(f"./m.py:{name}", folder).seen for name in ("Spy", "Other"))
    assert len(spy) == len(other) == 2 * (3 + 1)
    for mine, theirs in zip(spy, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert len({tuple(fitted) for fitted in spy}) == 4  # of two splits, the part and the whole
    diabetes = data.load_dataset("diabetes")
    train, _ = data.standard_split(442, 0)
    np.testing.assert_array_equal(spy[3], diabetes.y[train])
    assert [len(fitted) for fitted in spy[:4]] == [318, 318, 318, 398]


def test_no_trial_sees_the_test_rows(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(60, 3)), rng.normal(size=60)])
    records = []
    for planted in (0.0, 1e6):
        changed = rows.copy()
        changed[50:] += planted * rng.normal(size=(10, 4))
        lines = "\n".join(",".join(map(repr, row)) for row in changed.tolist())
        place = folder / f"planted {planted}"  # a file of its own each: a process keeps what it has read
        place.mkdir()
        (place / "own.csv").write_text("a,b,c,y\n" + lines)
        own = "study: s\ndatasets: [{name: own, csv: own.csv, target: y}]\nsplits: {scheme: holdout, test_rows: 10}\n"
        (place / "h.yaml").write_text(f"{own}methods:\n  - {RIDGE}\n")
        plan = make_plan(read_study(place / "h.yaml", Installed()), folder / "results")
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
    least = min(score for _, score in curve)
    assert least < min(curve[0][1], curve[-1][1]) - 0.3  # an optimum inside, not at an end
    plain = run_one(
        folder, '{use: "sklearn.linear_model:Ridge", alpha: 0.001}',
        datasets="[{name: own, csv: own.csv, target: y}]", splits="count: 1",
    )  # fmt: skip
    assert record.row["rmse"] < plain.row["rmse"]


def test_density_and_error_look_for_different_things(folder: Path) -> None:
    by_ll = run_one(folder, '{use: "./m.py:Spread", tune: {trials: 30}}')
    assert best_of(by_ll)["off"] == 0.0
    assert 60 < best_of(by_ll)["std"] < 100  # the deviation of the targets is 77
    by_rmse = run_one(folder, '{use: "./m.py:Spread", tune: {trials: 30, score: rmse}}')
    assert best_of(by_rmse) == {"std": 1.0, "off": 0.0}  # the start: nothing is better than it
    assert all(trial["score"] > 0 for trial in trials_of(by_rmse))


def test_without_a_density_the_error_is_the_way(folder: Path) -> None:
    record = run_one(folder, RIDGE.replace("score: rmse, ", ""))
    assert record.row["status"] == "failed"
    assert "`score: rmse`" in record.row["reason"]


def test_trials_that_fail_count(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Fails", tune: {trials: 20, space: {a: {uniform: [0.31, 1]}}}}')
    trials = trials_of(record)
    assert record.row["status"] == "ok"
    assert record.row["reason"] == ""  # of the final fit, which has a = 0 and warns of nothing
    assert len(trials) == 20
    failed = [trial for trial in trials if trial["score"] is None]
    assert 0 < len(failed) < 19
    assert {trial["reason"] for trial in failed} == {"FloatingPointError: too much of a"}
    assert {trial["options"]["a"] > 0.5 for trial in failed} == {True}
    warned = [trial for trial in trials if 0.3 < trial["options"]["a"] <= 0.5]
    assert {trial["reason"] for trial in warned} == {"not converged: stopped early"}


def test_where_every_trial_fails_so_does_the_cell(folder: Path) -> None:
    record = run_one(folder, '{use: "./m.py:Fails", a: 0.6, tune: {trials: 3, space: {a: {uniform: [0.6, 1]}}}}')
    assert record.row["status"] == "failed"
    assert record.row["reason"] == "all 3 trials failed, 3 of them: FloatingPointError: too much of a"
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
def test_the_same_numbers_in_other_processes(folder: Path) -> None:
    tune = "tune: {trials: 6, score: rmse, space: {max_depth: {int: [1, 6]}}}"
    entry = f'{{use: "sklearn.ensemble:RandomForestRegressor", {tune}}}'
    jobs = [planned_cell.job for planned_cell in plan_of(folder, entry, RIDGE).cells]
    assert all(pickle.loads(pickle.dumps(job)) == job for job in jobs)
    here = {job.cell.key: run_cell(job) for job in jobs}
    for record in run_jobs(jobs, n_jobs=2):
        assert trials_of(record) == trials_of(here[record.key])
        assert record.row["rmse"] == here[record.key].row["rmse"]


@pytest.mark.slow
def test_a_limit_covers_the_search(folder: Path) -> None:
    entry = '{use: "./m.py:Slow", tune: {trials: 100, space: {a: {uniform: [0, 1]}}}}'
    job = plan_of(folder, entry, head="limits: {seconds: 1.5}\n").cells[0].job
    (record,) = run_jobs([job], n_jobs=1)
    assert (record.row["status"], record.row["reason"]) == ("timeout", "over the limit of 1.5 seconds")


def test_kernels_of_every_choice_are_compiled_before_the_clock_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []
    warm_up, search = estimator.warm_up, tuning.search
    monkeypatch.setattr(
        tuned.estimator, "warm_up", lambda use, options: events.append(options["hidden"]) or warm_up(use, options)
    )
    monkeypatch.setattr(tuned.tuning, "search", lambda *a, **k: events.append("search") or search(*a, **k))
    entry = "{use: pbp, epochs: 1, tune: {trials: 2, space: {hidden: [[4], [4, 4]]}}}"
    record = execute.run_cell(plan_of(folder, entry).cells[0].job, lambda: events.append("started"))
    assert record.row["status"] == "ok"
    assert events == [[50], [4], [4, 4], "started", "search"]


# The plan


TUNED = """
study: s
datasets: [diabetes, friedman1]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: PBP, epochs: 2, tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
"""
UNTUNED = TUNED.replace(", tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}", "")


def test_tune_is_a_factor_where_it_is_given_and_nowhere_else(tmp_path: Path) -> None:
    plan = planned(tmp_path, TUNED)
    for cell in (p.job.cell for p in plan.cells):
        assert ("tune" in cell.factors) == (cell.method == "PBP")
    factors = plan.cells[0].job.cell.factors
    assert factors["tune"] == {
        "trials": 9, "fraction": 0.25, "space": {"epochs": {"int": [1, 4]}}, "score": "ll",
    }  # fmt: skip
    assert plan.cells[0].job.tune == factors["tune"]
    finish(plan)
    lock = store.read_lock(plan.folder)
    assert lock is not None
    assert lock["methods"]["PBP"]["tune"] == factors["tune"]
    assert "tune" not in lock["methods"]["constant"]
    for cell in store.lock_cells(lock):
        assert store.factor_hash(cell["factors"]) == cell["cell"]


def test_the_seed_of_a_tuned_cell_is_that_of_its_split(tmp_path: Path) -> None:
    ours, theirs = ([p.job.cell.seed for p in planned(tmp_path, text).cells] for text in (TUNED, UNTUNED))
    assert ours == theirs


def test_finished_cells_of_earlier_studies_stay_finished() -> None:
    plan = make_plan(read_study(ROOT / "configs" / "pbp_table1.yaml", Installed()), ROOT / "results")
    assert len(plan.cells) == 165
    assert states(plan) == {"done"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("trials: 9", "trials: 10", "tune.trials: 9 -> 10"),
        ("fraction: 0.25", "fraction: 0.5", "tune.fraction: 0.25 -> 0.5"),
        ("{int: [1, 4]}", "{int: [1, 5]}", "tune.space.epochs.int: [1, 4] -> [1, 5]"),
        ("{int: [1, 4]}", "{log_int: [1, 4]}", "tune.space.epochs.int: [1, 4] -> none"),
        ("fraction: 0.25", "fraction: 0.25, score: rmse", "tune.score: ll -> rmse"),
        ("{int: [1, 4]}", "{int: [1, 4]}, hidden: [[5], [6]]", "tune.space.hidden: none -> "),
        (TUNED, UNTUNED, "tune: {"),
    ],
)
def test_a_changed_search_makes_cells_stale_and_says_why(tmp_path: Path, old: str, new: str, why: str) -> None:
    finish(planned(tmp_path, TUNED))
    assert states(planned(tmp_path, TUNED)) == {"done"}
    cells = planned(tmp_path, TUNED.replace(old, new)).cells
    assert {cell.state for cell in cells if cell.job.cell.method == "constant"} == {"done"}
    for cell in cells:
        if cell.job.cell.method == "PBP":
            assert cell.state == "stale"
            assert cell.why.startswith(why)


def test_a_space_that_differs_far_behind_still_says_where(tmp_path: Path) -> None:
    space = "hidden: [[5], [6], [7], [8], [9], [10], [11]]"
    finish(planned(tmp_path, TUNED.replace("epochs: {int: [1, 4]}", space)))
    cell = planned(tmp_path, TUNED.replace("epochs: {int: [1, 4]}", space.replace("11", "12"))).cells[0]
    old, _, new = cell.why.partition(" -> ")
    assert "[11]" in old
    assert "[12]" in new


def test_another_spelling_of_one_space_changes_nothing(tmp_path: Path) -> None:
    lists = "{log: [1, 10]}, b: [1, 2]", "{log: [1.0, 1e+1]}, b: {choice: [1, 2]}"
    text = TUNED.replace("label: constant}", "label: constant, tune: {space: {a: SPACE}}}").replace(
        '"ep_bench.baselines:ConstantRegressor"', '"./m.py:AB"'
    )
    (tmp_path / "m.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\nclass AB(ConstantRegressor):\n"
        "    def __init__(self, a=1, b=2):\n        self.a, self.b = a, b\n"
    )
    finish(planned(tmp_path, text.replace("SPACE", lists[0])))
    assert states(planned(tmp_path, text.replace("SPACE", lists[1]))) == {"done"}


def test_a_file_among_the_choices_is_part_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("class K:\n    pass\nclass L(K):\n    pass\n")
    (tmp_path / "m.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\nclass Mine(ConstantRegressor):\n    version = 1\n"
        "    def __init__(self, kernel=None):\n        self.kernel = kernel\n"
    )
    space = 'tune: {space: {kernel: [{use: "./k.py:K"}, {use: "./k.py:L"}]}}'
    text = TUNED.replace('{use: "ep_bench.baselines:ConstantRegressor",', f'{{use: "./m.py:Mine", {space},')
    finish(planned(tmp_path, text))
    (tmp_path / "k.py").write_text("class K:\n    other = 1\nclass L(K):\n    pass\n")
    stale = [cell for cell in planned(tmp_path, text).cells if cell.job.cell.method == "constant"]
    assert {cell.state for cell in stale} == {"stale"}


def estimates(plan: Plan) -> dict[str, float | None]:
    return {p.job.cell.method: p.job.estimate for p in plan.cells if p.job.cell.dataset == "diabetes"}


def test_a_search_takes_as_long_as_its_fits(tmp_path: Path) -> None:
    tuned_cell, plain = (estimates(planned(tmp_path, text))["PBP"] for text in (TUNED, UNTUNED))
    assert tuned_cell is not None
    assert plain is not None
    assert tuned_cell == pytest.approx(plain * (9 * 0.75 + 1))


def test_times_of_tuned_cells_are_those_of_tuned_cells(tmp_path: Path) -> None:
    guess = estimates(planned(tmp_path, UNTUNED))["PBP"]
    finish(planned(tmp_path, TUNED), tune_seconds=10.0)  # beside 2.0 and 0.5
    assert estimates(planned(tmp_path, TUNED))["PBP"] == 12.5
    assert estimates(planned(tmp_path, UNTUNED))["PBP"] == guess
    longer = estimates(planned(tmp_path, TUNED.replace("trials: 9", "trials: 99")))["PBP"]
    assert longer == pytest.approx(12.5 * (99 * 0.75 + 1) / (9 * 0.75 + 1))
    finish(planned(tmp_path, UNTUNED))
    assert estimates(planned(tmp_path, UNTUNED))["PBP"] == 2.5


def test_a_tuned_entry_answers_to_published_numbers_only_where_it_says_so(tmp_path: Path) -> None:
    text = TUNED.replace("epochs: 2, ", "")
    lock = planned(tmp_path, text).lock()
    assert lock["methods"]["PBP"]["published"] == []
    lock = planned(tmp_path, text.replace("label: PBP,", "label: PBP, published: PBP-1,")).lock()
    assert lock["methods"]["PBP"]["published"] == ["PBP-1"]


# Declared spaces


def test_a_registry_methods_declared_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declares = dataclasses.replace(methods.get("pbp"), space={"epochs": {"log_int": (1, 8)}, "hidden": ([5], [6, 6])})
    monkeypatch.setattr(planning.methods, "get", lambda _name: declares)
    plan = planned(
        tmp_path, TUNED.replace("tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}", "tune: {}")
    )
    assert plan.cells[0].job.tune == {
        "trials": 30, "fraction": 0.2, "score": "ll",
        "space": {"epochs": {"log_int": [1, 8]}, "hidden": {"choice": [[5], [6, 6]]}},
    }  # fmt: skip


def test_a_declared_space_of_a_class_from_outside(folder: Path) -> None:
    job: Job = plan_of(folder, '{use: "./m.py:Spread", tune: {trials: 2}}').cells[0].job
    assert job.tune is not None
    assert job.tune["space"] == {"std": {"log": [1.0, 1000.0]}, "off": {"choice": [0.0, 500.0]}}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{use: pbp, tune: {}}", "s.yaml:5: methods[0].tune: pbp declares no search space"),
        ('{use: "./m.py:Spy", tune: {}}', "s.yaml:5: methods[0].tune: ./m.py:Spy declares no search space"),
        ('{use: "./m.py:Spy", tune: {space: {b: [1, 2]}}}', "tune.space.b: ./m.py:Spy has no such option; allowed: a,"),
        ("{use: pbp, tune: {space: {epochs: {uniform: [1, 4]}}}}", "tune.space.epochs.uniform[0]: input should be"),
        ("{use: pbp, tune: {space: {standardize: [true, maybe]}}}", "tune.space.standardize[1]: wrong type"),
    ],
)
def test_wrong_spaces_of_real_methods(folder: Path, entry: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        plan_of(folder, entry)
    assert says in str(caught.value)
