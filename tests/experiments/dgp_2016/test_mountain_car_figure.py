"""The figure of the mountain car: panels, their content, and texts that do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.experiments.dgp_2016.mountain_car import figure
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture

SIDE, ROWS = 14, 25


def made(labels: list[str], *, deep: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    position, velocity = np.linspace(-1.15, 0.45, SIDE), np.linspace(-0.065, 0.065, SIDE)
    truth = -60.0 + 50.0 * position[:, None] + 400.0 * velocity
    arrays = {
        "states": rng.uniform([-1.2, -0.07], [0.5, 0.07], (ROWS, 2)),
        "y": rng.uniform(-100.0, 0.0, ROWS),
        "position": position,
        "velocity": velocity,
        "truth": truth,
        "cliff": truth < -80.0,
        "labels": np.array(labels),
        "checked": np.array(["nodes", "sweeps", "change", "refinement", "driven", "lost"]),
        "check": np.array([801.0, 262.0, 1e-8, 0.17, 0.2, 0.01]),
    }
    arrays |= {f"mean_{i}": truth + i for i in range(len(labels))}
    if deep:
        arrays |= {"deep": np.array(1), "hidden": np.stack([truth, -truth]), "reached": rng.normal(size=(ROWS, 2))}
        arrays |= {"first": np.linspace(-2, 2, SIDE), "second": np.linspace(-3, 3, SIDE), "top": truth}
    return arrays


def mountain_car(arrays: dict[str, Any], study: str) -> Picture:
    (picture,) = figure.draw(ExperimentResults(study, arrays))
    return picture


def panels(arrays: dict[str, Any]) -> dict[str, Any]:
    return {ax.get_title(): ax for ax in mountain_car(arrays, "s").figure.axes if ax.get_title()}


def test_every_panel_shows_its_array() -> None:
    arrays = made(["GP", "DGP"], deep=True)
    found = panels(arrays)
    assert list(found) == [
        "true value", "25 data points", "GP: mean", "DGP: mean",
        "DGP, layer 1: h1", "DGP, layer 1: h2", "DGP, layer 2: value", "DGP: error, up to 1",
    ]  # fmt: skip
    shown = {"true value": "truth", "GP: mean": "mean_0", "DGP: mean": "mean_1", "DGP, layer 2: value": "top"}
    for title, name in shown.items():
        np.testing.assert_allclose(found[title].images[0].get_array(), arrays[name].T)
    np.testing.assert_allclose(found["DGP, layer 1: h2"].images[0].get_array(), arrays["hidden"][1].T)
    np.testing.assert_allclose(found["25 data points"].collections[0].get_offsets(), arrays["states"])
