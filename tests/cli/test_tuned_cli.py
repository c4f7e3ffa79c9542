"""The example study of tuning, and a smaller one, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ep_bench.results import store
from tests.commands import ep_bench

pytestmark = pytest.mark.usefixtures("in_process")

ROOT = Path(__file__).parents[2]

STUDY = """
study: tiny
datasets: [diabetes, friedman1]
splits: {scheme: standard, count: 2}
methods:
  - use: "sklearn.linear_model:Ridge"
    label: tuned
    tune: {trials: 4, score: rmse, space: {alpha: {log: [0.01, 100]}, fit_intercept: [true, false]}}
  - {use: "sklearn.linear_model:Ridge", label: plain}
"""


@pytest.mark.slow
def test_a_tuned_study_from_plan_to_report(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(STUDY)
    plan = ep_bench("plan", "tiny.yaml", cwd=tmp_path).stdout
    assert (
        "tuned: tuned, 4 trials, scored by rmse on 0.2 of the training points: alpha log [0.01, 100.0], fit_intercept"
        in plan
    )
    assert "8 cells, 8 to run" in plan
    run = ep_bench("run", "tiny.yaml", cwd=tmp_path)
    assert "8 cells run; 8 ok" in run.stdout, run.stderr
    folder = tmp_path / "results" / "tiny"
    assert sum("tune" in record.notes for record in store.each_record(folder, [])) == 4
    lock = json.loads((folder / "study.lock.json").read_text())
    assert lock["methods"]["tuned"]["tune"]["trials"] == 4
    assert "tune" not in lock["methods"]["plain"]
    again = ep_bench("run", "tiny.yaml", cwd=tmp_path)
    assert "0 cells run; 8 ok" in again.stdout
    (tmp_path / "tiny.yaml").write_text(STUDY.replace("trials: 4", "trials: 5"))
    stale = ep_bench("plan", "tiny.yaml", cwd=tmp_path).stdout
    assert "stale: tuned on diabetes, 2 cells: tune.trials: 4 -> 5" in stale
    assert "8 cells, 4 to run" in stale
    report = ep_bench("report", "results/tiny", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert 'id="tuned"' in (folder / "report/report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_study_runs(tmp_path: Path) -> None:
    text = (ROOT / "configs/tuned.yaml").read_text(encoding="utf-8")
    trials = {entry["tune"]["trials"] for entry in yaml.safe_load(text)["methods"] if "tune" in entry}
    assert trials == {15}
    (tmp_path / "tuned.yaml").write_text(text.replace("trials: 15", "trials: 2"))
    run = ep_bench("run", "tuned.yaml", "--select", "split=0", cwd=tmp_path)
    assert "16 cells run; 16 ok" in run.stdout, run.stderr
    for row in store.read_rows(tmp_path / "results/tuned/results.csv"):
        assert ("tune_seconds" in row) == row["method"].endswith("tuned")


def test_a_wrong_space_is_one_message_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(STUDY.replace("alpha:", "alhpa:"))
    done = ep_bench("run", "tiny.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "tiny.yaml:8: methods[0].tune.space.alhpa: sklearn.linear_model:Ridge has no such option" in done.stderr
    assert "did you mean 'alpha'?" in done.stderr
    assert "Traceback" not in done.stderr
