"""Deep GPs by approximate EP: predictions and evidence from the parameters of a network."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy, log_evidence, sampled_moments
from tests.methods.dgp_ep_support import layer_moments, network, rows, structure_of, vector
from tests.twins import plain_dgp

SHAPES = [(2, 1), (2, 2, 1), (2, 3, 2, 1)]
every_shape = pytest.mark.parametrize("dims", SHAPES, ids=str)
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])


def state_of(net, samples=0, likelihood="gaussian"):
    """Return the state of a network that was not fitted."""
    return dgp_ep.State(structure_of(net), likelihood, "diagonal", vector(net), samples, 0.0, 1, converged=True)


def through_samples(net, X, count, seed):
    """Return means and variances (S, n, outputs), noise included."""
    means, variances = sampled_moments(structure_of(net), vector(net), X, count, np.random.default_rng(seed))
    return means, variances + np.exp(2 * net[-1]["log_sn"])


class TestOnePass:
    @every_shape
    @shared_or_not
    def test_the_twin(self, dims, shared):
        net = network(dims, shared=shared)
        X, _ = rows(7, 2)
        found = dgp_ep.predict(state_of(net), X, np.random.default_rng(0))
        mean, variance = plain_dgp.predict(net, X)
        np.testing.assert_allclose(found.mean(), mean, rtol=1e-11)
        np.testing.assert_allclose(found.std() ** 2, variance, rtol=1e-11)
        latent_mean, latent_variance = dgp_ep.latent(state_of(net), X)
        np.testing.assert_allclose(latent_mean, mean, rtol=1e-11)
        np.testing.assert_allclose(latent_variance + np.exp(2 * net[-1]["log_sn"][0]), variance, rtol=1e-11)

    def test_more_data_points_than_one_block(self):
        net = network((2, 2, 1), 20)
        X, _ = rows(12_000, 2)
        mean, variance = layer_moments(net, X)[-1]
        for some in (slice(3), slice(4_990, 5_000), slice(-3, None)):
            expected = layer_moments(net, X[some])[-1]
            np.testing.assert_allclose(mean[some], expected[0], rtol=1e-12)
            np.testing.assert_allclose(variance[some], expected[1], rtol=1e-12)


class TestSampling:
    @every_shape
    def test_moments_of_the_mixture(self, dims):
        """For two layers they are those of moment matching, which are exact; for three layers they are not."""
        net = network(dims)
        X, _ = rows(4, 2)
        count = 40_000
        means, variances = through_samples(net, X, count, 0)
        if len(dims) == 2:
            assert means.shape == (1, 4, 1)
        else:
            assert means.shape == (count, 4, 1)
        mean, variance = layer_moments(net, X)[-1]
        if len(dims) > 3:
            return
        square = variances + (means - mean) ** 2
        for sample, expected in ((means, mean), (square, variance)):
            error = sample.std(0) / np.sqrt(len(sample)) + 1e-12
            np.testing.assert_array_less(np.abs(sample.mean(0) - expected), 4.5 * error)

    def test_three_layers_against_draws_of_all_functions(self):
        net = network((2, 2, 2, 1))
        X, _ = rows(2, 2)
        means, variances = through_samples(net, X, 60_000, 1)
        rng = np.random.default_rng(2)
        for row in range(2):
            h = np.tile(X[row], (60_000, 1))
            for layer in net[:-1]:
                # as many data points as draws, each with its own function
                m, v = layer_moments([layer], h)[0]
                h = m + np.sqrt(v) * rng.normal(size=m.shape)
            m, v = layer_moments(net[-1:], h)[0]
            for found, expected in (
                (means[:, row, 0], m[:, 0]),
                (variances[:, row, 0] + means[:, row, 0] ** 2, v[:, 0] + m[:, 0] ** 2),
            ):
                error = np.hypot(found.std(), expected.std()) / np.sqrt(60_000)
                assert abs(found.mean() - expected.mean()) < 4.5 * error

    def test_a_prediction_is_the_mixture(self):
        net = network((2, 2, 1))
        X, _ = rows(5, 2)
        found = dgp_ep.predict(state_of(net, samples=7), X, np.random.default_rng(3))
        means, variances = through_samples(net, X, 7, 3)
        np.testing.assert_allclose(found.mean(), means[:, :, 0].mean(0), rtol=1e-12)
        total = variances[:, :, 0].mean(0) + means[:, :, 0].var(0)
        np.testing.assert_allclose(found.std() ** 2, total, rtol=1e-12)


class TestClasses:
    @pytest.mark.parametrize("dims", [(2, 1), (2, 2, 1)], ids=str)
    def test_two_in_closed_form(self, dims):
        net = network(dims)
        X, _ = rows(6, 2)
        found = dgp_ep.predict(state_of(net, likelihood="probit"), X, np.random.default_rng(0))
        np.testing.assert_allclose(found.probabilities, plain_dgp.probabilities(net, X, "probit"), rtol=1e-11)

    def test_a_tiny_probability_keeps_its_digits(self):
        """One minus the other probability would be 0, and its logarithm infinite."""
        net = network((2, 1))
        net[0]["theta2"] *= 50.0
        X, _ = rows(6, 2)
        found = dgp_ep.predict(state_of(net, likelihood="probit"), X, np.random.default_rng(0)).probabilities
        expected = plain_dgp.probabilities(net, X, "probit")
        assert 0.0 < expected[:, 0].min() < 1e-18
        assert 0.0 < expected[:, 1].min() < 1e-18
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.parametrize("dims", [(2, 3), (2, 2, 3)], ids=str)
    def test_three_by_quasi_random_draws(self, dims):
        net = network(dims, shared=False)
        X, _ = rows(4, 2)
        found = dgp_ep.predict(state_of(net, likelihood="softmax"), X, np.random.default_rng(0)).probabilities
        np.testing.assert_allclose(found, plain_dgp.probabilities(net, X, "softmax"), atol=1e-3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)

    @pytest.mark.parametrize(
        ("likelihood", "dims", "samples"), [("probit", (2, 2, 1), 50), ("softmax", (2, 2, 3), 4)]
    )  # fmt: skip
    @pytest.mark.exhaustive
    def test_samples_through_the_layers(self, likelihood, dims, samples):
        """For two layers the mixture is exact, and moment matching approximate."""
        net = network(dims)
        X, _ = rows(4, 2)
        rng = np.random.default_rng(1)
        one = dgp_ep.predict(state_of(net, likelihood=likelihood), X, rng).probabilities
        many = dgp_ep.predict(state_of(net, 4_000, likelihood), X, rng).probabilities
        means, variances = sampled_moments(structure_of(net), vector(net), X, samples, np.random.default_rng(2))
        assert np.abs(many - one).max() < 0.03
        few = dgp_ep.predict(state_of(net, samples, likelihood), X, np.random.default_rng(2)).probabilities
        expected = np.zeros_like(few)
        for m, v in zip(means, variances, strict=True):
            for row in range(len(X)):
                for label in range(few.shape[1]):
                    log_Z = plain_dgp.log_z(likelihood, m[row], np.diag(v[row]), label, 1.0)
                    expected[row, label] += np.exp(log_Z) / len(means)
        np.testing.assert_allclose(few, expected, atol=1e-3 if likelihood == "softmax" else 1e-12)


class TestEvidence:
    def test_more_data_points_than_one_block(self):
        net = network((2, 2, 1), 20)
        X, y = rows(12_000, 2)
        problem = DGPProblem(structure_of(net), "gaussian", 12_000)
        value, _ = energy(problem, vector(net), X, y)
        assert log_evidence(problem, vector(net), X, y) == pytest.approx(-value, rel=1e-11)
