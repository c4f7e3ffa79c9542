"""Ten additive effects: their scores, and the influence of one scale per input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import data
from ep_bench.experiments.ep_nn_2014 import network_fits
from ep_bench.experiments.ep_nn_2014.additive_effects import compute as additive_effects
from ep_bench.experiments.record import ExperimentResults

LINEAR: dict[str, Any] = {"use": "gp", "label": "linear", "kernel": {"sum": ["linear", "constant"]}}
NETWORK: dict[str, Any] = {"use": "ep_nn", "label": "network", "hidden": [2], "sweeps": 52, "prior": "ard"}


RUN = "additive_effects", {"draws": 1}, "case"


@pytest.fixture(scope="module")
def rows(results: ExperimentResults) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["method"], row["input"]): row for row in results.summary}


@pytest.mark.parametrize("effects", ["steps", "waves"])
def test_true_effects_are_the_function_along_each_axis(effects: str) -> None:
    config = additive_effects.Config(methods=[LINEAR], draws=1, points=21, effects=effects)
    arrays, _ = additive_effects.compute(config, 0)
    function = additive_effects.true_function(effects)
    assert (function is data.true_function("additive")) == (effects == "waves")
    for j, truth in enumerate(arrays["truth"]):
        for x, value in zip(arrays["grid"], truth, strict=True):
            point = np.zeros((1, 10))
            point[0, j] = x
            assert value == pytest.approx(function(point)[0])
    kinds = additive_effects.KINDS
    assert np.ptp(arrays["truth"][0]) == 0.0
    bends = np.abs(np.diff(arrays["truth"], n=2, axis=1)).max(axis=1)
    assert [bend > 1e-9 for bend in bends] == [kind == "nonlinear" for kind in kinds]


def test_steps_grow_steeper_on_one_level() -> None:
    function = additive_effects.true_function("steps")
    grid = np.linspace(-np.pi, np.pi, 401)
    slopes = []
    for j in range(10):
        X = np.zeros((401, 10))
        X[:, j] = grid
        effect = function(X)
        np.testing.assert_allclose(effect, -effect[::-1], atol=1e-12)
        slopes.append(np.diff(effect).max() / (grid[1] - grid[0]))
    np.testing.assert_allclose(slopes[:5], [0.0, 0.25, 0.5, 0.75, 1.0], atol=1e-9)
    np.testing.assert_allclose(slopes[5:], [0.5, 1.0, 2.0, 4.0, 8.0], rtol=0.01)


@pytest.mark.parametrize("effects", ["steps", "waves"])
def test_data_are_as_in_the_paper(effects: str) -> None:
    X, y = additive_effects.rows_of(effects, np.random.default_rng(0))
    assert X.shape == (200, 10)
    assert 3.1 < np.abs(X).max() <= np.pi
    noise = y - additive_effects.true_function(effects)(X)
    assert noise.std() == pytest.approx(0.2, rel=0.15)


def test_a_linear_model_finds_only_the_linear_effects() -> None:
    config = additive_effects.Config(methods=[LINEAR], draws=2, effects="waves")
    arrays, rows = additive_effects.compute(config, 0)
    whole = rows.pop()
    assert whole["input"] == "all"
    assert whole["draws"] == 2
    assert [row["input"] for row in rows] == list(range(1, 11))
    for row in rows:
        if row["effect"] == "linear":
            assert row["correlation"] > 0.999
        if row["input"] in {9, 10}:  # cos and sin of 2 x
            assert abs(row["correlation"]) < 0.5
    inside = np.abs(arrays["grid"]) <= np.pi
    error = np.sqrt(np.mean((arrays["mean_0"] - arrays["truth"])[4, inside] ** 2))
    assert rows[4]["rmse"] == pytest.approx(error, rel=1e-3)
    assert rows[4]["rmse_median"] == pytest.approx(np.median(arrays["errors"][:, 0, 4]), rel=1e-3)
    assert whole["rmse"] == pytest.approx(arrays["errors"][0, 0, -1], rel=1e-3)
    assert whole["lowest_rmse"] == 2  # it is the only method
    assert "weights" not in arrays


@pytest.mark.exhaustive
def test_the_input_without_effect_has_none_with_ard_priors(
    arrays: dict[str, Any], rows: dict[tuple[str, str], dict[str, str]]
) -> None:
    assert arrays["labels"][int(arrays["network"])] == "ARD priors"
    mean, std = arrays["weights"][:, 0], arrays["weights_std"][:, 0]
    assert not network_fits.excludes_zero(mean, std).any()
    assert int(rows["ARD priors", "1"]["clear"]) == 0
    inside = np.abs(arrays["grid"]) <= np.pi
    # Along input 1, the range of the mean is below the noise's standard deviation, and below that of fixed priors.
    assert float(rows["ARD priors", "1"]["range"]) == pytest.approx(np.ptp(arrays["mean_1"][0, inside]), rel=1e-3)
    assert float(rows["ARD priors", "1"]["range"]) < min(0.2, float(rows["fixed Gaussian priors", "1"]["range"]))


@pytest.mark.exhaustive
def test_nonlinear_effects_are_found_with_ard_priors(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    """A line through 0 has correlations of 0.92, 0.90 and 0.88 with the effects of inputs 8 to 10."""
    for place in map(str, range(8, 11)):
        assert float(rows["ARD priors", place]["correlation"]) > 0.985
    nonlinear = {
        label: np.mean([float(rows[label, str(j)]["rmse"]) ** 2 for j in range(6, 11)])
        for label in ("fixed Gaussian priors", "ARD priors")
    }
    assert nonlinear["ARD priors"] < nonlinear["fixed Gaussian priors"]
    fixed, ard = rows["fixed Gaussian priors", "all"], rows["ARD priors", "all"]
    assert float(ard["rmse"]) < 0.8 * float(fixed["rmse"])
    assert float(ard["deviation"]) < 0.8 * float(fixed["deviation"])
    assert float(ard["noise"]) < float(fixed["noise"])  # the true value is 0.2


def test_scales_of_a_small_network_order_the_inputs() -> None:
    ard = {"release": 1e-4, "scale_mean": 2.0 * np.log(0.01), "scale_deviation": 2.5, "weight_variance": 0.16}
    noise = {"noise_mean": 2.0 * np.log(0.05), "noise_deviation": 2.0}
    small = {**NETWORK, **ard, **noise, "hidden": [5], "sweeps": 200}
    _, rows = additive_effects.compute(additive_effects.Config(methods=[small], draws=1, points=21), 0)
    scales = np.array([row["scale"] for row in rows if row["input"] != "all"])
    assert np.all(np.diff(scales[:5]) > 0.0)  # of the slopes 0 to 1
    assert scales[8:].min() > 5.0 * scales[:6].max()  # of the steepest functions


@pytest.mark.exhaustive
def test_scales_identify_the_nonlinear_inputs(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    scales = np.array([float(rows["ARD priors", str(j)]["scale"]) for j in range(1, 11)])
    assert np.all(np.diff(scales[:5]) > 0.0)
    assert np.all(np.diff(scales[5:]) > 0.0)
    assert scales[7:].min() > 5.0 * scales[:6].max()  # the effect of input 6 is almost linear within the data
