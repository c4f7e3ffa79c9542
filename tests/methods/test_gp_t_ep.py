"""Expectation propagation of robust regression: other programs' values, a plain twin, gradients, its schemes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ep_bench
from ep_bench.estimator import standardisation
from ep_bench.methods import gp_t
from ep_bench.methods.gp_t import ep
from ep_bench.methods.gp_t.posterior import gaussian, marginals
from ep_bench.types import Rows

PATH = Path(__file__).parents[1] / "reference_values" / "student_t_gp.json"
VALUES = json.loads(PATH.read_text(encoding="utf-8"))


def conflicting():
    x = np.linspace(-3.0, 3.0, 25)
    y = np.sin(2 * x) + 0.1 * np.cos(17 * np.arange(1, 26))
    y[6] += 3
    y[17] -= 2.5
    return Rows(x[:, None], y)


def covariances(lengthscale, magnitude=1.0):
    x = conflicting().X[:, 0]
    return magnitude * np.exp(-0.5 * (x[:, None] - x) ** 2 / lengthscale**2)


@pytest.mark.parametrize("case", "AB")
def test_sites_of_other_programs(case):
    values = VALUES["cases"][case]
    hyper, expected = values["hyper"], values["ep"]
    K = covariances(hyper["ell"], hyper["magn2"])
    found = ep.infer(K, conflicting().y, hyper["nu"], hyper["sigma"], 1.0, 0.8)
    assert found.log_evidence == pytest.approx(expected["logZ"], rel=1e-11)
    np.testing.assert_allclose(found.precisions, expected["site_tau"], rtol=1e-7)
    np.testing.assert_allclose(found.shifts, expected["site_nu"], rtol=1e-7)
    assert np.sum(found.precisions < 0) == expected["n_negative_sites"]


@pytest.fixture(scope="module")
def boston(real_data):
    """Training and test rows of split 0, standardised by the training rows, and the target's deviation."""
    data = ep_bench.load_dataset("boston")
    train, test = ep_bench.standard_split(len(data.y), 0)
    inputs, target = standardisation(data.X[train], data.y[train])
    rows = [Rows(inputs.apply(data.X[part]), target.apply(data.y[part][:, None])[:, 0]) for part in (train, test)]
    return *rows, data.y[train].std()


class TestBoston:
    @pytest.mark.parametrize(("inference", "negative"), [("ep", "n_neg_sites"), ("laplace", "n_neg_W")])
    def test_values_of_other_programs(self, boston, inference, negative):
        train, test, deviation = boston
        expected = VALUES["boston_split0"][inference]
        given = {"lengthscale": 2.0, "magnitude": 1.0, "nu": 4.0, "scale": 0.3, "optimize": False}
        state = gp_t.fit(train, gp_t.Config(inference=inference, **given), None)[0]
        mean, variance = gp_t.latent(state, test.X)
        mlpd = gp_t.predict(state, test.X, None).logpdf(test.y).mean()
        error = mean - test.y
        assert np.sum(state.site_precisions < 0) == expected[negative]
        assert state.log_evidence == pytest.approx(expected["logZ"], rel=1e-10)
        assert mlpd == pytest.approx(expected["test_mlpd_std"], rel=1e-7)
        assert mlpd - math.log(deviation) == pytest.approx(expected["test_mlpd_orig"], rel=1e-7)
        assert np.abs(error).mean() == pytest.approx(expected["mae_std"], rel=1e-7)
        assert np.abs(error).mean() * deviation == pytest.approx(expected["mae_orig"], rel=1e-7)
        assert np.sqrt((error**2).mean()) * deviation == pytest.approx(expected["rmse_orig"], rel=1e-7)
        np.testing.assert_allclose(mean[:3], expected["mean_first3"], rtol=1e-7)
        np.testing.assert_allclose(variance[:3], expected["var_first3"], rtol=1e-7)


class TestMarginals:
    @pytest.mark.parametrize("weak", [0, 1, 5, 12])
    def test_a_dense_solve(self, weak):
        rng = np.random.default_rng(weak)
        root = rng.normal(size=(12, 12))
        K, tau, b = root @ root.T / 12 + 0.1 * np.eye(12), rng.uniform(0.1, 5.0, 12), rng.normal(size=12)
        tau[:weak] = rng.choice([0.0, -0.05, 1e-6, -1e-5], weak)
        Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
        found = marginals(K, tau, b)
        np.testing.assert_allclose(found.variance, Sigma.diagonal(), rtol=1e-12)
        np.testing.assert_allclose(found.mean, Sigma @ b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(K @ found.weights, Sigma @ b, rtol=1e-9, atol=1e-12)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(np.eye(12) + K * tau)[1], rel=1e-10, abs=1e-13)
        np.testing.assert_allclose(found.resolvent(), np.diag(tau) - tau[:, None] * Sigma * tau, atol=1e-11)

    def test_digits_of_the_general_formula(self):
        K, tau = covariances(2.0), np.full(25, 2500.0)
        tau[3] = -1.0
        found = marginals(K, tau, tau * conflicting().y)
        np.testing.assert_allclose(found.variance, gaussian(K, tau).covariance.diagonal(), rtol=1e-9)

    def test_one_that_is_not_proper(self):
        assert marginals(np.eye(3), np.array([1.0, -1.5, 0.0]), np.zeros(3)) is None
