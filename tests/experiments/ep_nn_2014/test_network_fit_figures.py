"""The figures of the convergence of networks: the content of their panels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ep_bench.experiments.ep_nn_2014.network_convergence import figure as convergence_figure
from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.page import Picture

GROUPS = ["input", "output", "noise", "weight_prior", "scale", "output_prior"]


def history(labels: list[str], folds: int = 2) -> dict[str, Any]:
    sweeps, count = np.array([5, 10, 20, 40, 50, 60, 100, 200, 400]), 400
    arrays: dict[str, Any] = {
        "labels": np.array(labels), "chains": np.array("NN-MC"), "folds": np.array(folds), "sweeps": sweeps,
        "samples": np.array([2, 20, 200]), "groups": np.array(GROUPS), "dataset": np.array("boston"),
    }  # fmt: skip
    falling = 10.0 ** np.linspace(1.0, -11.0, count)
    for f in range(folds):
        for i in range(len(labels)):
            arrays |= {
                f"steps_{i}_{f}": falling / np.arange(1, 7)[:, None], f"close_{i}_{f}": np.array(200 * (1 - i)),
                f"log_z_{i}_{f}": -300.0 + 0.1 * np.arange(count), f"usual_{i}_{f}": np.array([1.8, -2.3, 0.1]),
                f"log_evidence_{i}_{f}": -500.0 + 0.1 * np.arange(count),
                f"scores_{i}_{f}": np.array([sweeps * 0.01, -2.3 - 5.0 / sweeps, 0.1 + 1.0 / sweeps]),
            }  # fmt: skip
        arrays[f"sampled_{f}"] = np.array([[0.1, 10.0, 200.0], [-2.8, -2.5, -2.2], [0.3, 0.2, 0.1]])
    return arrays


def network_convergence(arrays: dict[str, Any], study: str) -> list[Picture]:
    return convergence_figure.draw(ExperimentResults(study, arrays))


# Every case is drawn once; no test changes a picture.
CASES: dict[str, Callable[[], Any]] = {
    "sweeps": lambda: network_convergence(history(["NN-EP-LA", "NN-EP-ARD"]), "s")[0],
    "times": lambda: network_convergence(history(["NN-EP-LA", "NN-EP-ARD"]), "s")[1],
}
CASES = {name: functools.cache(draw) for name, draw in CASES.items()}


def test_a_line_marks_convergence() -> None:
    figure = CASES["sweeps"]().figure
    axes = np.array(figure.axes).reshape(4, 2)
    for ax in axes[[0, 2, 3], 0]:
        assert 200 in [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2]
    for ax in axes[[0, 2, 3], 1]:  # never close
        assert not [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert "NN-EP-LA 200, 200; NN-EP-ARD 0, 0" in CASES["sweeps"]().caption


def test_times_show_all_methods_and_mark_their_ends() -> None:
    figure = CASES["times"]().figure
    for ax in figure.axes:
        curves = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
        assert list(curves) == ["NN-EP-LA", "NN-EP-ARD", "NN-MC"]
        np.testing.assert_array_equal(curves["NN-MC"].get_xdata(), [0.1, 10.0, 200.0])
        (end,) = [line for line in ax.lines if line.get_markersize() == 10]
        assert (end.get_xdata()[0], end.get_ydata()[0]) == (1.8, -2.3)
