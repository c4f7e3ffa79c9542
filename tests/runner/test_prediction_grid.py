"""Predictions over a grid in the notes of a cell with one input; scores do not depend on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ep_bench import Estimator, data
from ep_bench.errors import UserError
from ep_bench.results import curves, store
from ep_bench.runner import fit_notes
from ep_bench.runner.cell import run_cell
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import Plan
from ep_bench.runner.run import RunOptions, run_plan
from ep_bench.types import MEASURED_COLUMNS
from tests.runner import support

pytestmark = pytest.mark.usefixtures("in_process")

METHODS = '''
import warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from ep_bench.baselines import ConstantRegressor

class OnlyPoints:
    def fit(self, X, y):
        self.mean = float(np.mean(y))
        return self
    def predict(self, X):
        return np.full(len(X), self.mean)

class Timid(ConstantRegressor):
    """Refuses inputs outside the range of the training data."""
    def fit(self, X, y):
        self.reach = float(np.abs(X).max())
        return super().fit(X, y)
    def predict(self, X, return_std=False):
        if len(X) > 200:
            warnings.warn("did not converge on the grid", ConvergenceWarning)
            raise ValueError("too far")
        return super().predict(X, return_std=return_std)

class Infinite(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        if len(X) > 200:
            mean[0] = np.inf
        return (mean, std) if return_std else mean

class Boundless(ConstantRegressor):
    """Has no standard deviation at one end of the grid."""
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        if len(X) > 200:
            std[0] = np.inf
        return (mean, std) if return_std else mean
'''


def plan_of(folder: Path, method: str, dataset: str = "cubic") -> Plan:
    (folder / "odd.py").write_text(METHODS)
    text = f"study: s\ndatasets: [{dataset}]\nsplits: {{scheme: standard, count: 2}}\nmethods: ['{method}']\n"
    return support.plan_of(folder, text)


def jobs_of(folder: Path, method: str, dataset: str = "cubic") -> list[Job]:
    return [planned.job for planned in plan_of(folder, method, dataset).cells]


def test_a_cell_with_one_input_keeps_what_the_method_predicts_beyond_the_data(tmp_path: Path) -> None:
    job = jobs_of(tmp_path, "pbp")[1]
    record = run_cell(job)
    kept = record.notes["curve"]
    cubic = data.load_dataset("cubic")
    train, test = data.standard_split(20, 1)
    width = np.ptp(cubic.X)
    assert len(kept["grid"]) == len(kept["mean"]) == len(kept["std"]) == len(kept["truth"]) == fit_notes.POINTS
    assert kept["grid"][0] == pytest.approx(cubic.X.min() - 0.25 * width, rel=1e-5)
    assert kept["grid"][-1] == pytest.approx(cubic.X.max() + 0.25 * width, rel=1e-5)
    np.testing.assert_allclose(kept["x_train"], cubic.X[train, 0], rtol=1e-5)
    np.testing.assert_allclose(kept["y_test"], cubic.y[test], rtol=1e-5)
    model = Estimator("pbp", random_state=job.cell.seed).fit(cubic.X[train], cubic.y[train])
    grid = np.linspace(cubic.X.min() - 0.25 * width, cubic.X.max() + 0.25 * width, fit_notes.POINTS)
    mean, std = model.predict(grid[:, None], return_std=True)
    np.testing.assert_allclose(kept["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(kept["std"], std, rtol=1e-5)
    np.testing.assert_allclose(kept["truth"], grid**3, rtol=1e-5, atol=1e-9)
    assert len(json.dumps(kept)) < 16_000


def test_scores_and_hashes_do_not_depend_on_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs_of(tmp_path, "pbp")[0]
    drawn = run_cell(job)
    monkeypatch.setattr(fit_notes, "over_grid", lambda *_: None)
    plain = run_cell(job)
    assert "curve" in drawn.notes
    assert "curve" not in plain.notes
    assert {k: v for k, v in drawn.row.items() if k not in MEASURED_COLUMNS} == {
        k: v for k, v in plain.row.items() if k not in MEASURED_COLUMNS
    }
    assert drawn.factors == plain.factors


def test_more_inputs_leave_no_curve(tmp_path: Path) -> None:
    assert "curve" not in run_cell(jobs_of(tmp_path, "pbp", "{name: cubic, irrelevant_inputs: 1}")[0]).notes


def test_a_method_with_point_predictions_has_a_mean_only(tmp_path: Path) -> None:
    kept = run_cell(jobs_of(tmp_path, "./odd.py:OnlyPoints")[0]).notes["curve"]
    assert kept["std"] is None
    assert len(set(kept["mean"])) == 1


@pytest.mark.parametrize("name", ["Timid", "Infinite"])
def test_an_error_on_the_grid_does_not_affect_the_cell(tmp_path: Path, name: str) -> None:
    record = run_cell(jobs_of(tmp_path, f"./odd.py:{name}")[0])
    assert (record.row["status"], record.row["reason"]) == ("ok", "")
    assert record.row["rmse"] > 0
    assert "curve" not in record.notes


def test_a_non_finite_standard_deviation_leaves_the_mean(tmp_path: Path) -> None:
    record = run_cell(jobs_of(tmp_path, "./odd.py:Boundless")[0])
    assert record.row["status"] == "ok"
    assert record.notes["curve"]["std"] is None


def test_a_user_csv_has_no_true_function_and_many_points_are_thinned(tmp_path: Path) -> None:
    lines = "\n".join(f"{i / 100},{i % 7}" for i in range(1000))
    (tmp_path / "own.csv").write_text("a,y\n" + lines)
    job = jobs_of(tmp_path, "ep_bench.baselines:ConstantRegressor", "{name: own, csv: own.csv, target: y}")[0]
    kept = run_cell(job).notes["curve"]
    assert kept["truth"] is None
    assert len(kept["x_train"]) == fit_notes.POINTS_KEPT
    assert len(kept["x_test"]) == 100


def test_a_constant_input_still_has_a_grid(tmp_path: Path) -> None:
    (tmp_path / "flat.csv").write_text("a,y\n" + "\n".join(f"2,{i % 7}" for i in range(40)))
    job = jobs_of(tmp_path, "ep_bench.baselines:ConstantRegressor", "{name: flat, csv: flat.csv, target: y}")[0]
    kept = run_cell(job).notes["curve"]
    assert (kept["grid"][0], kept["grid"][-1]) == (1.0, 3.0)


def test_a_run_writes_curves_next_to_its_results(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "pbp")
    outcome = run_plan(plan, RunOptions(quiet=True))
    assert outcome.complete
    kept = curves.read(plan.folder)
    (traces,), (panel,) = kept.traces, kept.panels
    assert kept.chains == kept.starts == kept.tuned == []
    assert traces["splits"] == [0, 1]
    assert len(traces["traces"]["noise_deviation"]["median"]) == 40
    assert panel["splits"] == [0]
    record = store.read_record(plan.folder / store.CELLS / f"{plan.cells[0].job.cell.key}.json")
    assert record is not None
    assert panel["panel"] == record.notes["curve"]


def test_a_file_of_curves_that_cannot_be_read_is_refused_before_anything_runs(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "pbp")
    plan.folder.mkdir(parents=True)
    (plan.folder / curves.FILE).write_text("<<<<<<< HEAD")
    with pytest.raises(UserError, match=r"curves\.json: cannot be read"):
        run_plan(plan, RunOptions(quiet=True))
    assert not (plan.folder / store.CELLS).exists()
