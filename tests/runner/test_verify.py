"""Stored cells computed again: equal ones, altered ones, changed methods, and the choice of cells."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ep_bench.cli.output import verify as output
from ep_bench.errors import INSTALL_EXTRA, UserError
from ep_bench.experiments import get
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.methods import pbp
from ep_bench.results import store
from ep_bench.runner import recompute
from ep_bench.runner import verify as runner
from ep_bench.runner.cell import run_cell
from ep_bench.runner.jobs import BasePlan, Job
from ep_bench.runner.run import RunOptions, RunOutcome
from ep_bench.runner.verify import Sample, StoredCell, Verification, verify
from ep_bench.types import Record
from tests.commands import ep_bench, lines_of
from tests.runner.support import change_environment

STUDY = """
study: s
datasets: [diabetes]
splits: {scheme: standard, count: 3}
methods:
  - {use: pbp, label: PBP, hidden: [5], epochs: 2}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
"""
ALL = Sample(seed=0, cells=None)
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "s.yaml").write_text(STUDY)
    assert ep_bench("run", folder / "s.yaml", "--results", folder / "results", "--quiet").returncode == 0
    return folder / "results" / "s"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "s"))


def alter(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the rows of a folder, and store them with correct checksums."""
    shutil.rmtree(folder / "cells", ignore_errors=True)
    finished = store.finished_rows(folder)
    lock = store.read_lock(folder)
    assert lock is not None
    for key in list(finished.rows):
        change(finished.rows[key])
    store.write_lock(folder, {**lock, **finished.lock_entries(finished.rows.keys())})
    store.export(folder, finished)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_intact_cells_are_equal_and_nothing_is_written(folder: Path, jobs: int) -> None:
    before = files(folder.parent)
    found = ep_bench("verify", folder, "--all", "--seed", 3, "--jobs", jobs)
    assert found.returncode == 0, found.stderr
    assert "6 results computed again, 0 different; seed 3" in found.stdout
    assert found.stdout.splitlines()[1].split()[1:7] == ["6", "6", "0", "0", "0", "0"]
    assert files(folder.parent) == before


def test_a_search_draws_its_options_in_the_order_of_the_study(tmp_path: Path) -> None:
    space = "{hidden: {choice: [[2], [3], [4], [5]]}, epochs: {int: [1, 9]}}"
    tuned = STUDY.replace("epochs: 2}", f"epochs: 2, tune: {{trials: 4, space: {space}}}}}")
    (tmp_path / "s.yaml").write_text(tuned)
    assert ep_bench("run", tmp_path / "s.yaml", "--results", tmp_path, "--quiet").returncode == 0
    assert verify([store.read_intact(tmp_path / "s")], ALL)[0].different == 0


def test_a_changed_stored_value_with_a_new_checksum_is_found(folder: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if (row["method"], row["split"]) == ("PBP", 1):
            row["rmse"] *= 1 + 1e-9

    alter(folder, change)
    found = ep_bench("verify", folder, "--all")
    assert found.returncode == 1
    differences = [line.split() for line in found.stdout.splitlines() if " rmse " in line]
    assert [line[1:6] for line in differences] == [["PBP", "diabetes", "1", "1", "rmse"]]


def test_a_changed_value_without_its_checksum_is_refused(folder: Path) -> None:
    shutil.rmtree(folder / "cells", ignore_errors=True)
    path = folder / store.RESULTS
    path.write_text(path.read_text().replace(",ok,", ",ok,1", 1))
    found = ep_bench("verify", folder)
    assert found.returncode == 2
    assert "checksum" in found.stderr


def test_a_changed_constant_of_a_method_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pbp, "RATE", pbp.RATE * 1.001)  # of the prior of the noise and the weights
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.identical, outcome.different) == (3, 3)
    assert {difference.method for difference in outcome.differences} == {"PBP"}


def test_exact_methods_may_differ_by_rounding_on_another_processor_only(folder: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        row["rmse"] *= 1 + 1e-8

    alter(folder, change)
    assert verify([store.read_intact(folder)], ALL)[0].different == 6
    change_environment(folder)
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.identical, outcome.equal, outcome.different) == (0, 6, 0)


@pytest.mark.parametrize(("layers", "different"), [(2, 3), (3, 0)])
def test_exact_methods_of_many_layers_are_compared_by_means_on_another_processor(
    folder: Path, layers: int, different: int
) -> None:
    change_environment(folder)
    study, outcome = store.read_intact(folder), Verification("s")
    for cell in (cell for cell in store.lock_cells(study.lock) if cell["method"] == "PBP"):
        row = study.finished.rows[cell["cell"]] | {"method": "PBP"}
        options = cell["factors"]["options"] | {"hidden": [5] * layers}
        changed = {**cell, "factors": cell["factors"] | {"options": options}}
        runner._compare(StoredCell(study, changed, row, outcome), row | {"rmse": row["rmse"] * (1.0 + 3e-6)})
    assert (outcome.different, len(outcome.changed)) == (different, int(layers == 3))


def shift(folder: Path, errors: float, splits: tuple[int, ...]) -> float:
    """Change the stored log densities of PBP on some splits by standard errors, and return the standard error."""
    rows = [row for row in store.read_intact(folder).rows if row["method"] == "PBP"]
    mean = sum(row["ll"] for row in rows) / 3
    error = math.sqrt(sum((row["ll"] - mean) ** 2 for row in rows) / 3) / math.sqrt(3)

    def change(row: dict[str, Any]) -> None:
        if row["method"] == "PBP" and row["split"] in splits:
            row["ll"] += errors * error

    alter(folder, change)
    return error


@pytest.mark.parametrize("kind", ["optimised", "sampled"])
def test_other_methods_agree_up_to_rounding_on_the_same_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: kind)
    shift(folder, 1e-9, (0, 1))
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.identical, outcome.equal, outcome.different) == (4, 2, 0)
    shift(folder, 1e-2, (0, 1))
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.identical, outcome.equal, outcome.different) == (4, 0, 2)


@pytest.mark.parametrize("kind", ["optimised", "sampled"])
@pytest.mark.parametrize(
    ("errors", "splits", "different"),
    [(0.29, (0, 1, 2), 0), (0.31, (0, 1, 2), 3), (0.5, (1,), 0), (12.0, (1,), 1), (-8.0, (0, 2), 2)],
)
def test_means_may_differ_by_a_part_of_the_standard_error_on_another_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, errors: float, splits: tuple[int, ...], different: int
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: kind)
    error = shift(folder, errors, splits)
    change_environment(folder)
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert outcome.different == different
    assert outcome.equal + different == len(splits)
    assert [(each.column, each.split) for each in outcome.differences] == [("ll", None)] * bool(different)
    if len(splits) == 3:  # otherwise the stored standard error has changed, too
        assert all(each.allowed == pytest.approx(0.2 * error) for each in outcome.differences)


@pytest.mark.parametrize(
    ("errors", "hidden", "tune", "different"),
    [(1e-4, [50], {}, 0), (0.01, [50], {}, 1), (0.01, [50, 50], {}, 0), (0.01, [50], {"tune": {"trials": 2}}, 0)],
)
def test_each_score_of_a_stable_method_with_one_layer_and_no_search_is_compared_on_another_processor(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    errors: float,
    hidden: list[int],
    tune: dict[str, Any],
    different: int,
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: "stable")
    shift(folder, errors, (1,))
    change_environment(folder)
    study = store.read_intact(folder)
    compare = runner._compare

    def with_layers(stored: runner.StoredCell, now: dict[str, Any]) -> None:
        stored.cell["factors"] |= {"options": {"hidden": hidden}, **tune}
        compare(stored, now)

    monkeypatch.setattr(runner, "_compare", with_layers)
    outcome = verify([study], ALL)[0]
    assert (outcome.different, outcome.equal) == (different, 1 - different)


@pytest.mark.parametrize(("alpha", "stable"), [(0.5, True), (1.0, False)])
def test_options_can_make_a_stable_method_unstable(folder: Path, alpha: float, stable: bool) -> None:
    study = store.read_intact(folder)
    cell = {**store.lock_cells(study.lock)[0], "factors": {"method": "bb_alpha", "options": {"alpha": alpha}}}
    assert runner._is_stable(StoredCell(study, cell, {}, Verification("s"))) is stable


def test_most_fits_of_a_method_end_in_the_same_optimum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mean is that of three splits, one of which may change by 1.5 standard deviations."""
    monkeypatch.setattr(runner, "equality", lambda _: "optimised")
    monkeypatch.setattr(runner, "FEWEST", 2)
    shift(folder, 2.0, (1,))
    change_environment(folder)
    study = store.read_intact(folder)
    assert verify([study], ALL)[0].different == 0
    monkeypatch.setattr(runner, "FEWEST", 1)
    outcome = verify([study], ALL)[0]
    assert outcome.different == 1
    assert [(each.method, each.split) for each in outcome.differences] == [("pbp", None)]


def test_fits_that_have_not_converged_are_not_compared_on_another_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: "optimised")

    def change(row: dict[str, Any]) -> None:
        row |= {"ll": row["ll"] + 5.0, "reason": "not converged: raise epochs"}

    alter(folder, change)
    assert verify([store.read_intact(folder)], ALL)[0].different == 6
    change_environment(folder)
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.tried, len(outcome.impossible)) == (0, 6)


@pytest.mark.parametrize(("name", "value"), [("UNCOMPARABLE", ("pbp",)), ("CHAOTIC", (("pbp", "epochs", 2),))])
def test_methods_and_options_that_end_in_other_optima_are_compared_on_one_processor_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: "optimised")
    monkeypatch.setattr(runner, name, value)
    shift(folder, 2.0, (1,))
    different = verify([store.read_intact(folder)], ALL)[0].different
    assert different > 0
    change_environment(folder)
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.different, len(outcome.impossible)) == (0, different)


def test_a_single_split_has_the_standard_error_over_its_test_points(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "equality", lambda _: "optimised")
    change_environment(folder)
    study = store.read_intact(folder)
    row = next(row for row in study.rows if row["method"] == "PBP" and row["split"] == 0)
    alone = replace(study, rows=[row])
    error = row["ll_std"] / math.sqrt(row["n_test"])
    row["ll"] += 0.3 * error
    (difference,) = verify([alone], ALL)[0].differences
    assert (difference.column, difference.allowed) == ("ll", pytest.approx(0.2 * error))


def test_one_test_point_of_a_class_problem_may_get_another_label() -> None:
    """Five splits of 20 test points without any spread: a mean may move by one label of 100, not by two."""
    rows = [{"error_rate": 0.05, "n_test": 20, "ll": -1.0} for _ in range(5)]
    cell = {"method": "GP", "dataset": "crabs"}
    stored = SimpleNamespace(cell=cell, row=rows[0], splits=lambda: rows)

    def differing(error_rate: float) -> list[str]:
        now = {"error_rate": error_rate, "ll": -1.0}
        return [each.column for each in runner._mean_differences([(stored, now)])]

    assert differing(0.10) == differing(0.0) == []
    assert differing(0.15) == ["error_rate"]


def test_selection_number_and_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = store.read_intact(folder)
    assert verify([study], Sample(0, None, ("method=PBP", "split=[12]")))[0].tried == 2
    assert verify([study], Sample(0, 4))[0].tried == 4
    run: list[str] = []

    def note(job: Job) -> Record:
        run.append(job.cell.key)
        return run_cell(job)

    monkeypatch.setattr(runner, "run_jobs", lambda jobs, **_: map(note, jobs))
    for seed in (1, 1, 2, 3, 4):
        verify([study], Sample(seed, 2))
    assert run[:2] == run[2:4]
    assert len(set(run)) > 2


def test_cheap_cells_are_more_probable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = store.read_intact(folder)
    for row in study.rows:
        row["fit_seconds"] = 0.0 if row["method"] == "constant" else 20.0
    monkeypatch.setattr(runner, "run_jobs", lambda jobs, **_: map(run_cell, jobs))
    chosen = Counter(
        runner._choose(study, runner.Verification("s"), Sample(seed, 1), runner.random.Random(seed))[0].row["method"]
        for seed in range(300)
    )
    # The probability of a cell is proportional to 1 / (1 + seconds), so that of PBP is 1 / 22.
    assert 4 <= chosen["PBP"] <= 28


def test_the_budget_ends_the_choice(folder: Path) -> None:
    for row in (study := store.read_intact(folder)).rows:
        row["fit_seconds"] = 50.0 if row["method"] == "PBP" else 0.1
    started = time.monotonic()
    outcome = verify([study], ALL, budget=20.0)[0]
    assert time.monotonic() - started < 20.0
    assert (outcome.tried, outcome.untried) == (3, 3)
    nothing = ep_bench("verify", folder, "--budget", 0)
    assert nothing.stdout.splitlines()[1].split()[1:7] == ["0"] * 5 + ["6"]
    assert "nothing was compared" in nothing.stdout
    assert nothing.returncode == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda cell: cell["factors"].update(version=99), "pbp has version 1 now, the cell has 99"),
        (lambda cell: cell["factors"].pop("splits"), "the lock file has no splits of the cell"),
        (lambda cell: cell["factors"].update(method="gone"), "unknown method; found 'gone'"),
        (lambda cell: cell["factors"]["dataset"].update(name="gone"), "the data set gone is not installed"),
        (
            lambda cell: cell["factors"]["dataset"].update(checksum="0"),
            "the data of diabetes have another checksum now",
        ),
        (
            lambda cell: cell["factors"].update(method="./m.py:M"),
            "./m.py:M is or uses a file that the lock file does not contain",
        ),
    ],
)
def test_cells_that_cannot_be_compared_are_named(folder: Path, change: Callable[[Any], Any], reason: str) -> None:
    path = folder / store.LOCK
    lock = json.loads(path.read_text())
    change(next(group for group in lock["groups"] if group["method"] == "PBP"))
    path.write_text(json.dumps(lock))
    found = ep_bench("verify", folder, "--cells", 6)
    assert found.returncode == 0
    assert found.stdout.splitlines()[1].split()[1:7] == ["3", "3", "0", "0", "3", "0"]
    assert f"s: 3 not comparable: {reason}" in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("error", "different", "reason"),
    [
        (ValueError("no luck today"), 3, "failed: ValueError: no luck today"),
        (UserError(f"requires nothing; {INSTALL_EXTRA}[controls]", where="Boosting"), 0, "Boosting: requires nothing;"),
    ],
)
def test_a_cell_that_fails_now_is_different_unless_a_package_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, different: int, reason: str
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(pbp, "refine_prior", fails)
    outcome = verify([store.read_intact(folder)], ALL)[0]
    assert (outcome.different, len(outcome.impossible)) == (different, 3 - different)
    found = [str(each.now) for each in outcome.differences] + outcome.impossible
    assert all(text.startswith(reason) for text in found)


def test_cells_of_two_folders_are_computed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[str] = []
    monkeypatch.setattr(
        runner, "run_jobs", lambda jobs, **_: (run.append(job.cell.key) or run_cell(job) for job in jobs)
    )
    again = shutil.copytree(folder, folder.parent / "again")
    outcomes = verify([store.read_intact(folder), store.read_intact(Path(again))], ALL)
    assert [outcome.identical for outcome in outcomes] == [6, 6]
    assert len(run) == len(set(run)) == 6


def test_experiments_are_compared_by_their_summaries(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("study: e\nexperiment: conflict_tilted\n")
    assert ep_bench("run", tmp_path / "e.yaml", "--results", tmp_path / "results", "--quiet").returncode == 0
    folder = tmp_path / "results" / "e"
    assert ep_bench("verify", folder).returncode == 0
    assert ep_bench("verify", folder, "--budget", 0).stdout.splitlines()[1].split()[1:7] == ["0"] * 5 + ["1"]
    summary = folder / "summary.csv"
    lines = summary.read_text().splitlines()
    last = lines[1].split(",")
    number = next(i for i, value in enumerate(last) if value.replace(".", "").replace("-", "").isdigit())
    last[number] = str(float(last[number]) * 1.01 + 0.1)
    summary.write_text("\n".join([lines[0], ",".join(last), *lines[2:]]) + "\n")
    assert ep_bench("verify", folder).returncode == 2
    lock = json.loads((folder / store.LOCK).read_text())
    lock["files"] = store.file_checksums(folder, tuple(lock["files"]))
    (folder / store.LOCK).write_text(json.dumps(lock))
    found = ep_bench("verify", folder)
    assert found.returncode == 1
    assert "conflict_tilted" in found.stdout
    assert "row 1" in found.stdout


def compared(monkeypatch: pytest.MonkeyPatch, stored: Path, lock: dict[str, Any] | None, summary: str) -> list[str]:
    """Return the places at which the summary of an experiment that is computed again differs."""

    def run(plan: BasePlan, _: RunOptions) -> RunOutcome:
        plan.folder.mkdir()
        (plan.folder / "summary.csv").write_text(summary)
        return RunOutcome(Counter(ok=1), 1)

    monkeypatch.setattr(ExperimentSetup, "is_computed", lambda *_: True)
    monkeypatch.setattr(recompute, "run_plan", run)
    study = store.StudyResults(stored, "stored", lock or {}, [])
    return [place for place, *_ in recompute.experiment_differences(study)]


def test_rounding_errors_of_an_experiment_are_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is 0 except for rounding errors has no scale of its own."""
    lock = {"experiment": "cubic_toy", "options": {}, "seed": 0}
    (tmp_path / "summary.csv").write_text("error,score\n4.4e-16,2.0\n")
    assert compared(monkeypatch, tmp_path, lock, "error,score\n0.0,2.0\n") == []
    found = compared(monkeypatch, tmp_path, lock, "error,score\n1e-11,2.5\n")
    assert found == ["row 1, error", "row 1, score"]


def test_what_an_experiment_computes_from_times_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Path(__file__).parents[2] / "results" / "student-t-times"
    rows = pd.read_csv(stored / "summary.csv", dtype=str, keep_default_na=False)
    measured = ["seconds", *get("fixed_times").measured]
    rows[measured] = rows[measured].map(lambda text: str(1.2 * float(text)) if text else "")
    assert compared(monkeypatch, stored, store.read_lock(stored), rows.to_csv(index=False)) == []


def test_each_cell_has_one_line_and_long_tables_are_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alter(folder, lambda row: row.update(rmse=row["rmse"] * 1.01, ll=row["ll"] - 0.01))
    items, equal = output.verify_folders([store.read_intact(folder)], ALL, jobs=1, budget=math.inf)
    lines = lines_of(items)
    assert equal is False
    assert sum(" diabetes " in line for line in lines) == 6
    monkeypatch.setattr(output, "_SHOWN", 4)
    items, _ = output.verify_folders([store.read_intact(folder)], ALL, jobs=1, budget=math.inf)
    lines = lines_of(items)
    assert "... and 2 more" in lines


def test_methods_declare_what_equality_means() -> None:
    assert {name: runner.equality(name) for name in ("pbp", "hmc", "gp", "sgp")} == {
        "pbp": "exact", "hmc": "sampled", "gp": "stable", "sgp": "optimised"
    }  # fmt: skip
    assert runner.equality("ep_bench.baselines:ConstantClassifier") == "exact"
    assert runner.equality("sklearn.linear_model:Ridge") == "optimised"
