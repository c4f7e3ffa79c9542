"""The toy problem of the PBP paper: arrays, summary and options."""

from __future__ import annotations

import csv
import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field
from sklearn.exceptions import ConvergenceWarning

from ep_bench import data, experiments, methods
from ep_bench.estimator import Estimator
from ep_bench.experiments import distribution_distances
from ep_bench.experiments.figures import section
from ep_bench.experiments.record import ExperimentResults
from ep_bench.predictions import Predictive
from ep_bench.results import store
from ep_bench.types import Array, Method, Rows
from tests.experiments.support import run_experiment

pytestmark = pytest.mark.xdist_group("models")  # whose kernels it needs
TOY = yaml.safe_load((Path(__file__).parents[3] / "configs" / "pbp_2015" / "toy.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        {"use": "pbp", "label": "PBP", "hidden": [100]},
        {"use": "pbp", "label": "small", "hidden": [5], "epochs": 3},
    ]
    options = {"methods": entries, "points": 61}
    return run_experiment("cubic_toy", options, 0, tmp_path_factory.mktemp("r") / "toy", "toy")


def test_arrays_and_summary(arrays: dict[str, Any], results: ExperimentResults) -> None:
    assert arrays["grid"].shape == arrays["truth"].shape == arrays["mean_1"].shape == arrays["std_1"].shape == (61,)
    assert arrays["x"].shape == arrays["y"].shape == (20,)
    assert list(arrays["labels"]) == ["PBP", "small"]
    np.testing.assert_allclose(arrays["truth"], arrays["grid"] ** 3)
    rows = results.summary
    assert [row["method"] for row in rows] == ["PBP", "small"]
    assert float(rows[0]["rmse_inside"]) < float(rows[1]["rmse_inside"])


def test_uncertainty_grows_away_from_the_data(arrays: dict[str, Any]) -> None:
    grid, std = arrays["grid"], arrays["std_0"]
    inside = np.abs(grid) < 3
    assert std[[0, -1]].min() > 1.5 * np.median(std[inside])


class KnownNoise(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    noise_variance: float | None = Field(None, gt=0, description="standardised units")


def fit_known_noise(train: Rows, config: KnownNoise, rng: np.random.Generator) -> tuple[float, dict[str, list[float]]]:
    return config.noise_variance or 1.0, {}


def predict_known_noise(state: float, X: Array, rng: np.random.Generator) -> Predictive:
    return Predictive.gaussian(np.zeros(len(X)), np.full(len(X), state))


@pytest.fixture
def known_noise(monkeypatch: pytest.MonkeyPatch) -> str:
    """A method of the registry that predicts the mean with a known noise variance."""
    module = types.ModuleType("known_noise_method")
    module.METHOD = Method(
        name="known_noise", version=1, title="Known noise", paper="none", tasks=("regression",), config=KnownNoise,
        fit=fit_known_noise, predict=predict_known_noise,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(methods.REGISTRY, "known_noise", module.__name__)
    return "known_noise"


def test_the_standard_deviation_of_known_noise_is_in_the_unit_of_the_target(known_noise: str, tmp_path: Path) -> None:
    entries = [{"use": known_noise, "label": "3", "noise_deviation": 3}, {"use": known_noise, "label": "unknown"}]
    assert experiments.problems("cubic_toy", {"methods": entries}) == []
    folder = run_experiment("cubic_toy", {"methods": entries, "points": 5}, 0, tmp_path / "toy", "toy")
    with np.load(folder / "arrays.npz") as arrays:
        np.testing.assert_allclose(arrays["std_0"], 3.0)
        np.testing.assert_allclose(arrays["std_1"], data.load_dataset("cubic").y.std())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"use": "bp", "noise_deviation": 3}, "bp has no option noise_variance"),
        ({"use": "known_noise", "noise_deviation": 3, "noise_variance": 0.1}, "give one of them"),
        ({"use": "known_noise", "noise_deviation": 0}, "must be a positive number or null"),
    ],
)
def test_an_unusable_standard_deviation_of_noise_is_refused(known_noise: str, entry: dict, words: str) -> None:
    (problem,) = experiments.problems("cubic_toy", {"methods": [{"use": "pbp"}, entry]})
    assert problem.path[:2] == ("methods", 1)
    assert words in problem.problem


def distances_of(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "summary.csv").open() as file:
        return {row["method"]: row for row in csv.DictReader(file)}


def test_every_method_is_compared_with_the_reference(known_noise: str, tmp_path: Path) -> None:
    """Gaussians with the same mean and standard deviations 3, 3 and 6: closed forms at every input."""
    entries = [
        {"use": known_noise, "label": "wide", "noise_deviation": 6},
        {"use": known_noise, "label": "truth", "noise_deviation": 3},
        {"use": known_noise, "label": "as well", "noise_deviation": 3},
    ]
    options = {"methods": entries, "points": 25, "reference": "truth"}
    rows = distances_of(run_experiment("cubic_toy", options, 0, tmp_path / "toy", "toy"))
    for region in ("", "_inside", "_outside"):
        assert [float(rows[name][f"wasserstein{region}"]) for name in ("truth", "as well")] == [0.0, 0.0]
        assert float(rows["wide"][f"wasserstein{region}"]) == pytest.approx(3 * np.sqrt(2 / np.pi), abs=1e-4)
        own, excess = 3 / np.sqrt(np.pi), np.sqrt(2 / np.pi) * np.sqrt(45) - 9 / np.sqrt(np.pi)
        assert float(rows["truth"][f"crps{region}"]) == pytest.approx(own, abs=1e-4)
        assert float(rows["wide"][f"crps_excess{region}"]) == pytest.approx(excess, abs=1e-4)
        assert float(rows["wide"][f"crps{region}"]) == pytest.approx(own + excess, abs=1e-4)


def test_distances_are_means_over_the_regions_of_the_grid(tmp_path: Path) -> None:
    """The distances are recomputed from the predictive distributions of the fitted methods."""
    entries = [{"use": "pbp", "hidden": [5], "epochs": 3}, {"use": "pbp", "label": "truth", "hidden": [5], "epochs": 9}]
    options = {"methods": entries, "points": 13, "reference": "truth"}
    row = distances_of(run_experiment("cubic_toy", options, 0, tmp_path / "toy", "toy"))["pbp"]
    toy, grid = data.load_dataset("cubic"), np.linspace(-6, 6, 13)
    curves = []
    for epochs in (3, 9):
        model = Estimator("pbp", hidden=[5], epochs=epochs, random_state=0).fit(toy.X, toy.y)
        curves.append(distribution_distances.tabulate(model.predict_dist(grid[:, None])))
    apart = distribution_distances.compare(*curves).wasserstein
    inside = (grid >= toy.X.min()) & (grid <= toy.X.max())
    for region, rows in {"": inside | True, "_inside": inside, "_outside": ~inside}.items():
        assert float(row[f"wasserstein{region}"]) == pytest.approx(apart[rows].mean(), rel=1e-5)


def test_a_reference_that_samples_has_diagnostics(tmp_path: Path) -> None:
    """The distance between the halves is recomputed from the two chains."""
    options = {"hidden": [4], "chains": 2, "samples": 30, "warmup": 20, "steps": 5, "stored": 40}
    entries = [{"use": "hmc", "label": "truth", **options}, {"use": "pbp", "hidden": [5], "epochs": 3}]
    study = {"methods": entries, "points": 9, "reference": "truth"}
    folder = run_experiment("cubic_toy", study, 0, tmp_path / "toy", "toy")
    with np.load(folder / "arrays.npz") as arrays:
        found = dict(zip(arrays["judged"].tolist(), arrays["judgement"].tolist(), strict=True))
    toy, grid = data.load_dataset("cubic"), np.linspace(-6, 6, 9)[:, None]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = Estimator("hmc", **options, random_state=0).fit(toy.X, toy.y)
    whole = model.predict_dist(grid)
    one, two = (Predictive(np.full(20, 0.05), whole.means[p], whole.variances[p]) for p in np.arange(40).reshape(2, 20))
    apart = distribution_distances.compare(
        distribution_distances.tabulate(one), distribution_distances.tabulate(two)
    ).wasserstein
    assert found["halves"] == pytest.approx(apart.mean(), abs=1e-6)
    assert found["r_hat_predictions"] == pytest.approx(model.diagnose(grid)["r_hat_predictions"], abs=1e-6)
    assert found["divergences"] == model.diagnostics_["divergences"]
    drawn = section(store.read_study(folder))
    assert "halves of the chains" in drawn.tables[0].caption


def test_the_study_shows_both_figures() -> None:
    """PBP, VI and BP with 100 hidden units and 40 epochs; black-box alpha from below 0 to 1 with known noise."""
    assert (TOY["study"], TOY["experiment"]) == ("toy", "cubic_toy")
    entries = TOY["options"]["methods"]
    first = {entry["label"]: entry for entry in entries if entry["use"] in {"pbp", "vi_graves", "bp"}}
    assert first.keys() == {"PBP", "VI (Graves)", "BP"}
    assert all((entry["hidden"], entry["epochs"]) == ([100], 40) for entry in first.values())
    row = [entry for entry in entries if entry["use"] == "bb_alpha"]
    alphas = [entry["alpha"] for entry in row]
    assert alphas == sorted(alphas)
    assert {1e-6, 0.5, 1.0} <= set(alphas)
    assert sum(alpha < 0 for alpha in alphas) == 2
    assert all((entry["hidden"], entry["noise_deviation"]) == ([100], 3) for entry in row)
    cubic = data.load_dataset("cubic")
    (dropout,) = (entry for entry in entries if entry["use"] == "dropout")
    assert dropout["tau"] == pytest.approx(cubic.y.var() / 9, rel=1e-3)


def test_every_method_of_the_study_draws_its_panel(tmp_path: Path) -> None:
    short = {"hmc": {"warmup": 10, "samples": 20, "steps": 5}, "laplace": {"updates": 2, "steps": 5}}
    entries = [{**entry, **short.get(entry["use"], {"epochs": 2})} for entry in TOY["options"]["methods"]]
    folder = run_experiment("cubic_toy", {"methods": entries, "points": 11}, 0, tmp_path / "toy", "toy")
    with np.load(folder / "arrays.npz") as arrays:
        assert list(arrays["labels"]) == [entry["label"] for entry in entries]
        for i, entry in enumerate(entries):
            assert np.isfinite(arrays[f"mean_{i}"]).all()
            minimum = 3.0 if entry["use"] == "bb_alpha" else 0.0  # the predictions include the known noise
            assert np.all(arrays[f"std_{i}"] >= minimum * (1 - 1e-9))


@pytest.mark.slow
def test_with_alpha_1_the_energy_falls_while_the_error_at_the_data_grows() -> None:
    """Longer training of black-box alpha is no failed search, although it fits the data worse."""
    toy = data.load_dataset("cubic")
    options = {"hidden": [100], "alpha": 1.0, "schedule": "released program", "noise_variance": 9.0 / toy.y.var()}
    energies, errors = [], []
    for epochs in (2000, 10000):
        with warnings.catch_warnings(action="ignore"):  # that the energy still falls
            model = Estimator("bb_alpha", **options, epochs=epochs, learning_rate=0.001, random_state=0)
            model.fit(toy.X, toy.y)
        energies.append(model.trace_["objective"][-1])
        errors.append(float(np.sqrt(np.mean((model.predict(toy.X) - toy.y) ** 2))))
    assert energies[1] < 0.5 * energies[0]
    assert errors[1] > 2.0 * errors[0]


def test_options_are_searched_and_each_method_has_several_seeds(tmp_path: Path) -> None:
    entry = {"use": "bp", "label": "BP", "hidden": [5], "epochs": 2}
    entries = [entry, {**entry, "label": "searched", "tune": {"trials": 3, "score": "rmse"}}]
    folder = run_experiment("cubic_toy", {"methods": entries, "points": 11, "seeds": 2}, 0, tmp_path / "toy", "toy")
    with np.load(folder / "arrays.npz") as arrays:
        assert arrays["labels"].tolist() == ["BP #0", "BP #1", "searched #0", "searched #1"]
        assert not np.array_equal(arrays["mean_0"], arrays["mean_2"])
    assert "tune" not in json.loads((folder / store.LOCK).read_text())["options"]["methods"][0]
