"""Random restarts of networks: seeds, counts, and fits without a posterior."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import data
from ep_bench.experiments import get
from ep_bench.experiments.ep_nn_2014 import network_fits
from ep_bench.experiments.ep_nn_2014.network_restarts import compute as network_restarts
from ep_bench.experiments.ep_nn_2014.network_restarts.compute import MEASURES
from ep_bench.experiments.record import ExperimentResults
from tests.experiments.support import run_experiment

SMALL: dict[str, Any] = {"use": "ep_nn", "label": "LA", "hidden": [2], "sweeps": 55}
OTHER: dict[str, Any] = {**SMALL, "label": "ARD", "prior": "ard"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"datasets": [{"name": "friedman1", "restarts": 3}], "methods": [SMALL, OTHER]}
    return run_experiment("network_restarts", options, 0, tmp_path_factory.mktemp("r") / "few", "few")


@pytest.fixture(scope="module")
def found(arrays: dict[str, Any]) -> dict[str, Any]:
    assert arrays["labels"].tolist() == ["LA", "ARD"]
    return {name: arrays["found_0"][:, place] for place, name in enumerate(arrays["measures"].tolist())}


def test_each_start_is_determined_by_its_seed(found: dict[str, Any]) -> None:
    assert len(np.unique(found["log_evidence"])) == 6
    whole = data.load_dataset("friedman1")
    train, test = data.standard_split(len(whole.y), 0)
    entry = network_restarts.ExperimentMethod.model_validate(SMALL)
    fit = network_fits.fitted(entry, whole.X[train], whole.y[train], standardize=True, seed=2)
    assert fit.model.log_evidence_ == found["log_evidence"][0, 2]
    prediction = fit.model.predict_dist(whole.X[test])
    assert found["ll"][0, 2] == pytest.approx(prediction.logpdf(whole.y[test]).mean())
    assert found["rmse"][0, 2] == pytest.approx(
        math.sqrt(np.mean((fit.model.predict(whole.X[test]) - whole.y[test]) ** 2))
    )
    assert found["step"][0, 2] == max(values[-1] for name, values in fit.model.trace_.items() if "step_" in name)


def test_a_longer_run_begins_with_the_fits_of_a_shorter_one(found: dict[str, Any]) -> None:
    config = network_restarts.Config(datasets=[{"name": "friedman1", "restarts": 2}], methods=[SMALL])
    again = get("network_restarts").compute(config, 0)[0]["found_0"][0]
    np.testing.assert_array_equal(again[MEASURES.index("ll")], found["ll"][0, :2])


def test_arrays_and_summary_agree(results: ExperimentResults, found: dict[str, Any]) -> None:
    rows = results.summary
    assert [row["method"] for row in rows] == ["LA", "ARD"]
    for i, row in enumerate(rows):
        assert (row["restarts"], row["converged"], row["failed"], row["non_finite"]) == ("3", "0", "0", "0")
        assert float(row["sweeps_most"]) == 55
        for name in ("rmse", "ll", "log_evidence"):
            for words, quantile in (("least", np.min), ("median", np.median), ("most", np.max)):
                assert float(row[f"{name}_{words}"]) == pytest.approx(quantile(found[name][i]), rel=1e-3)
        best = found["ll"][i, np.argmax(found["log_evidence"][i])]
        assert float(row["ll_of_highest_evidence"]) == pytest.approx(best, rel=1e-3)


def test_failed_and_non_finite_fits_are_counted() -> None:
    values = np.ones((len(MEASURES), 4))
    values[:, 1] = math.nan
    values[MEASURES.index("converged"), 1:3] = 0.0
    values[MEASURES.index("ll"), 2] = math.nan
    row = network_restarts.summarise(values, ["", "no posterior", "", ""])
    assert (row["converged"], row["failed"], row["non_finite"], row["reason"]) == (2, 1, 1, "no posterior")
