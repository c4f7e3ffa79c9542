"""The spread over seeds: analysis of variance, seeds, failed fits, figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ep_bench import experiments
from ep_bench.experiments import figures, method_entries
from ep_bench.experiments.study_folder import relative_to
from ep_bench.experiments.variance_2021.seed_spread import compute
from ep_bench.results import store

RIDGE = {"use": "sklearn.linear_model:BayesianRidge", "standardize": True, "label": "ridge"}
PBP = {"use": "pbp", "label": "PBP", "epochs": 2, "hidden": [5]}
SMALL: dict[str, Any] = {"datasets": ["yacht"], "splits": 3, "seeds": 2, "methods": [PBP, RIDGE]}
FAILS = """
import numpy as np

class Fails:
    def fit(self, X, y):
        if len(np.unique(X[:, 0])) and np.isclose(X[0, 0], {first!r}):
            raise ValueError("no luck")
        return self
    def predict(self, X, return_std=False):
        return np.zeros(len(X)), np.ones(len(X))
"""


def test_variances_are_those_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0.0, 2.0, (30, 1)) + rng.normal(0.0, 1.0, (30, 4))
    found = compute.spread(values)
    within, between = found["seed_std"] ** 2, found["split_std"] ** 2
    assert stats.f_oneway(*values).statistic == pytest.approx((within + 4.0 * between) / within, rel=1e-12)
    assert found["seed_fraction"] == pytest.approx(within / (within + between))
    assert found["stderr"] == pytest.approx(np.sqrt((within + between) / 30))
    assert found["lowest_mean"] <= found["mean"] <= found["highest_mean"]


def test_variances_of_many_simulated_scores_are_those_of_the_model() -> None:
    rng = np.random.default_rng(2)
    found = compute.spread(rng.normal(0.0, 2.0, (20_000, 1)) + rng.normal(0.0, 0.5, (20_000, 3)))
    assert found["split_std"] == pytest.approx(2.0, rel=0.02)
    assert found["seed_std"] == pytest.approx(0.5, rel=0.02)


def test_scores_without_an_effect_of_the_split_have_no_negative_variance() -> None:
    found = compute.spread(np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert (found["split_std"], found["seed_fraction"]) == (0.0, 1.0)


def test_only_random_methods_depend_on_the_seed(tmp_path: Path) -> None:
    folder = experiments.run("seed_spread", SMALL, 0, tmp_path / "r", "r")
    arrays = np.load(folder / "arrays.npz")
    assert np.all(np.ptp(arrays["rmse"][0, 0], axis=1) > 0.0)
    assert np.all(np.ptp(arrays["rmse"][0, 1], axis=1) == 0.0)
    again = compute.fit("yacht", compute.AnyMethod(**PBP).model_dump_json(), 1, 0)
    assert again["rmse"] == arrays["rmse"][0, 0, 1, 0]


def test_a_split_with_a_failed_fit_is_left_out(tmp_path: Path) -> None:
    dataset = compute.data.load_dataset("yacht")
    first = dataset.X[compute.data.make_split(compute.SplitScheme("standard"), dataset, 1).train[0], 0]
    (tmp_path / "fails.py").write_text(FAILS.format(first=float(first)))
    entry = {"use": "fails.py:Fails", "label": "fails"}
    dataset_splits = [compute.data.make_split(compute.SplitScheme("standard"), dataset, k).train[0] for k in range(3)]
    failing = sum(bool(np.isclose(dataset.X[row, 0], first)) for row in dataset_splits)
    with relative_to(tmp_path):
        arrays, rows = compute.compute(compute.Config(**SMALL | {"methods": [entry, RIDGE]}), 0)
    assert [row["splits"] for row in rows] == [3 - failing, 3 - failing, 3, 3]
    assert len(arrays["failures"]) == 2 * failing
    assert re.fullmatch(r"fails on yacht, split \d, seed \d: .*no luck.*", str(arrays["failures"][0]))


def test_an_own_file_is_relative_to_the_study(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3)).tolist()
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,y", *(",".join(map(repr, row)) for row in rows)]) + "\n")
    own = {"name": "mine", "csv": "mine.csv", "target": "y"}
    with relative_to(tmp_path):
        arrays, summary = compute.compute(compute.Config(**SMALL | {"datasets": [own], "methods": [RIDGE]}), 0)
    assert np.isfinite(arrays["rmse"]).all()
    assert {row["dataset"] for row in summary} == {"mine"}


def test_the_report_has_a_figure_per_score_and_a_table(tmp_path: Path) -> None:
    section = figures.section(store.read_study(experiments.run("seed_spread", SMALL, 0, tmp_path / "r", "r")))
    assert len(section.pictures) == 2
    assert [row[:3] for row in section.tables[0].rows][::2] == [["yacht", "PBP", "RMSE"], ["yacht", "ridge", "RMSE"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"datasets": ["pima"]}, "classification"), ({"seeds": 1}, "2"), ({"methods": [PBP, PBP]}, "two methods")],
)
def test_wrong_options_have_one_message(options: dict[str, Any], message: str) -> None:
    problems = experiments.problems("seed_spread", SMALL | options)
    assert len(problems) == 1
    assert message in str(problems[0].error())


def test_the_time_of_a_fit_excludes_the_compilation_of_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def compile_slowly(*_: Any) -> None:
        clock[0] += 100.0

    monkeypatch.setattr(compute.time, "process_time", lambda: clock[0])
    monkeypatch.setattr(method_entries, "warm_up", compile_slowly)
    method = method_entries.AnyMethod.model_validate({**PBP, "epochs": 1})
    found = compute.fit("yacht", method.model_dump_json(), 0, 0)
    assert (found["failure"], found["seconds"], clock) == ("", 0.0, [100.0])


def test_a_method_that_cannot_be_compiled_is_a_failed_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(method_entries, "warm_up", fail)
    method = method_entries.AnyMethod.model_validate(PBP)
    assert "no luck" in compute.fit("yacht", method.model_dump_json(), 0, 0)["failure"]
