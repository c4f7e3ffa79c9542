"""Failures of Langevin dynamics: divergence raises an error with its reason, a chain that is not stationary warns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import sgld
from tests.methods.test_sgld import quiet, rows


class TestDivergence:
    def test_finite_divergence_raises(self):
        """Each step doubles the distance from the fit."""
        options = {"hidden": (), "noise_variance": 0.05, "batch_size": 60, "final_step": 1.0}
        config = sgld.Config(epochs=10, step_size=0.3, **options)
        with pytest.raises(FloatingPointError, match=r"epoch \d+: diverged: .* residual .* smaller step_size"):
            quiet(rows(60, 2, 32), config)

    def test_the_limit_applies_to_kept_epochs_only(self):
        theta, y = np.zeros(3), np.array([1.0, -1.0])
        sgld._check(theta, 0.0, 999.0, y, 1)
        with pytest.raises(FloatingPointError, match="epoch 7: diverged"):
            sgld._check(theta, 0.0, 1001.0, y, 7)


class TestNotStationary:
    y = np.array([1.0, -1.0])

    def test_a_constant_curve_is_stationary_and_a_rising_one_is_not(self):
        noise = 0.05 * np.random.default_rng(40).normal(size=400)
        good = np.full(400, 0.5)
        assert sgld.not_stationary(noise, good, self.y) == ""
        assert "drifts by +0.2" in sgld.not_stationary(noise + np.linspace(0, 0.4, 400), good, self.y)
        assert "drifts by -0.2" in sgld.not_stationary(noise - np.linspace(0, 0.4, 400), good, self.y)
        assert sgld.not_stationary(noise + np.linspace(0, 0.1, 400), good, self.y) == ""  # below the tolerance

    def test_a_fit_worse_than_a_constant(self):
        assert "squared residual 1.5 on" in sgld.not_stationary(np.zeros(20), np.full(20, 1.5), self.y)
        assert sgld.not_stationary(np.zeros(20), np.full(20, 1.5), np.zeros(2)) == ""  # a constant target

    def test_a_fit_warns(self):
        config = sgld.Config(hidden=(20,), epochs=60, step_size=1e-4, burn_in=0.0)
        with pytest.warns(ConvergenceWarning, match="more epochs may help"):
            state, _ = sgld.fit(rows(300, 2, 42), config, np.random.default_rng(0))
        assert state.converged is False
