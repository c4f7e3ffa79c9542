"""Factorised Gaussians over weights: divergence, draws, the mixture of networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from ep_bench.models import meanfield, mlp
from ep_bench.numerics.normal_rng import stream


@pytest.fixture
def q():
    rng = np.random.default_rng(1)
    return rng.normal(size=9), np.exp(rng.normal(size=9)), np.exp(rng.normal(size=9))


class TestDivergence:
    def test_divergence_equals_the_integral(self, q):
        total = 0.0
        for m, s, v0 in zip(*q, strict=True):
            here, prior = stats.norm(m, s), stats.norm(0.0, np.sqrt(v0))

            def ratio(w, here=here, prior=prior):
                return here.pdf(w) * (here.logpdf(w) - prior.logpdf(w))

            total += integrate.quad(ratio, m - 30 * s, m + 30 * s, points=[m], limit=200)[0]
        assert meanfield.divergence(*q) == pytest.approx(total, rel=1e-9)

    def test_monte_carlo(self, q):
        m, s, v0 = q
        w = m + s * np.random.default_rng(2).normal(size=(100_000, 9))
        ratios = stats.norm.logpdf(w, m, s).sum(axis=1) - stats.norm.logpdf(w, 0.0, np.sqrt(v0)).sum(axis=1)
        assert abs(ratios.mean() - meanfield.divergence(m, s, v0)) < 4 * ratios.std() / np.sqrt(len(ratios))

    def test_extremes(self):
        one, v0 = np.ones(1), np.array([2.0])
        assert meanfield.divergence(0 * one, 1e-150 * one, v0) == pytest.approx(-0.5 + 0.5 * np.log(2e300), rel=1e-12)
        assert meanfield.divergence(1e8 * one, np.sqrt(v0), v0) == pytest.approx(0.25e16, rel=1e-12)


class TestDraws:
    def test_moments(self, q):
        m, s, _ = q
        K = 40_000
        noise, W = np.empty((K, 9)), np.empty((K, 9))
        meanfield.draw_weights(m, s, stream(np.random.default_rng(3)), noise, W)
        np.testing.assert_allclose(W, m + s * noise, rtol=1e-15, atol=1e-15)
        z = (W - m) / s
        assert np.all(np.abs(z.mean(axis=0)) < 4 / np.sqrt(K))
        assert np.all(np.abs((z**2).mean(axis=0) - 1) < 4 * np.sqrt(2 / K))
        correlations = (z.T @ z / K)[np.triu_indices(9, 1)]
        assert np.all(np.abs(correlations) < 4.5 / np.sqrt(K))


class TestNetworks:
    def test_a_linear_networks_mixture_has_the_exact_moments(self):
        rng = np.random.default_rng(5)
        layers, X = mlp.layout(3, ()), rng.normal(size=(6, 3))
        m, s = rng.normal(size=4), np.exp(rng.normal(size=4))
        K = 20_000
        f = meanfield.sample_networks(m, s, K, layers, X, rng)
        assert f.shape == (K, 6)
        A = np.column_stack([X, np.ones(6)])
        mean, variance = A @ m, A**2 @ s**2
        assert np.all(np.abs(f.mean(axis=0) - mean) < 4 * np.sqrt(variance / K))
        assert np.all(np.abs(f.var(axis=0) - variance) < 4 * variance * np.sqrt(2 / K))

    def test_a_sample_uses_the_same_weights_at_all_inputs(self):
        rng = np.random.default_rng(6)
        layers, X = mlp.layout(2, (5,)), rng.normal(size=(1, 2)).repeat(3, axis=0)
        size = mlp.count(layers)
        f = meanfield.sample_networks(rng.normal(size=size), np.ones(size), 10, layers, X, rng)
        np.testing.assert_array_equal(f, f[:, :1].repeat(3, axis=1))
        assert np.ptp(f[:, 0]) > 0
