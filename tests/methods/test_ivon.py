"""Improved variational online Newton against the authors' package and the posterior of a linear model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ep_bench.methods import ivon
from ep_bench.models import mlp, variational_bound
from ep_bench.models.meanfield import scale_noise
from tests.methods.support import rows

REFERENCE = json.loads((Path(__file__).parents[1] / "reference_values" / "ivon.json").read_text(encoding="utf-8"))


def test_steps_of_the_authors_package():
    i, p = np.arange(6)[:, None], np.arange(13)
    X = np.sin(1.7 * i * np.arange(1, 3) + 0.3 * np.arange(1, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 - 0.3
    layers = mlp.layout(2, (3,))
    theta = np.concatenate([0.6 * np.sin(1.3 * (p + 1)), np.zeros(13), [np.log(0.25)]])
    newton = ivon.Newton(np.full(13, 0.7), np.zeros(13), np.zeros(1, int), 0.7, 1 / 12, 0.9, 0.99)
    work, gradient = variational_bound.workspace(2, 6, 13, 3, 3), np.empty_like(theta)
    for t in range(4):
        ivon.set_spread(theta, newton, 6)
        work.std[:] = np.exp(theta[13:-1])
        work.noise[:] = [np.cos(p * (2.1 + t) + 0.4 * k) for k in range(2)]
        scale_noise(theta[:13], work.std, work.noise, work.W)
        variational_bound.bound(theta, X, y, layers, 6, np.full(13, 2.0), work, gradient)
        ivon.newton_step(theta, gradient, newton, 6, 0.1)
    np.testing.assert_allclose(theta[:13], REFERENCE["means"], rtol=1e-10)
    np.testing.assert_allclose(newton.hessian, REFERENCE["hessian"], rtol=1e-10)


def test_a_linear_model_has_the_best_factorised_posterior():
    """Means are those of the exact posterior, and precisions the diagonal of its precision matrix."""
    train = rows(120, 3, 2, noise=0.5)
    config = ivon.Config(hidden=(), epochs=1500, samples=4, hessian_decay=0.999, prior_variance=0.5)
    state, trace = ivon.fit(train, config, np.random.default_rng(0))
    U = np.column_stack([train.X, np.ones(120)])
    precision = U.T @ U / state.noise_variance + np.eye(4) / 0.5
    np.testing.assert_allclose(state.mean, np.linalg.solve(precision, U.T @ train.y) / state.noise_variance, atol=0.01)
    np.testing.assert_allclose(state.std, np.diag(precision) ** -0.5, rtol=0.15)
    residuals = train.y - U @ state.mean
    assert abs(state.noise_variance - (np.mean(residuals**2) + np.mean(U**2 @ state.std**2))) < 0.02
    assert trace["objective"][-1] < trace["objective"][0]


def test_the_curvature_is_positive_after_any_step():
    newton = ivon.Newton(np.full(1, 0.01), np.zeros(1), np.zeros(1, int), 0.01, 1e-3, 0.9, 0.5)
    theta, rng = np.zeros(3), np.random.default_rng(1)
    for _ in range(100):
        ivon.newton_step(theta, 10 * rng.standard_normal(3), newton, 50, 0.01)
        assert newton.hessian[0] + newton.delta > 0.0


@pytest.mark.parametrize(
    ("given", "steps", "expected"), [(None, 20_000, 0.9999), (None, 500_000, 0.99999), (0.9, 1, 0.9)]
)
def test_the_average_of_the_curvature_reaches_over_a_fifth_of_the_steps(
    given: float | None, steps: int, expected: float
) -> None:
    assert ivon.decay(ivon.Config(hessian_decay=given), steps) == pytest.approx(expected, abs=1e-12)


def test_a_long_fit_does_not_diverge():
    """With the average over 10,000 steps, the noise variance of this fit is above 30,000."""
    state, _ = ivon.fit(rows(7000, 8, 1, noise=0.2), ivon.Config(), np.random.default_rng(0))
    assert state.noise_variance < 0.1
