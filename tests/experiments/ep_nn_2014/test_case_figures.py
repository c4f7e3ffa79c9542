"""The figures of the three cases: the content of their panels, and texts that do not overlap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ep_bench.experiments.ep_nn_2014 import network_panels
from ep_bench.experiments.ep_nn_2014.additive_effects import figure as additive_figure
from ep_bench.experiments.ep_nn_2014.ard_overfitting import figure as ard_figure
from ep_bench.experiments.ep_nn_2014.discontinuity import figure as step_figure
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture

UNITS = 10


def network(inputs: int, scales: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shapes = {"weights": (UNITS, inputs + 1), "outputs": (UNITS + 1,), "scales": (scales,), "noise": (1,)}
    found: dict[str, Any] = {"network": np.array(1), "linear": np.array(1)}
    for name, shape in shapes.items():
        found |= {name: rng.normal(size=shape), f"{name}_std": rng.uniform(0.1, 0.9, shape)}
    return found


def clusters(labels: list[str], *, drawn: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    first, second = np.linspace(-1.3, 1.4, 15), np.linspace(-1.4, 1.3, 15)
    arrays = {
        "x": rng.uniform(-1.3, 1.3, (30, 2)),
        "y": rng.normal(size=30),
        "cluster": np.repeat([0, 1, 2], 10),
        "first": first,
        "second": second,
        "labels": np.array(labels),
        "unconverged": np.zeros(len(labels), dtype=bool),
        "shares": rng.uniform(0.0, 0.5, (20, len(labels))),
    }
    arrays["shares"][:, 0] = 1e-9
    arrays |= {f"mean_{i}": (i + 1) * first[:, None] + 0.2 * second for i in range(len(labels))}
    return arrays | (network(2, 1) if drawn else {})


def effects(labels: list[str], *, drawn: bool = True) -> dict[str, Any]:
    grid = np.linspace(-5.0, 5.0, 21)
    truth = np.array([j * grid / 10 if j < 5 else np.sin(j * grid / 5) for j in range(10)])
    arrays = {"labels": np.array(labels), "grid": grid, "truth": truth, "judged_half_width": np.array(np.pi)}
    arrays |= {"standardized": np.array(False), "unconverged": np.zeros(len(labels), dtype=bool)}
    for i in range(len(labels)):
        arrays |= {f"mean_{i}": truth + 0.1 * i, f"std_{i}": np.full((10, 21), 0.2)}
    return arrays | (network(10, 11) if drawn else {})


def step(labels: list[str]) -> dict[str, Any]:
    grid = np.linspace(-2.0, 2.0, 101)
    truth = np.where(grid < 0.0, -1.0, 1.0)
    arrays = {
        "labels": np.array(labels),
        "unconverged": np.zeros(len(labels), dtype=bool),
        "grid": grid,
        "truth": truth,
        "x": np.linspace(-1.9, 1.9, 20),
        "y": np.repeat([-1.0, 1.0], 10),
        "shaped": np.array(["rmse", "fluctuation", "width"]),
        "shapes": np.full((4, len(labels), 3), 0.25),
    }
    for i in range(len(labels)):
        arrays |= {f"mean_{i}": truth, f"std_{i}": np.full(101, 0.1)}
    return arrays


def ard_overfitting(arrays: dict[str, Any], study: str) -> Picture:
    (picture,) = ard_figure.draw(ExperimentResults(study, arrays))
    return picture


def additive_effects(arrays: dict[str, Any], study: str) -> list[Picture]:
    return additive_figure.draw(ExperimentResults(study, arrays))


def discontinuity(arrays: dict[str, Any], study: str) -> Picture:
    (picture,) = step_figure.draw(ExperimentResults(study, arrays))
    return picture


# Every case is drawn once; no test changes a picture.
CASES: dict[str, Callable[[], Any]] = {
    "ard_overfitting": lambda: ard_overfitting(clusters(["GP-ARD", "NN-EP"]), "s"),
    "additive_effects": lambda: additive_effects(effects(["fixed Gaussian priors", "ARD priors"]), "s")[0],
    "weights": lambda: additive_effects(effects(["fixed Gaussian priors", "ARD priors"]), "s")[1],
    "discontinuity": lambda: discontinuity(step(["NN-EP", "GP"]), "s"),
}
CASES = {name: functools.cache(draw) for name, draw in CASES.items()}


# Intervals


def test_intervals_are_of_95_percent_and_filled_where_0_is_outside() -> None:
    mean, std = np.array([[1.0, 0.1], [-3.0, 0.0]]), np.array([[0.4, 0.2], [1.0, 2.0]])
    ax = Figure().subplots()
    network_panels.intervals(ax, mean, std, ["one", "two"], marks=[1])
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], (mean - 1.959964 * std).ravel(), rtol=1e-6)
    np.testing.assert_allclose(segments[:, 1, 1], (mean + 1.959964 * std).ravel(), rtol=1e-6)
    found = {}
    for line in ax.lines:
        if line.get_marker() in {"o", "s"}:
            found[line.get_marker(), line.get_markerfacecolor() != "white"] = sorted(line.get_ydata())
    assert found == {("o", True): [-3.0, 1.0], ("o", False): [], ("s", True): [], ("s", False): [0.0, 0.1]}
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["one", "two"]


# Case 1


def test_surfaces_have_one_scale_and_x1_across() -> None:
    figure = CASES["ard_overfitting"]().figure
    panels = {ax.get_title(): ax for ax in figure.axes if ax.get_title()}
    assert list(panels) == [
        "(a) GP-ARD", "(b) NN-EP", "(c) all draws", "(d) NN-EP: input weights", "(e) NN-EP: output weights",
    ]  # fmt: skip
    shaded = [panels[title].collections[0] for title in ("(a) GP-ARD", "(b) NN-EP")]
    assert shaded[0].get_clim() == shaded[1].get_clim()
    np.testing.assert_array_equal(shaded[0].levels, shaded[1].levels)
    highest = [path for path in shaded[1].get_paths() if len(path.vertices)][-1]
    assert highest.vertices[:, 0].mean() > 1.0  # the second mean increases mainly with x1
    assert panels["(a) GP-ARD"].get_xlabel() == "input x1"


def test_a_method_that_failed_leaves_its_panel_empty() -> None:
    arrays = clusters(["GP-ARD", "NN-EP"], drawn=False)
    arrays["mean_1"] = np.full((15, 15), np.nan)
    arrays["shares"][:, 1] = np.nan
    picture = ard_overfitting(arrays, "s")
    failed = next(ax for ax in picture.figure.axes if ax.get_title() == "(b) NN-EP")
    assert not failed.collections
    assert len(failed.lines) == 3  # the data points


# Case 2


def test_every_effect_has_its_panel_with_its_values() -> None:
    arrays = effects(["fixed Gaussian priors", "ARD priors"])
    figure = CASES["additive_effects"]().figure
    axes = np.array(figure.axes).reshape(4, 5)
    for row, (method, block) in zip(axes, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=True):
        assert len({ax.get_ylim() for ax in row}) == 1
        for ax, j in zip(row, range(5 * block, 5 * block + 5), strict=True):
            drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
            np.testing.assert_array_equal(drawn["true function"], arrays["truth"][j])
            np.testing.assert_array_equal(drawn["mean of f"], arrays[f"mean_{method}"][j])
    assert axes[0, 0].get_ylim() == axes[1, 0].get_ylim() != axes[2, 0].get_ylim()
    assert [ax.get_title() for ax in axes[[0, 2]].ravel()] == [f"input {j}" for j in range(1, 11)]


def test_weights_are_grouped_by_input_without_the_biases() -> None:
    arrays = effects(["fixed Gaussian priors", "ARD priors"])
    figure = CASES["weights"]().figure
    upper, lower, scales, outputs = figure.axes
    for ax, inputs in ((upper, slice(0, 5)), (lower, slice(5, 10))):
        segments = np.array(ax.collections[0].get_segments())
        np.testing.assert_allclose(segments[:, :, 1].mean(axis=1), arrays["weights"][:, inputs].T.ravel())
    assert [tick.get_text() for tick in scales.get_xticklabels()] == [*map(str, range(1, 11)), "bias"]
    assert [tick.get_text() for tick in outputs.get_xticklabels()][-2:] == ["10", "v0"]


# Case 3
