"""A noisy step: the shape of the mean near the discontinuity, for known means and for the methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import data
from ep_bench.experiments.ep_nn_2014.discontinuity import compute as discontinuity

GRID = np.linspace(-2.0, 2.0, 2001)
TRUTH = np.where(GRID < 0.0, -1.0, 1.0)
PROCESS: dict[str, Any] = {"use": "gp", "label": "GP", "kernel": "nn", "prior": "none"}
DRAWS = 3


RUN = "discontinuity", {"draws": DRAWS}, "case"


def test_the_true_function_has_no_width_and_does_not_fluctuate() -> None:
    found = discontinuity.shape(GRID, TRUTH, TRUTH)
    assert found == pytest.approx((0.0, 0.0, 0.0, 0.8 * 0.002, 0.0))


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_the_width_of_a_ramp_does_not_depend_on_its_position(shift: float) -> None:
    found = discontinuity.shape(GRID, np.clip((GRID - shift) / 0.1, -1.0, 1.0), TRUTH)
    assert found.width == pytest.approx(0.16)
    assert found.fluctuation == pytest.approx(0.0, abs=1e-12)
    assert found.overshoot == 0.0
    assert found.settled == pytest.approx(0.09 + shift, abs=0.003)


def test_waves_on_either_side_are_fluctuation_and_overshoot_but_no_width() -> None:
    waves = 0.15 * np.sin(2.0 * np.pi * GRID / 0.5) * (np.abs(GRID) > 0.5) * (np.abs(GRID) < 1.0)
    found = discontinuity.shape(GRID, TRUTH + waves, TRUTH)
    # One wave on each side, with two swings of 0.3.
    assert found.fluctuation == pytest.approx(4 * 0.3, rel=0.01)
    assert found.overshoot == pytest.approx(0.15, rel=0.01)
    assert found.width == pytest.approx(0.0016)
    assert 0.75 < found.settled < 1.0


def test_a_mean_that_does_not_reach_the_levels_has_no_width() -> None:
    assert np.isnan(discontinuity.shape(GRID, 0.7 * TRUTH, TRUTH).width)
    assert np.isnan(discontinuity.shape(GRID, 0.0 * TRUTH, TRUTH).width)
    assert np.isnan(discontinuity.shape(GRID, np.full(2001, np.nan), TRUTH)).all()


def test_the_first_draw_is_the_embedded_data_set(arrays: dict[str, Any]) -> None:
    embedded = data.load_dataset("step")
    np.testing.assert_array_equal(arrays["x"], embedded.X[:, 0])
    np.testing.assert_array_equal(arrays["y"], embedded.y)


def test_the_process_fluctuates_and_the_network_does_not(
    arrays: dict[str, Any], rows: dict[str, dict[str, str]]
) -> None:
    network, process = rows["NN-EP"], rows["GP"]
    assert float(process["fluctuation"]) > 0.4
    assert float(network["fluctuation"]) < 0.25 * float(process["fluctuation"])
    assert float(network["overshoot"]) < float(process["overshoot"])
    assert int(network["least_fluctuation"]) >= DRAWS - 1
    assert float(network["rmse"]) < float(process["rmse"])


def test_the_networks_step_is_narrower_than_the_errors_of_the_process(
    rows: dict[str, dict[str, str]],
) -> None:
    network, process = rows["NN-EP"], rows["GP"]
    assert float(process["width"]) < float(network["width"]) < 2.0 * float(process["settled"])
    assert float(network["settled"]) < float(process["settled"])


def test_original_inputs_let_the_process_step_at_the_origin() -> None:
    """A bias variance of 0 puts the step of every unit at 0, which is not the jump for standardised inputs."""
    options = {"methods": [PROCESS], "draws": 4, "points": 401}
    raw, standardised = (
        discontinuity.compute(discontinuity.Config(**options, standardize=choice), 0)[1][0] for choice in (False, True)
    )
    assert raw["fluctuation_median"] < 0.3 * standardised["fluctuation_median"]


def test_arrays_and_summary_agree(arrays: dict[str, Any], rows: dict[str, dict[str, str]]) -> None:
    assert arrays["labels"].tolist() == list(rows) == ["NN-EP", "GP"]
    names = arrays["shaped"].tolist()
    for i, row in enumerate(rows.values()):
        again = discontinuity.shape(arrays["grid"], arrays[f"mean_{i}"], arrays["truth"])
        np.testing.assert_allclose(arrays["shapes"][0, i], again)
        for k, name in enumerate(names):
            assert float(row[name]) == pytest.approx(arrays["shapes"][0, i, k], rel=1e-3)
            assert float(row[f"{name}_median"]) == pytest.approx(np.median(arrays["shapes"][:, i, k]), rel=1e-3)
        assert float(row["noise"]) == pytest.approx(0.1, abs=0.03)
