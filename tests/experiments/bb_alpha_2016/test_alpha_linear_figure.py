"""The figure of black-box alpha on two data points."""

from __future__ import annotations

import numpy as np

from ep_bench.experiments.bb_alpha_2016.alpha_linear.figure import draw, ellipse
from ep_bench.experiments.record import ExperimentResults


def made() -> dict[str, np.ndarray]:
    arrays = {"grid": np.linspace(0.1, 1.9, 9), "alphas": np.array([0.5, 1.0]), "ellipses": np.array([1e-6, 1.5])}
    for i in (1, 2):
        arrays |= {f"curve_{i}": 0.3 + 0.1 * arrays["grid"], f"fitted_{i}": np.array([0.35, 0.4])}
        arrays |= {f"mean_{i}": np.zeros((2, 2)), f"covariance_{i}": np.array([0.3 * np.eye(2), 0.5 * np.eye(2)])}
        arrays |= {f"posterior_mean_{i}": np.zeros(2), f"posterior_covariance_{i}": np.array([[0.6, 0.4], [0.4, 0.6]])}
    return arrays


def test_an_ellipse_is_one_standard_deviation_from_the_mean() -> None:
    mean, covariance = np.array([1.0, -2.0]), np.array([[0.6, 0.4], [0.4, 0.9]])
    away = ellipse(mean, covariance) - mean[:, None]
    np.testing.assert_allclose(np.einsum("in,ij,jn->n", away, np.linalg.inv(covariance), away), 1.0)
    np.testing.assert_allclose(np.abs(away).max(axis=1) ** 2, [0.6, 0.9], rtol=1e-3)


def test_every_panel_shows_its_curves() -> None:
    (picture,) = draw(ExperimentResults("two", made()))
    figure = picture.figure
    variance, ellipses = figure.axes[2:]
    assert [len(line.get_xdata()) for line in variance.lines] == [9, 2]
    assert [line.get_label() for line in ellipses.lines[:3]] == ["posterior", "alpha = 1e-06", "alpha = 1.5"]
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in ellipses.lines[:3]}) == 3
