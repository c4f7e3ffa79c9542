"""Plans: cells, their states and reasons, and the content of the lock file."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from ep_bench import load_results, methods
from ep_bench.cli.output.study import plan_items, status_items
from ep_bench.data import load_dataset, make_splits, training_points
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner import plan as planning
from ep_bench.runner.plan import Plan, cell_seed
from ep_bench.types import DatasetInfo, SplitScheme
from tests.commands import lines_of
from tests.finished import finish
from tests.runner.support import plan_of

STUDY = """
study: s
datasets: [diabetes, friedman1]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: PBP, epochs: 2}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
"""


def states(plan: Plan) -> set[str]:
    return {cell.state for cell in plan.cells}


def test_every_method_is_planned_on_every_split(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, STUDY)
    assert len(plan.cells) == 2 * 2 * 2
    assert len({cell.job.cell.key for cell in plan.cells}) == 8
    assert states(plan) == {"missing"}


def test_cells_left_out_are_not_planned_and_the_others_do_not_change(tmp_path: Path) -> None:
    whole = {cell.job.cell.key for cell in plan_of(tmp_path, STUDY).cells}
    text = STUDY + "left_out: [{method: PBP, dataset: diabetes, reason: takes a week}]\n"
    plan = plan_of(tmp_path, text)
    places = {(cell.job.cell.method, cell.job.cell.dataset) for cell in plan.cells}
    assert places == {("PBP", "friedman1"), ("constant", "diabetes"), ("constant", "friedman1")}
    with pytest.raises(UserError, match="no cell matches all keys"):
        plan.select(["method=PBP", "dataset=diabetes"])
    assert {cell.job.cell.key for cell in plan.cells} < whole
    assert "left out: PBP on diabetes: takes a week" in lines_of(plan_items(plan, 1))
    finish(plan)
    items, complete = status_items(tmp_path / "results" / "s")
    lines = lines_of(items)
    assert complete
    assert "    left out: PBP on diabetes: takes a week" in lines
    everything = [
        f"  - {{method: {method}, dataset: {d}, reason: r}}\n"
        for method in ("pbp", "constant")
        for d in ("diabetes", "friedman1")
    ]
    with pytest.raises(UserError, match="all cells are left out"):
        plan_of(tmp_path, STUDY + "left_out:\n" + "".join(everything))


def test_methods_share_a_splits_seed(tmp_path: Path) -> None:
    seeds: dict[tuple[str, int], set[int]] = {}
    for cell in (p.job.cell for p in plan_of(tmp_path, STUDY).cells):
        seeds.setdefault((cell.dataset, cell.split), set()).add(cell.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == 4


def test_a_seed_is_the_hash_of_its_factors() -> None:
    # Golden value: committed results depend on it.
    assert cell_seed(0, {"name": "boston", "checksum": "x"}, {"scheme": "standard"}, 0) == 2685746324
    assert cell_seed(0, {"name": "boston"}, {"scheme": "standard"}, 0) == 2685746324


def test_finished_cells_are_done_from_the_committed_files_alone(tmp_path: Path) -> None:
    finish(plan_of(tmp_path, STUDY))
    again = plan_of(tmp_path, STUDY)
    assert states(again) == {"done"}
    assert again.to_run() == []


def test_labels_and_limits_are_not_factors(tmp_path: Path) -> None:
    finish(plan_of(tmp_path, STUDY))
    text = STUDY.replace("label: PBP,", "label: other,").replace("study: s", "study: s\nlimits: {seconds: 5}")
    assert states(plan_of(tmp_path, text)) == {"done"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("epochs: 2", "epochs: 3", "options.epochs: 2 -> 3"),
        ("scheme: standard, count: 2", "scheme: shuffle, count: 2", "splits.scheme: standard -> shuffle"),
    ],
)
def test_a_stale_cell_has_a_reason(tmp_path: Path, old: str, new: str, why: str) -> None:
    finish(plan_of(tmp_path, STUDY))
    plan = plan_of(tmp_path, STUDY.replace(old, new))
    stale = [cell for cell in plan.cells if cell.job.cell.method == "PBP"]
    assert {cell.state for cell in stale} == {"stale"}
    assert {cell.job.cell.key for cell in stale} <= {job.cell.key for job in plan.to_run()}
    assert all(why in cell.why for cell in stale)


def test_a_methods_version_makes_its_cells_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(plan_of(tmp_path, STUDY))
    newer = dataclasses.replace(methods.get("pbp"), version=99)
    monkeypatch.setattr(planning.methods, "get", lambda _name: newer)
    by_method = {cell.job.cell.method: cell for cell in plan_of(tmp_path, STUDY).cells}
    assert by_method["PBP"].state == "stale"
    assert by_method["PBP"].why.endswith("-> 99")
    assert by_method["constant"].state == "done"


def test_a_changed_data_file_makes_its_cells_stale(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i * i % 7},{i % 3}" for i in range(30))
    (tmp_path / "own.csv").write_text("a,b,y\n" + rows)
    text = STUDY.replace("[diabetes, friedman1]", "[{name: own, csv: own.csv, target: y}]")
    finish(plan_of(tmp_path, text))
    (tmp_path / "own.csv").write_text("a,b,y\n" + rows.replace("29,", "29.5,"))
    plan = plan_of(tmp_path, text)
    assert states(plan) == {"stale"}
    assert all(cell.why.startswith("dataset.checksum") for cell in plan.cells)


@pytest.mark.parametrize("changed", ["mine.py", "kernel.py"])
def test_the_text_of_its_files_is_the_version_of_a_method(tmp_path: Path, changed: str) -> None:
    (tmp_path / "kernel.py").write_text("class K:\n    pass\n")
    (tmp_path / "mine.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\nclass Mine(ConstantRegressor):\n"
        "    def __init__(self, kernel=None):\n        self.kernel = kernel\n"
    )
    entry = '{use: "./mine.py:Mine", label: constant, kernel: {use: "./kernel.py:K"}}'
    text = STUDY.replace('{use: "ep_bench.baselines:ConstantRegressor", label: constant}', entry)
    finish(plan_of(tmp_path, text))
    assert states(plan_of(tmp_path, text)) == {"done"}
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + "    # another\n")
    assert {c.state for c in plan_of(tmp_path, text).cells if c.job.cell.method == "constant"} == {"stale"}


@pytest.mark.parametrize(
    ("reason", "state", "to_run"), [("no luck", "failed", 0), ("killed from outside: SIGKILL", "missing", 8)]
)
def test_failed_cells_are_finished_until_asked_for_unless_the_machine_failed(
    tmp_path: Path, reason: str, state: str, to_run: int
) -> None:
    finish(plan_of(tmp_path, STUDY), status="failed", reason=reason)
    plan = plan_of(tmp_path, STUDY)
    assert states(plan) == {state}
    assert (len(plan.to_run()), len(plan.to_run(retry_failed=True))) == (to_run, 8)


@pytest.mark.parametrize(
    ("times", "expected"), [({}, 2.5), ({"fit_cpu_seconds": 1.0, "predict_cpu_seconds": 0.25}, 1.25)]
)
def test_estimates_come_from_earlier_records(tmp_path: Path, times: dict[str, float], expected: float) -> None:
    """CPU times are preferred, because other processes do not change them."""
    guess = {cell.job.cell.method: cell.job.estimate for cell in plan_of(tmp_path, STUDY).cells}
    assert guess["constant"] is None
    assert guess["PBP"] > 0
    finish(plan_of(tmp_path, STUDY), **times)
    assert {cell.job.estimate for cell in plan_of(tmp_path, STUDY).cells} == {expected}


def test_an_estimate_depends_on_the_number_of_training_points(tmp_path: Path) -> None:
    """For a Gaussian process, the time grows faster than the number of points."""
    guesses = []
    for fraction in (0.1, 0.8):
        splits = f"splits: {{scheme: shuffle, count: 1, test_fraction: {fraction}}}"
        text = STUDY.replace("splits: {scheme: standard, count: 2}", splits)
        text = text.replace("use: pbp, label: PBP, epochs: 2", "use: gp")
        folder = tmp_path / str(fraction)
        folder.mkdir()
        guesses += [c.job.estimate or 0.0 for c in plan_of(folder, text).cells if c.job.cell.method == "gp"]
    few, many = min(guesses), max(guesses)
    assert many > 3.0 * few


@pytest.mark.parametrize(
    "scheme",
    [
        SplitScheme(), SplitScheme("folds"), SplitScheme("gap"), SplitScheme("tails"),
        SplitScheme("kfold", folds=7, seed=0), SplitScheme("contiguous", folds=7),
        SplitScheme("contiguous", folds=7, rows=400), SplitScheme("shuffle", count=2, test_fraction=0.3, seed=0),
        SplitScheme("holdout", test_rows=50),
    ],
    ids=lambda scheme: f"{scheme.scheme}-{scheme.rows}",
)  # fmt: skip
def test_the_number_of_training_points_is_that_of_the_largest_split(scheme: SplitScheme) -> None:
    dataset = load_dataset("boston")
    info = DatasetInfo(len(dataset.y), dataset.X.shape[1], "", splits=20)
    sizes = [len(split.train) for split in make_splits(scheme, dataset)]
    assert training_points(scheme, info) == pytest.approx(max(sizes), abs=1)


def test_the_longest_come_first(tmp_path: Path) -> None:
    jobs = plan_of(tmp_path, STUDY).to_run()
    lengths = [job.estimate or 0.0 for job in jobs]
    assert lengths == sorted(lengths, reverse=True)


def test_selection(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, STUDY)
    assert len(plan.select(["method=P*"]).cells) == 4
    assert len(plan.select(["method=P*", "method=const*", "split=1"]).cells) == 4
    for wrong in (["methods=x"], ["method"], ["dataset=nothing"]):
        with pytest.raises(UserError):
            plan.select(wrong)
    with pytest.raises(UserError, match=r"unknown key; found 'datset=x'; .*; did you mean 'dataset'\?"):
        plan.select(["datset=x"])
    with pytest.raises(UserError, match=r"no cell matches; found 'method=PBB'; .*; did you mean 'PBP'\?"):
        plan.select(["method=P*", "method=PBB"])
    brackets = plan_of(tmp_path, STUDY.replace("label: constant", "label: 'Constant [mean]'"))
    assert len(brackets.select(["method=Constant [mean]"]).cells) == 4


def test_the_lock_contains_the_factors_behind_each_hash(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, STUDY)
    finish(plan)
    cells = store.lock_cells(store.read_lock(plan.folder))
    assert [cell["cell"] for cell in cells] == [p.job.cell.key for p in plan.cells]
    for cell in cells:
        assert store.factor_hash(cell["factors"]) == cell["cell"]
    assert set(cells[0]["factors"]) == {"method", "version", "options", "dataset", "splits", "split", "seed"}


def test_the_lock_names_data_sets_with_few_target_values(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,y\n" + "\n".join(f"{i},{i % 3}" for i in range(30)))
    datasets = "[wine, diabetes, {name: own, csv: own.csv, target: y}]"
    lock = plan_of(tmp_path, STUDY.replace("[diabetes, friedman1]", datasets)).lock()
    assert {name: entry.get("target_values") for name, entry in lock["datasets"].items()} == {
        "wine": 6,
        "diabetes": None,
        "own": 3,
    }


def test_one_configuration_with_two_labels_runs_once_and_has_two_rows(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, STUDY + "  - {use: pbp, label: again, epochs: 2}\n")
    assert len(plan.cells) == 12
    assert len(plan.to_run()) == 8


def test_cells_of_another_seed_are_missing_and_the_others_are_of_no_entry(tmp_path: Path) -> None:
    finish(plan_of(tmp_path, STUDY))
    other = plan_of(tmp_path, STUDY.replace("study: s", "study: s\nseed: 4"))
    assert states(other) == {"missing"}
    assert "8 finished cells are of no entry of this study" in other.warnings()[0]


def test_further_seeds_add_cells_and_the_cells_of_the_first_seed_do_not_change(tmp_path: Path) -> None:
    one = plan_of(tmp_path, STUDY)
    finish(one)
    three = plan_of(tmp_path, STUDY.replace("study: s", "study: s\nseeds: 3"))
    seeds = Counter(cell.job.cell.factors["seed"] for cell in three.cells)
    assert seeds == {0: 8, 1: 8, 2: 8}
    first = [cell for cell in three.cells if cell.job.cell.factors["seed"] == 0]
    assert [cell.job.cell for cell in first] == [cell.job.cell for cell in one.cells]
    assert ({cell.state for cell in first}, len(three.to_run()), three.warnings()) == ({"done"}, 16, [])
    assert len({(cell.job.cell.dataset, cell.job.cell.split, cell.job.cell.seed) for cell in three.cells}) == 12
    finish(three)
    lock = store.read_lock(three.folder) or {}
    assert (lock["seed"], lock["seeds"], len(store.lock_cells(lock))) == (0, 3, 24)
    stored = store.read_intact(three.folder)
    assert (len(stored.rows), len(stored.further_seeds)) == (8, 16)
    assert len(load_results(three.folder)) == 24
    items, complete = status_items(three.folder)
    lines = lines_of(items)
    assert (lines[0], complete) == ("s: 24 cells: 24 ok", True)
    assert ["PBP", "6", "6"] in [line.split() for line in lines]
    assert states(plan_of(tmp_path, STUDY)) == {"done"}


def test_a_data_set_without_file_keeps_the_checksum_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = planning.data.describe(planning.DatasetRef("diabetes", "diabetes"))
    monkeypatch.setattr(planning.data, "describe", lambda _ref: dataclasses.replace(info, checksum="abc"))
    finish(plan_of(tmp_path, STUDY))
    monkeypatch.setattr(planning.data, "describe", lambda _ref: dataclasses.replace(info, checksum="", present=False))
    assert states(plan_of(tmp_path, STUDY)) == {"done"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('{use: "json:loads", label: constant}', "has no method fit"),
        ('{use: "ep_bench.baselines:ConstantRegressor", label: constant, standardize: "yes please"}', "true or false"),
        (('{use: "sklearn.gaussian_process:GaussianProcessRegressor", label: constant, '
         'kernel: {use: "sklearn.gaussian_process.kernels:RBFF"}}'), "did you mean 'RBF'"),
        (('{use: "sklearn.gaussian_process:GaussianProcessRegressor", label: constant, '
         'kernel: {use: "sklearn.gaussian_process.kernels:RBF", lenght_scale: 1.0}}'), "did you mean 'length_scale'"),
    ],
)  # fmt: skip
def test_wrong_targets_and_objects_are_refused_by_the_reader(tmp_path: Path, entry: str, expected: str) -> None:
    text = STUDY.replace('{use: "ep_bench.baselines:ConstantRegressor", label: constant}', entry)
    with pytest.raises(UserError, match=expected):
        plan_of(tmp_path, text)


def test_published_columns_are_inferred_or_given(tmp_path: Path) -> None:
    text = STUDY + "  - {use: pbp, label: paper}\n  - {use: pbp, label: two, hidden: [50, 50]}\n"
    named = text + "  - {use: pbp, label: named, epochs: 7, published: PBP}\n"
    found = {label: entry["published"] for label, entry in plan_of(tmp_path, named).lock()["methods"].items()}
    assert found == {"PBP": [], "constant": [], "paper": ["PBP", "PBP-1"], "two": ["PBP-2"], "named": ["PBP"]}


def test_the_lock_file_names_options_that_a_fit_chooses_on_validation_points(tmp_path: Path) -> None:
    text = """
study: s
datasets: [diabetes]
splits: {scheme: standard, count: 1}
methods:
  - {use: ensemble, label: searched}
  - {use: ensemble, label: fixed, epochs: 40}
  - {use: dropout, label: both, tune: {trials: 2, fraction: 0.2}}
  - {use: dropout, label: given, tau: 1.0}
  - {use: "ep_bench.baselines:NGBoostRegressor", label: boosting}
"""
    entries = plan_of(tmp_path, text).lock()["methods"]
    found = {label: entry["validated"] for label, entry in entries.items() if "validated" in entry}
    assert found == {"searched": "epochs", "both": "tau", "boosting": "n_estimators"}


def test_the_folder_of_an_experiment_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "s"
    store.write_lock(folder, {"study": "s", "experiment": "cubic_toy", "options": {}, "seed": 0})
    before = (folder / store.LOCK).read_bytes()
    with pytest.raises(UserError, match=f"{folder}: is the folder of an experiment; choose another name in `study:`"):
        plan_of(tmp_path, STUDY)
    assert (folder / store.LOCK).read_bytes() == before


def test_finished_cells_of_no_entry_are_announced_before_they_are_removed(tmp_path: Path) -> None:
    finish(plan_of(tmp_path, STUDY))
    assert plan_of(tmp_path, STUDY).warnings() == []
    other = STUDY.replace("pbp, label: PBP", "bp, label: BP").replace("count: 2", "count: 1")
    (warning,) = plan_of(tmp_path, other).warnings()
    assert warning.startswith(f"warning: {tmp_path / 'results' / 's'}: 6 finished cells are of no entry of this study;")
    assert plan_of(tmp_path, STUDY.replace("epochs: 2", "epochs: 3")).warnings() == []  # stale: the plan lists them
    assert plan_of(tmp_path, STUDY.replace("label: PBP", "label: new")).warnings() == []


def test_errors_of_data_sets_name_the_line_and_keep_their_parts(tmp_path: Path) -> None:
    text = STUDY.replace("friedman1]", "{name: diabetes, label: two, constant_inputs: paper}]")
    with pytest.raises(UserError) as caught:
        plan_of(tmp_path, text)
    error = caught.value
    assert error.head == (
        f"{tmp_path / 'study.yaml'}:3: datasets: two: constant_inputs: the data set has no such treatment of constant "
        "inputs; paper applies to naval only"
    )
    assert (error.found, error.choices) == ("paper", "zero")
    (tmp_path / "mine.csv").write_text("x,y\n1,2\n3,oops\n" + "".join(f"{i},{i * i}\n" for i in range(10)))
    with pytest.raises(UserError) as caught:
        plan_of(tmp_path, STUDY.replace("friedman1]", "{name: mine, csv: mine.csv, target: y}]"))
    assert caught.value.where == f"{tmp_path / 'study.yaml'}:3"
    assert f"datasets: mine: {tmp_path / 'mine.csv'}:3: column y: " in caught.value.head
    assert caught.value.found == "oops"
