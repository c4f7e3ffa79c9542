"""Tuned cells in a plan: factors, reasons for stale cells, times, and declared spaces."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ep_bench import estimator, methods, tuning
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner import plan as planning
from ep_bench.runner.cell import run_cell
from ep_bench.runner.earlier_results import _fits
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan, make_plan
from ep_bench.spec import read_study
from tests.finished import finish
from tests.runner import support
from tests.runner.test_plan import states
from tests.runner.tuning_support import plan_of, with_methods

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_methods(tmp_path)


TUNED = """
study: s
datasets: [diabetes, friedman1]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: PBP, epochs: 2, tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
"""
UNTUNED = TUNED.replace(", tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}", "")


def test_tune_is_a_factor_only_if_given(tmp_path: Path) -> None:
    plan = support.plan_of(tmp_path, TUNED)
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


def test_the_seed_of_a_tuned_cell_depends_on_its_split_only(tmp_path: Path) -> None:
    ours, theirs = ([p.job.cell.seed for p in support.plan_of(tmp_path, text).cells] for text in (TUNED, UNTUNED))
    assert ours == theirs


def test_finished_cells_of_earlier_studies_stay_finished() -> None:
    plan = make_plan(read_study(ROOT / "configs" / "pbp_2015" / "pbp_table1.yaml"), ROOT / "results")
    assert len(plan.cells) == 165
    assert states(plan) == {"done"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("trials: 9", "trials: 10", "tune.trials: 9 -> 10"),
        ("{int: [1, 4]}", "{log_int: [1, 4]}", "tune.space.epochs.int: [1, 4] -> none"),
        ("fraction: 0.25", "fraction: 0.25, score: rmse", "tune.score: ll -> rmse"),
        ("{int: [1, 4]}", "{int: [1, 4]}, hidden: [[5], [6]]", "tune.space.hidden: none -> "),
        (TUNED, UNTUNED, "tune: {"),
    ],
)
def test_a_changed_search_makes_cells_stale_with_a_reason(tmp_path: Path, old: str, new: str, why: str) -> None:
    finish(support.plan_of(tmp_path, TUNED))
    assert states(support.plan_of(tmp_path, TUNED)) == {"done"}
    cells = support.plan_of(tmp_path, TUNED.replace(old, new)).cells
    assert {cell.state for cell in cells if cell.job.cell.method == "constant"} == {"done"}
    for cell in cells:
        if cell.job.cell.method == "PBP":
            assert cell.state == "stale"
            assert cell.why.startswith(why)


def test_another_spelling_of_one_space_changes_nothing(tmp_path: Path) -> None:
    lists = "{log: [1, 10]}, b: [1, 2]", "{log: [1.0, 1e+1]}, b: {choice: [1, 2]}"
    text = TUNED.replace("label: constant}", "label: constant, tune: {space: {a: SPACE}}}").replace(
        '"ep_bench.baselines:ConstantRegressor"', '"./m.py:AB"'
    )
    (tmp_path / "m.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\nclass AB(ConstantRegressor):\n"
        "    def __init__(self, a=1, b=2):\n        self.a, self.b = a, b\n"
    )
    finish(support.plan_of(tmp_path, text.replace("SPACE", lists[0])))
    assert states(support.plan_of(tmp_path, text.replace("SPACE", lists[1]))) == {"done"}


def test_a_file_among_the_choices_is_part_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("class K:\n    pass\nclass L(K):\n    pass\n")
    (tmp_path / "m.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\nclass Mine(ConstantRegressor):\n    version = 1\n"
        "    def __init__(self, kernel=None):\n        self.kernel = kernel\n"
    )
    space = 'tune: {space: {kernel: [{use: "./k.py:K"}, {use: "./k.py:L"}]}}'
    text = TUNED.replace('{use: "ep_bench.baselines:ConstantRegressor",', f'{{use: "./m.py:Mine", {space},')
    finish(support.plan_of(tmp_path, text))
    (tmp_path / "k.py").write_text("class K:\n    other = 1\nclass L(K):\n    pass\n")
    stale = [cell for cell in support.plan_of(tmp_path, text).cells if cell.job.cell.method == "constant"]
    assert {cell.state for cell in stale} == {"stale"}


def estimates(plan: Plan) -> dict[str, float | None]:
    return {p.job.cell.method: p.job.estimate for p in plan.cells if p.job.cell.dataset == "diabetes"}


def test_the_estimate_of_a_search_is_that_of_its_fits(tmp_path: Path) -> None:
    tuned_cell, plain = (estimates(support.plan_of(tmp_path, text))["PBP"] for text in (TUNED, UNTUNED))
    assert tuned_cell is not None
    assert plain is not None
    assert tuned_cell == pytest.approx(plain * (9 * 0.75 + 1))


def test_estimates_of_tuned_cells_use_tuned_cells(tmp_path: Path) -> None:
    guess = estimates(support.plan_of(tmp_path, UNTUNED))["PBP"]
    finish(support.plan_of(tmp_path, TUNED), tune_seconds=10.0)  # in addition to 2.0 and 0.5
    assert estimates(support.plan_of(tmp_path, TUNED))["PBP"] == 12.5
    assert estimates(support.plan_of(tmp_path, UNTUNED))["PBP"] == guess
    finish(support.plan_of(tmp_path, UNTUNED))
    assert estimates(support.plan_of(tmp_path, UNTUNED))["PBP"] == 2.5


def test_a_tuned_entry_has_published_numbers_only_if_it_names_them(tmp_path: Path) -> None:
    text = TUNED.replace("epochs: 2, ", "")
    lock = support.plan_of(tmp_path, text).lock()
    assert lock["methods"]["PBP"]["published"] == []
    lock = support.plan_of(tmp_path, text.replace("label: PBP,", "label: PBP, published: PBP-1,")).lock()
    assert lock["methods"]["PBP"]["published"] == ["PBP-1"]


def test_a_registry_methods_declared_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declares = dataclasses.replace(methods.get("pbp"), space={"epochs": {"log_int": (1, 8)}, "hidden": ([5], [6, 6])})
    monkeypatch.setattr(planning.methods, "get", lambda _name: declares)
    plan = support.plan_of(
        tmp_path, TUNED.replace("tune: {trials: 9, fraction: 0.25, space: {epochs: {int: [1, 4]}}}", "tune: {}")
    )
    assert plan.cells[0].job.tune == {
        "trials": 30, "fraction": 0.2, "score": "ll",
        "space": {"epochs": {"log_int": [1, 8]}, "hidden": {"choice": [[5], [6, 6]]}},
    }  # fmt: skip


def test_a_declared_space_of_an_external_class(folder: Path) -> None:
    job: Job = plan_of(folder, '{use: "./m.py:Spread", tune: {trials: 2}}').cells[0].job
    assert job.tune is not None
    assert job.tune["space"] == {"std": {"log": [1.0, 1000.0]}, "off": {"choice": [0.0, 500.0]}}


@pytest.mark.parametrize(
    ("use", "score", "allowed"),
    [
        ("sklearn.linear_model:Ridge", "ll", "rmse"),
        ("sklearn.linear_model:Ridge", "pinball", "rmse"),
        ("./m.py:Levels", "ll", "crps, pinball, rmse"),
    ],
)
def test_a_score_that_a_method_cannot_have_is_refused(folder: Path, use: str, score: str, allowed: str) -> None:
    option = "alpha" if "Ridge" in use else "width"
    tune = f"tune: {{score: {score}, space: {{{option}: [1, 2]}}}}"
    with pytest.raises(UserError) as error:
        plan_of(folder, f'{{use: "{use}", label: mine, {tune}}}')
    problem = f"mine is tuned by {score}, which its predictions do not have"
    assert f"{problem}; set tune.score; allowed: {allowed}" in str(error.value)


def test_a_score_of_a_density_is_possible_for_scores_of_standard_deviations(folder: Path) -> None:
    for score in ("ll", "rmse", "crps", "pinball"):
        assert plan_of(folder, f'{{use: "./m.py:Spread", tune: {{score: {score}}}}}').cells


BUDGETS = """
study: s
datasets: [diabetes]
splits: {scheme: standard, count: 1}
methods:
  - use: "./m.py:Slow"
    label: slow
    tune: {budgets: [1, 2, 4], fraction: 0.25, score: rmse, cpu_seconds: 9, space: {a: {uniform: [0, 1]}}}
"""


def test_budgets_are_entries_of_one_search(folder: Path) -> None:
    plan = support.plan_of(folder, BUDGETS)
    searches = {p.job.cell.method: p.job.cell.factors.get("tune", {}) for p in plan.cells}
    assert list(searches) == ["slow", "slow, 2 trials", "slow, 4 trials"]
    assert searches["slow"] == {}
    assert searches["slow, 2 trials"] == searches["slow, 4 trials"] | {"trials": 2}
    assert searches["slow, 4 trials"].keys() == {"trials", "fraction", "space", "score", "cpu_seconds"}
    plain = BUDGETS.replace("budgets: [1, 2, 4]", "trials: 4").replace(", cpu_seconds: 9", "")
    assert support.plan_of(folder, plain).cells[0].job.cell.factors["tune"].keys() == {
        "trials", "fraction", "space", "score",
    }  # fmt: skip


def test_a_shorter_search_takes_its_trials_from_the_longer_one(folder: Path) -> None:
    plan = support.plan_of(folder, BUDGETS)
    jobs = {p.job.cell.method: p.job for p in plan.cells}
    assert jobs["slow, 4 trials"].longer_search is None
    alone = run_cell(jobs["slow, 2 trials"])
    long = run_cell(jobs["slow, 4 trials"])
    store.write_record(plan.folder, long)
    short = run_cell(jobs["slow, 2 trials"])
    assert short.notes["tune"]["trials"] == long.notes["tune"]["trials"][:2]
    assert short.row["rmse"] == alone.row["rmse"]
    assert short.row["tune_seconds"] > 0.5  # the trials of the longer search, which sleep
    failed = {"best": None, "trials": [trial | {"score": None} for trial in long.notes["tune"]["trials"]]}
    store.write_record(plan.folder, dataclasses.replace(long, notes=long.notes | {"tune": failed}))
    assert run_cell(jobs["slow, 2 trials"]).row["rmse"] == alone.row["rmse"]


RECALIBRATED = BUDGETS.replace(
    "    tune:", "    recalibrate: {method: conformal, refit: true, budgets: [4]}\n    tune:"
)


def test_recalibrated_entries_of_budgets_take_the_trials_of_those_without(folder: Path) -> None:
    plan = support.plan_of(folder, RECALIBRATED)
    jobs = {p.job.cell.method: p.job for p in plan.cells}
    plain = {p.job.cell.method: p.job for p in support.plan_of(folder, BUDGETS).cells}
    assert list(jobs) == [*plain, "slow, 4 trials, recalibrated"]
    assert all(jobs[name].cell.key == job.cell.key for name, job in plain.items())
    job = jobs["slow, 4 trials, recalibrated"]
    assert job.cell.factors["recalibrate"] == {
        "method": "conformal", "fraction": 0.2, "cross": False, "refit": True, "version": 1,
    }  # fmt: skip
    alone = run_cell(job)
    long = run_cell(jobs["slow, 4 trials"])
    store.write_record(plan.folder, long)
    found = run_cell(job)
    assert found.notes["tune"]["trials"] == long.notes["tune"]["trials"]
    assert found.row["crps"] == alone.row["crps"] != long.row.get("crps")
    assert _fits(jobs["slow, 4 trials"].cell.factors, 400) == 1.0 + 4 * 0.75
    assert _fits({**job.cell.factors, "tune": None}, 400) == 1.0 + 0.8  # one without the held-out points, one with all


def test_budgets_of_recalibration_are_those_of_the_search(folder: Path) -> None:
    with pytest.raises(UserError, match=r"budgets: are those of tune, .*; allowed: 1, 2, 4"):
        support.plan_of(folder, RECALIBRATED.replace("budgets: [4]", "budgets: [4, 7]"))


def test_trials_over_the_limit_fail(folder: Path) -> None:
    text = BUDGETS.replace("budgets: [1, 2, 4]", "trials: 2").replace("cpu_seconds: 9", "cpu_seconds: 1.0e-9")
    record = run_cell(support.plan_of(folder, text).cells[0].job)
    assert record.row["status"] == "failed"
    assert "the fit took more than 1e-09 CPU seconds" in record.row["reason"]


def test_spaces_of_the_league_contain_the_defaults() -> None:
    """Finite spaces would be searched as grids, whose first trials are not those of a shorter search."""
    entries = [entry for entry in read_study(ROOT / "configs" / "league.yaml").methods if entry.tune]
    for entry in entries:
        space = (entry.tune.space or {}) if entry.tune else {}
        assert tuning._sampler(space, 20, 0, whole=True)[0] == 20, entry.label
        if ":" not in entry.use:
            inside, outside = tuning._parameters(space, estimator.resolve(entry.use, entry.options).options)
            assert inside.keys() == space.keys(), entry.label
            assert not outside
