"""EP for networks with classes: moments against quadrature, sweeps against the twin, an exact posterior, whole fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf, log_ndtr, logsumexp, ndtr

from ep_bench.methods.ep_nn import METHOD, Config
from ep_bench.methods.ep_nn.posterior import marginals
from ep_bench.methods.ep_nn.prediction import function_moments
from ep_bench.methods.ep_nn.tilted import MAX_NODES, activation_moments, class_moments, tilted_activation
from ep_bench.types import Rows
from tests.methods.ep_nn_support import (
    approximation,
    posteriors_close,
    put,
    settle,
    sites_close,
    some_sites,
    taken,
    tiny,
)
from tests.twins import plain_ep_nn as plain

CLOSE = 1e-7  # grids of a fit compared with fine ones


def classes(**changes):
    """Return the twin's tiny problem with classes as targets."""
    model = tiny(noise=0.0, eta=1.0, probit=True, **changes)
    model.y = np.where(model.y > np.median(model.y), 1.0, -1.0)
    model.y[3] *= -1.0  # not separable
    return model


class TestMoments:
    @pytest.mark.parametrize("label", [-1.0, 1.0])
    @pytest.mark.parametrize("V", [1e-3, 0.7, 20.0])
    @pytest.mark.parametrize("m", [-7.0, 0.0, 0.4, 3.0])
    def test_closed_form_against_quadrature(self, m, V, label):
        log_z, residual, ratio = class_moments(label, m, V)
        expected, (mean, variance) = plain.class_moments(label, m, V)
        assert log_z == pytest.approx(expected, rel=1e-10, abs=1e-11)
        assert m + V * ratio * residual == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert V - V * V * ratio == pytest.approx(variance, rel=1e-6)

    @pytest.mark.parametrize("m", [-1e4, -60.0, 60.0, 1e4])
    def test_tails(self, m):
        log_z, residual, ratio = class_moments(1.0, m, 3.0)
        assert log_z == pytest.approx(log_ndtr(m / 2.0), rel=1e-12, abs=1e-300)
        assert 0.0 <= ratio < 0.25
        assert 0.0 <= ratio * residual < 1.0 + abs(m) / 4.0

    @pytest.mark.parametrize("linear", [False, True])
    @pytest.mark.parametrize("label", [-1.0, 1.0])
    @pytest.mark.parametrize(
        ("m", "V", "bias"), [(0.4, 0.01, 0.1), (-0.8, 3.0, 0.1), (2.0, 50.0, 0.1), (0.4, 0.0005, -40.0)]
    )
    def test_activations_against_a_fine_grid(self, m, V, bias, label, linear):
        """The last bias makes one of the two classes almost impossible."""
        means, variances = np.array([m, -0.2]), np.array([V, 0.6])
        mu, Sigma = np.array([1.2, 0.7, bias]), np.array([[0.2, 0.05, 0.0], [0.05, 0.3, -0.02], [0.0, -0.02, 0.1]])
        units = [activation_moments(means[j], variances[j], 2**-0.5, linear and j == 0) for j in range(2)]
        m_g, V_g = np.array([*units, (1.0, 0.0)]).T
        m_f, V_f, cross = plain.function_moments(m_g, V_g, mu, Sigma)
        rest = V_f - V_g[0] * (Sigma[0, 0] + mu[0] ** 2)
        found = tilted_activation(
            label, -m_f, 1.0, m, V, m_g[0], mu[0], Sigma[0, 0], cross[0], rest, 2**-0.5, linear,
            *np.empty((2, MAX_NODES)),
        )  # fmt: skip
        mean, variance = plain.tilted_activation(
            label, 0.0, 0, means, variances, m_g, V_g, mu, Sigma, 1.0, linear, 4001, probit=True
        )
        tolerance = 1e-9 if abs(bias) < 1 else 2e-2  # the tail beyond 37 standard deviations is approximate
        assert found[0] == pytest.approx(mean, abs=tolerance * np.sqrt(variance))
        assert found[1] == pytest.approx(variance, rel=tolerance)


class TestSweeps:
    def test_the_twin(self):
        model = classes(linear=(True, False))
        ours, sites = approximation(model), some_sites(model)
        put(ours, sites)
        found, log_z = plain.log_evidence(model, sites)
        assert ours.evidence() == pytest.approx((found, log_z.sum()), rel=1e-9)
        ours.sweep(1.0, 1.0, 1.0)
        expected = plain.updated(model, sites)
        sites_close(taken(ours), expected, CLOSE)
        posteriors_close(ours, plain.posterior(model, expected), CLOSE)

    def test_an_exact_posterior(self):
        """One unit with two weights and a weight of the output, Gaussian priors, by sums over a grid."""
        rng = np.random.default_rng(1)
        X = np.column_stack([rng.normal(size=12), np.ones(12)])
        y = np.where(X[:, 0] + 0.7 * rng.normal(size=12) > 0.2, 1.0, -1.0)
        tau = np.array([1.0, 4.0])
        model = plain.Model(
            X, y, 1, 1.0, 0.0, w_tau=tau[None], w_nu=np.zeros((1, 2)), v_tau=np.array([4.0, 1e10]),
            v_nu=np.array([8.0, 0.0]), probit=True,
        )  # fmt: skip
        ours = approximation(model, sequential=True)
        settle(ours, 0.5, tolerance=1e-8)
        w, b, v = np.meshgrid(
            np.linspace(-5, 5, 81), np.linspace(-2.5, 2.5, 61), np.linspace(-0.5, 4.5, 61), indexing="ij"
        )
        logs = -0.5 * (w**2 + 4 * b**2 + 4 * (v - 2) ** 2)
        prior, tests = logsumexp(logs), np.linspace(-2, 2, 5)
        for x, label in zip(X[:, 0], y, strict=True):
            logs = logs + log_ndtr(label * v * erf((w * x + b) / np.sqrt(2)))
        log_z = logsumexp(logs)
        exact = [np.sum(np.exp(logs - log_z) * ndtr(v * erf((w * x + b) / np.sqrt(2)))) for x in tests]
        m, V = marginals(np.column_stack([tests, np.ones(5)]), ours.post.weight_mean, ours.post.weight_covariance)
        mean, variance = np.empty((2, 5))
        function_moments(m, V, np.array([False]), ours.post.output_mean, ours.post.output_covariance, mean, variance)
        np.testing.assert_allclose(ndtr(mean / np.sqrt(1 + variance)), exact, atol=0.02)
        assert ours.evidence()[0] == pytest.approx(log_z - prior, abs=0.1)


def rows(n=45, count=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return Rows(X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [0.0] if count == 2 else [-0.5, 0.5]) * 1.0, count)


def fitted(data, **options):
    return METHOD.fit(data, Config(**{"hidden": (2,), "sweeps": 60, **options}), np.random.default_rng(0))[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestFits:
    def test_two_classes_are_exchangeable(self):
        data = rows()
        p, q = (
            METHOD.predict(fitted(Rows(data.X, y, 2)), data.X, np.random.default_rng(0)).probabilities
            for y in (data.y, 1.0 - data.y)
        )
        np.testing.assert_allclose(p, q[:, ::-1], atol=1e-5)
        assert ((p[:, 1] > 0.5) == data.y).mean() > 0.8

    def test_more_classes(self):
        data = rows(count=3)
        state = fitted(data)
        p = METHOD.predict(state, data.X, np.random.default_rng(0)).probabilities
        assert p.shape == (45, 3)
        assert (p.argmax(axis=1) == data.y).mean() > 0.7
        assert state.log_evidence == pytest.approx(sum(one.log_evidence for one in state.networks))
        with pytest.raises(ValueError, match="a single latent function is required, found 3"):
            METHOD.latent(state, data.X)
