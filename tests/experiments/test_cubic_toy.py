"""The toy problem of the PBP paper: arrays, summary, and what the figure must show."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ep_bench import experiments, store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        {"use": "pbp", "label": "PBP", "hidden": [100]},
        {"use": "pbp", "label": "small", "hidden": [5], "epochs": 3},
    ]
    return experiments.run(
        "cubic_toy", {"methods": entries, "points": 61}, 0, tmp_path_factory.mktemp("r") / "toy", "toy"
    )


def test_arrays_and_summary(folder: Path) -> None:
    with np.load(folder / "arrays.npz") as arrays:
        assert arrays["grid"].shape == arrays["truth"].shape == arrays["mean_1"].shape == arrays["std_1"].shape == (61,)
        assert arrays["x"].shape == arrays["y"].shape == (20,)
        assert list(arrays["labels"]) == ["PBP", "small"]
        np.testing.assert_allclose(arrays["truth"], arrays["grid"] ** 3)
    with (folder / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["PBP", "small"]
    assert float(rows[0]["rmse_inside"]) < float(rows[1]["rmse_inside"])


def test_uncertainty_grows_away_from_the_data(folder: Path) -> None:
    with np.load(folder / "arrays.npz") as arrays:
        grid, std = arrays["grid"], arrays["std_0"]
        inside = np.abs(grid) < 3
        assert std[[0, -1]].min() > 1.5 * np.median(std[inside])


def test_the_same_experiment_is_not_computed_again(folder: Path) -> None:
    before = (folder / "arrays.npz").stat().st_mtime_ns
    options = store.read_lock(folder)["options"]
    experiments.run("cubic_toy", options, 0, folder, "toy")
    assert (folder / "arrays.npz").stat().st_mtime_ns == before
    experiments.run("cubic_toy", options, 1, folder, "toy")
    assert (folder / "arrays.npz").stat().st_mtime_ns != before


def test_bad_options_are_told_with_their_place() -> None:
    assert experiments.problems("cubic_toy", {}) == []
    (problem,) = experiments.problems("cubic_toy", {"poins": 3})
    assert problem[0] == ("poins",)
    assert "points" in problem[3]
    (problem,) = experiments.problems("cubic_toy", {"methods": [{"use": "pbpp"}]})[:1]
    assert problem[0][:2] == ("methods", 0)
