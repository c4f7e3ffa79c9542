"""Two relevant inputs: the clusters, effects, and the input that a point estimate prunes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench.experiments.ep_nn_2014 import network_fits
from ep_bench.experiments.ep_nn_2014.ard_overfitting import compute as ard_overfitting

PROCESS: dict[str, Any] = {"use": "gp", "label": "GP-ARD", "kernel": "nn", "prior": "none"}
DRAWS = 3


RUN = "ard_overfitting", {"draws": DRAWS, "points": 31}, "case"


def test_clusters_have_their_centres_and_values() -> None:
    config = ard_overfitting.Config(rows=400)
    X, y, cluster = ard_overfitting.clusters(config, np.random.default_rng(0))
    for place, (centre, value) in enumerate(((1.0, 1.0), (0.0, 0.0), (-1.0, 0.8))):
        mine = cluster == place
        assert mine.sum() == 400
        assert np.abs(X[mine] - centre).max() <= 0.4
        assert np.abs(X[mine] - centre).max() > 0.39
        assert y[mine].mean() == pytest.approx(value, abs=4 * 0.1 / 20)
        assert y[mine].std() == pytest.approx(0.1, rel=0.15)
    # As in the paper: beyond 0.5, between, and below -0.5, in both inputs.
    assert np.all((X > 0.5).all(axis=1) == (cluster == 0))
    assert np.all((X < -0.5).all(axis=1) == (cluster == 2))


def test_an_effect_is_the_standard_deviation_along_its_input() -> None:
    x = np.linspace(-1.0, 1.0, 40)
    mean = 3.0 * x[:, None] - 4.0 * x
    np.testing.assert_allclose(ard_overfitting.effect(mean), [3.0 * x.std(), 4.0 * x.std()])
    assert ard_overfitting.shares(ard_overfitting.effect(mean)) == pytest.approx(9 / 25)
    product = np.outer(x, x)
    assert ard_overfitting.shares(ard_overfitting.effect(product)) == pytest.approx(0.5)
    assert ard_overfitting.shares(ard_overfitting.effect(np.outer(np.sign(x), np.ones(40)))) == 0.0
    assert np.isnan(ard_overfitting.shares(np.zeros(2)))


def test_the_process_prunes_on_most_draws_and_on_fewer_where_clusters_meet() -> None:
    apart, close = (
        ard_overfitting.compute(ard_overfitting.Config(methods=[PROCESS], side=side, points=31), 0)[1][0]
        for side in (0.8, 1.0)
    )
    assert apart["draws"] == 20
    assert apart["pruned"] >= 10
    assert close["pruned"] < apart["pruned"]
    assert close["used"] > apart["used"]


def test_a_pruned_input_has_a_small_weight_variance(arrays: dict[str, Any], rows: dict[str, dict[str, str]]) -> None:
    row = rows["GP-ARD"]
    effects = [float(row["effect_1"]), float(row["effect_2"])]
    variances = [float(row["variance_1"]), float(row["variance_2"])]
    assert float(row["share"]) < ard_overfitting.PRUNED
    assert np.argmin(effects) == np.argmin(variances)
    assert min(variances) < 1e-3 * max(variances)
    assert min(effects) < 0.1 * max(effects)
    weaker = int(np.argmin(effects))
    assert np.ptp(arrays["mean_0"], axis=weaker).max() < 0.1  # less than the noise's standard deviation


def test_the_network_uses_both_inputs(arrays: dict[str, Any], rows: dict[str, dict[str, str]]) -> None:
    row = rows["NN-EP"]
    assert int(row["used"]) == DRAWS
    assert int(row["pruned"]) == 0
    assert min(float(row["effect_1"]), float(row["effect_2"])) > 0.1  # the noise's standard deviation
    clear = network_fits.excludes_zero(arrays["weights"], arrays["weights_std"])
    assert clear[:, 0].sum() == int(row["clear_1"]) > 0
    assert clear[:, 1].sum() == int(row["clear_2"]) > 0


def test_arrays_and_summary_agree(arrays: dict[str, Any], rows: dict[str, dict[str, str]]) -> None:
    assert arrays["labels"].tolist() == list(rows) == ["GP-ARD", "NN-EP"]
    assert arrays["effects"].shape == (DRAWS, 2, 2)
    for i, row in enumerate(rows.values()):
        np.testing.assert_allclose(ard_overfitting.effect(arrays[f"mean_{i}"]), arrays["effects"][0, i])
        assert float(row["effect_1"]) == pytest.approx(arrays["effects"][0, i, 0], rel=1e-3)
        assert float(row["share_median"]) == pytest.approx(np.median(arrays["shares"][:, i]), rel=1e-3)
        assert int(row["pruned"]) == np.sum(arrays["shares"][:, i] < 0.01)
    assert arrays["weights"].shape == (10, 3)
    assert arrays["outputs"].shape == (11,)
    assert arrays["linear"] == 1
