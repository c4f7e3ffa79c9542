"""The mountain car: dynamics, value iteration compared with driving, and the arrays of the experiment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ep_bench.experiments.dgp_2016.mountain_car import compute as mountain_car
from ep_bench.experiments.dgp_2016.mountain_car import dynamics as mountain_car_dynamics

pytestmark = pytest.mark.xdist_group("covariances")  # whose kernels it needs

SMALL: dict[str, Any] = {
    "rows": 60,
    "nodes": 201,
    "held_out": 12,
    "draws": 2,
    "methods": [
        {"use": "dgp_ep", "label": "GP", "hidden": [], "inducing": 8, "steps": 60},
        {"use": "dgp_ep", "label": "DGP", "hidden": [2], "inducing": 8, "steps": 60},
    ],
}


@pytest.fixture(scope="module")
def values() -> mountain_car_dynamics.ValueFunction:
    return mountain_car_dynamics.iterate(201)


RUN = "mountain_car", SMALL, "car"


def slow_step(x: float, v: float, action: int) -> tuple[float, float]:
    v = min(max(v + 0.001 * action - 0.0025 * math.cos(3.0 * x), -0.07), 0.07)
    x = x + v
    if x <= -1.2:
        return -1.2, 0.0
    return min(x, 0.5), v


def slow_drive(values: mountain_car_dynamics.ValueFunction, x: float, v: float) -> int:
    """Return the steps of a greedy driver, one state at a time, with explicit interpolation."""

    def worth(state: tuple[float, float]) -> float:
        if state[0] >= 0.5:
            return 0.0
        i = max(int(np.searchsorted(values.position, state[0], side="right")) - 1, 0)
        j = max(int(np.searchsorted(values.velocity, state[1], side="right")) - 1, 0)
        i, j = min(i, len(values.position) - 2), min(j, len(values.velocity) - 2)
        a = (state[0] - values.position[i]) / (values.position[i + 1] - values.position[i])
        b = (state[1] - values.velocity[j]) / (values.velocity[j + 1] - values.velocity[j])
        low = (1 - b) * values.values[i, j] + b * values.values[i, j + 1]
        high = (1 - b) * values.values[i + 1, j] + b * values.values[i + 1, j + 1]
        return float((1 - a) * low + a * high)

    steps, state = 0, (x, v)
    while state[0] < 0.5:
        state = max((slow_step(*state, action) for action in (-1, 0, 1)), key=worth)
        steps += 1
        assert steps < 1000
    return steps


def uniform(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform([-1.2, -0.07], [0.5, 0.07], (count, 2))


def test_steps_are_those_of_the_book() -> None:
    states = np.concatenate([uniform(300), [[-1.2, -0.07], [0.499, 0.07], [-1.19, -0.06]]])
    for action in (-1, 0, 1):
        expected = [slow_step(x, v, action) for x, v in states]
        np.testing.assert_allclose(mountain_car_dynamics.step(states, action), expected, atol=1e-15)


def test_the_value_near_the_goal_is_the_number_of_steps(values: mountain_car_dynamics.ValueFunction) -> None:
    """Close to the goal at full speed, one step ends the episode; at the goal the value is 0."""
    assert mountain_car_dynamics.shortest(values, np.array([[0.45, 0.07], [0.5, 0.0], [0.36, 0.07]])).tolist() == [
        1,
        0,
        3,
    ]


def test_values_meet_bellmans_equation_at_the_nodes(values: mountain_car_dynamics.ValueFunction) -> None:
    nodes = mountain_car_dynamics.nodes(values.position, values.velocity)
    after = [mountain_car_dynamics.step(nodes, action) for action in (-1, 0, 1)]
    best = np.max([np.where(mountain_car_dynamics.at_goal(s), 0.0, values.at(s)) for s in after], axis=0) - 1.0
    best[nodes[:, 0] >= 0.5] = 0.0
    np.testing.assert_allclose(values.values.ravel(), best, atol=1e-7)
    assert values.change <= 1e-8


def test_driving_takes_as_many_steps_as_the_slow_version(values: mountain_car_dynamics.ValueFunction) -> None:
    states = uniform(40, seed=1)
    assert mountain_car_dynamics.drive(values, states).tolist() == [slow_drive(values, x, v) for x, v in states]


def test_steps_to_the_goal_are_minus_the_value(values: mountain_car_dynamics.ValueFunction) -> None:
    states = uniform(1000, seed=2)
    gap = values.at(states) + mountain_car_dynamics.shortest(values, states)
    assert np.median(np.abs(gap)) < 0.3
    assert np.abs(gap).mean() < 1.0  # error from the cliff, which is smoothed over a cell
    assert values.at(np.array([[-0.5, 0.0]]))[0] == pytest.approx(-103, abs=3)  # at rest in the valley


def test_finer_grids_come_closer(values: mountain_car_dynamics.ValueFunction) -> None:
    coarse, coarser = mountain_car_dynamics.iterate(101), mountain_car_dynamics.iterate(51)
    near = np.abs(values.values[::2, ::2] - coarse.values).mean()
    assert near < 0.8 * np.abs(coarse.values[::2, ::2] - coarser.values).mean()
    assert near < 1.0


def test_the_cliff_is_where_neighbours_differ() -> None:
    truth = np.zeros((6, 6))
    truth[:, 3:] = -30.0
    expected = np.zeros((6, 6), dtype=bool)
    expected[:, 2:4] = True
    np.testing.assert_array_equal(mountain_car.near_cliff(truth, 10.0), expected)
    assert not mountain_car.near_cliff(truth, 30.0).any()


def test_arrays_and_summary_agree(arrays: dict[str, Any], rows: dict[str, dict[str, str]]) -> None:
    assert arrays["labels"].tolist() == list(rows) == ["GP", "DGP"]
    assert arrays["truth"].min() >= -130.0
    assert arrays["truth"].max() <= -1.0
    names = arrays["scored"].tolist()
    for i, row in enumerate(rows.values()):
        error = np.sqrt(np.mean((arrays[f"mean_{i}"] - arrays["truth"]) ** 2))
        assert error == pytest.approx(arrays["scores"][0, i, names.index("rmse")])
        cliff = arrays["cliff"]
        near = np.sqrt(np.mean((arrays[f"mean_{i}"] - arrays["truth"])[cliff] ** 2))
        assert near == pytest.approx(arrays["scores"][0, i, names.index("rmse_cliff")])
        assert float(row["rmse"]) == pytest.approx(arrays["scores"][:, i, names.index("rmse")].mean(), abs=1e-6)
    assert sum(int(row["lowest_rmse"]) for row in rows.values()) == 2


def test_the_composition_of_the_layers_is_the_prediction(arrays: dict[str, Any]) -> None:
    """If the hidden layer is nearly certain, the second layer at its mean is the prediction."""
    from scipy.interpolate import RegularGridInterpolator

    assert arrays["deep"] == 1
    through = RegularGridInterpolator((arrays["first"], arrays["second"]), arrays["top"])
    composed = through(arrays["hidden"].reshape(2, -1).T)
    assert np.corrcoef(composed, arrays["mean_1"].ravel())[0, 1] > 0.98
    assert arrays["reached"].shape == (60, 2)


ONE = mountain_car.Config.model_validate(
    {**SMALL, "rows": 20, "held_out": 8, "draws": 1, "methods": SMALL["methods"][:1]}
)


def test_only_a_hidden_layer_of_two_is_drawn() -> None:
    arrays, summary = mountain_car.compute(ONE, 0)
    assert "deep" not in arrays
    assert len(summary) == 1
