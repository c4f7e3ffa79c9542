"""Scores of a cell, recomputed directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ep_bench import Estimator, data
from ep_bench.estimator import warm_up
from ep_bench.estimator.source_code import source_hash
from ep_bench.results.integrity import impossible
from ep_bench.runner import cell
from ep_bench.runner.cell import run_cell
from ep_bench.runner.jobs import Job
from ep_bench.runner.pool import run_jobs
from ep_bench.types import COLUMNS
from tests.runner.support import REF, job, jobs_of

ONE = "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\nmethods: [METHOD]\n"


def test_a_row_matches_the_estimator(tmp_path: Path) -> None:
    text = "study: s\ndatasets: [diabetes]\nmethods: [{use: pbp, epochs: 3, hidden: [20]}]\n"
    jobs = jobs_of(tmp_path, text)
    assert len(jobs) == 20
    row = run_cell(jobs[4]).row
    assert row.keys() <= set(COLUMNS)
    diabetes = data.load_dataset("diabetes")
    train, test = data.standard_split(442, 4)
    model = Estimator("pbp", hidden=[20], epochs=3, random_state=row["seed"]).fit(diabetes.X[train], diabetes.y[train])
    dist = model.predict_dist(diabetes.X[test])
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((dist.mean() - diabetes.y[test]) ** 2)), rel=1e-14)
    assert row["ll"] == pytest.approx(dist.logpdf(diabetes.y[test]).mean(), rel=1e-14)
    assert row["train_ll"] == pytest.approx(model.predict_dist(diabetes.X[train]).logpdf(diabetes.y[train]).mean())
    assert row["target_std"] == pytest.approx(diabetes.y[train].std())
    assert (row["n_train"], row["n_test"]) == (398, 44)
    assert row["fit_seconds"] > 0
    assert row["fit_cpu_seconds"] > 0
    assert row["predict_cpu_seconds"] > 0
    densities = dist.logpdf(diabetes.y[test])
    assert row["ll_min"] == pytest.approx(densities.min(), rel=1e-14)
    assert row["ll_unseen"] == pytest.approx(row["ll"], rel=1e-14)  # all inputs of diabetes are different
    assert "converged" not in row  # PBP has no criterion
    assert row["peak_mb"] > 10


def test_tail_scores_omit_repeated_inputs() -> None:
    train = np.array([[0.0, 1.0], [2.0, 3.0]])
    test = np.array([[2.0, 3.0], [3.0, 2.0], [-0.0, 1.0], [2.0, 3.1]])
    ll = np.array([-1.0, -2.0, -4.0, -8.0])
    assert cell._tail_scores({"ll": ll}, train, test) == {"ll_min": -8.0, "ll_unseen": -5.0}
    assert cell._tail_scores({"ll": ll[:1]}, train, test[:1]) == {"ll_min": -1.0}
    assert cell._tail_scores({}, train, test) == {}


def test_a_warning_of_the_method_means_that_it_did_not_converge(tmp_path: Path) -> None:
    row = run_cell(jobs_of(tmp_path, ONE.replace("METHOD", "{use: laplace, updates: 1, steps: 1}"))[0]).row
    assert (row["status"], row["converged"]) == ("ok", "false")
    assert row["reason"].startswith("not converged")
    assert run_cell(jobs_of(tmp_path, ONE.replace("METHOD", "gp"))[0]).row["converged"] == "true"


def test_a_sampler_reports_the_r_hat_of_its_predictions(tmp_path: Path) -> None:
    method = "{use: hmc, activation: tanh, chains: 2, warmup: 20, samples: 20}"
    row = run_cell(jobs_of(tmp_path, ONE.replace("METHOD", method))[0]).row
    assert row["r_hat"] >= 1.0
    assert row["converged"] in {"true", "false"}


FAULTY = """
import numpy as np
from ep_bench.baselines import ConstantRegressor

class Density:
    def __init__(self, n): self.n = n
    def mean(self): return np.zeros(self.n)
    def var(self): return np.ones(self.n)
    def logpdf(self, y): return np.zeros(self.n)
    def cdf(self, y): return np.full(self.n, 7.0)
    def ppf(self, p): return np.full(self.n, 1.0 - p)

class Faulty(ConstantRegressor):
    def predict_dist(self, X): return Density(len(X))
"""


def test_a_cell_with_impossible_scores_has_failed(tmp_path: Path) -> None:
    """A table with its row could not be read."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    record = run_cell(jobs_of(tmp_path, ONE.replace("METHOD", '"./faulty.py:Faulty"'))[0])
    assert record.row["status"] == "failed"
    assert "impossible value: " in record.row["reason"]
    assert impossible(record.row) == ""


def test_a_record_has_its_provenance(tmp_path: Path) -> None:
    record = run_cell(job())
    assert record.provenance["packages"]["numpy"] == np.__version__
    assert record.provenance["machine"]["cores"] >= 1
    assert record.factors["dataset"]["checksum"] == data.describe(REF).checksum
    assert record.provenance["finished"].endswith("Z")
    (pbp,) = jobs_of(tmp_path, "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\nmethods: [pbp]\n")
    computed = run_cell(pbp)
    assert len(computed.trace["noise_deviation"]) == 40
    assert computed.provenance["source"] == source_hash("pbp")
    assert "source" not in record.provenance  # the version of an external class is that of its package or file


def test_the_constant_input_of_naval_follows_the_paper(tmp_path: Path) -> None:
    text = (
        "study: s\ndatasets: [{name: naval, constant_inputs: paper}, {name: naval, label: plain}]\n"
        "splits: {scheme: standard, count: 1}\nmethods: [{use: pbp, epochs: 1}]\n"
    )
    paper, plain = (run_cell(one).row for one in jobs_of(tmp_path, text))
    naval = data.load_dataset("naval", constant_inputs="paper")
    assert dict(naval.constants) == {11: 1.0}
    assert paper["rmse"] != plain["rmse"]
    train, _ = data.standard_split(len(naval.y), 0)
    model = Estimator("pbp", epochs=1, random_state=0, constant_inputs=dict(naval.constants))
    scaled = model.fit(naval.X[train], naval.y[train]).x_scaling_.apply(naval.X[train])
    np.testing.assert_array_equal(scaled[:, 11], 1.0)
    np.testing.assert_array_equal(scaled[:, 8], 0.0)


def test_a_data_file_that_changed_since_the_plan_is_not_used(tmp_path: Path) -> None:
    lines = "\n".join(f"{i},{i * i % 7}" for i in range(30))
    (tmp_path / "own.csv").write_text("a,y\n" + lines)
    text = "study: s\ndatasets: [{name: own, csv: own.csv, target: y}]\nmethods: [{use: pbp, epochs: 1}]\n"
    first = jobs_of(tmp_path, text)[0]
    (tmp_path / "own.csv").write_text("a,y\n" + lines + "\n31,4")
    row = run_cell(first).row
    assert row["status"] == "failed"
    assert "changed since the plan" in row["reason"]


ODD = """
import os
import odd_helper
from ep_bench.baselines import ConstantRegressor

class Claims(ConstantRegressor):
    def fit(self, X, y):
        error = RuntimeError("ok")
        error.status = "ok"
        raise error

class Unprintable(ConstantRegressor):
    def fit(self, X, y):
        raise FileNotFoundError(os.fsdecode(b"caf\\xe9.npy"))

class Helped(ConstantRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ += odd_helper.SHIFT
        return self
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "odd_helper.py").write_text("SHIFT = 1.0\n")
    return tmp_path


def odd_job(folder: Path, name: str) -> Job:
    text = f"study: s\ndatasets: [diabetes]\nsplits: {{scheme: standard, count: 1}}\nmethods: ['./odd.py:{name}']\n"
    return jobs_of(folder, text)[0]


def test_an_exception_cannot_choose_its_status(odd: Path) -> None:
    row = run_cell(odd_job(odd, "Claims")).row
    assert (row["status"], row["reason"]) == ("failed", "RuntimeError: ok (odd.py:10)")


def test_modules_next_to_a_method_are_part_of_its_version(odd: Path) -> None:
    before = odd_job(odd, "Helped").cell
    (odd / "odd_helper.py").write_text("SHIFT = 2.0\n")
    after = odd_job(odd, "Helped").cell
    assert before.key != after.key
    assert "odd_helper" in after.factors["version"]


def test_a_method_that_changed_after_the_plan_is_not_stored_under_its_name(odd: Path) -> None:
    planned = odd_job(odd, "Helped")
    (odd / "odd_helper.py").write_text("SHIFT = 3.0\n")
    assert run_cell(planned).row["status"] == "ok"  # in this process, the old version is still loaded
    (row,) = (record.row for record in run_jobs([planned], n_jobs=1))
    assert row["status"] == "failed"
    assert row["reason"].startswith("changed since the plan was made: the method")


def test_modules_with_the_same_name_in_two_folders_are_distinct(odd: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "odd.py").write_text(ODD)
    (other / "odd_helper.py").write_text("SHIFT = 50.0\n")
    first, second = (run_cell(odd_job(folder, "Helped")).row for folder in (odd, other))
    assert first["status"] == second["status"] == "ok"
    assert first["rmse"] != second["rmse"]


@pytest.mark.parametrize("block", [1, 7, 45, 46])
def test_scoring_training_points_in_blocks_gives_the_same_scores(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\nmethods: [{use: pbp, epochs: 2}]\n"
    (one,) = jobs_of(tmp_path, text)
    whole = run_cell(one).row
    sizes = []
    score = cell.scoring.score_training
    monkeypatch.setattr(cell, "TRAINING_BLOCK", block)
    monkeypatch.setattr(cell.scoring, "score_training", lambda p, y: sizes.append(len(y)) or score(p, y))
    row = run_cell(one).row
    n = whole["n_train"]
    assert sizes == [min(block, n - start) for start in range(0, n, block)]
    for name in ("train_rmse", "train_ll"):
        assert row[name] == pytest.approx(whole[name], rel=1e-12)
    assert row["rmse"] == whole["rmse"]


def test_a_method_that_refuses_the_warm_up_data(tmp_path: Path) -> None:
    options = {"hidden": [], "alpha": 0.5}
    with pytest.raises(FloatingPointError):  # noise learned from three points, as in warm_up
        Estimator("bb_alpha", **options).fit(np.arange(9.0).reshape(3, 3) % 4.0, np.arange(3.0))
    assert warm_up("bb_alpha", options) >= 0.0
    text = (
        "study: s\ndatasets: [diabetes]\nsplits: {scheme: standard, count: 1}\n"
        "methods: [{use: bb_alpha, hidden: [], alpha: 0.5}]\n"
    )
    (one,) = jobs_of(tmp_path, text)
    row = run_cell(one).row
    assert (row["status"], row["reason"]) == ("ok", "")
    assert np.isfinite([row["ll"], row["train_ll"]]).all()
