"""Deep GPs by approximate EP: moments of the layers against twins, sums over a grid and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest

from tests.methods.dgp_ep_support import drawn, layer_moments, network, rows, scattered
from tests.twins import plain_dgp, plain_dgp_full

SHAPES = [(2, 1), (1, 1, 1), (2, 2, 1), (3, 1, 3, 2), (2, 3, 2, 2, 1)]
every_shape = pytest.mark.parametrize("dims", SHAPES, ids=str)
every_share = pytest.mark.parametrize("share", [1.0, 0.9, 0.0])
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])
ERRORS = 4.5  # standard errors


def diagonals(covariances):
    return np.diagonal(covariances, axis1=1, axis2=2)


class TestTheTwins:
    """Closed forms of expectations of kernels, against the trapezoidal rule over the inputs."""

    def test_expectations_of_the_kernel(self):
        (out, *_) = [plain_dgp_full.floats(one) for one in plain_dgp.outputs(network((2, 2))[0])]
        mean, variance = np.array([0.4, -0.9]), np.array([1.7, 0.05])
        points, w = plain_dgp.grid(mean, np.diag(variance), step=0.1)
        kernels = np.array([[plain_dgp.kernel(x, z, out) for z in out.Z] for x in points])
        for a, za in enumerate(out.Z):
            first = plain_dgp.psi1(mean, variance, za, out)
            assert first == pytest.approx(w @ kernels[:, a], rel=1e-12)
            assert plain_dgp_full.psi1(mean, np.diag(variance), za, out) == pytest.approx(first, rel=1e-13)
            for b, zb in enumerate(out.Z):
                second = plain_dgp.psi2(mean, variance, za, zb, out)
                assert second == pytest.approx(w @ (kernels[:, a] * kernels[:, b]), rel=1e-12)
                full = plain_dgp_full.psi2(mean, np.diag(variance), za, out, zb, out)
                assert full == pytest.approx(second, rel=1e-13)

    @shared_or_not
    def test_non_diagonal_propagation(self, shared):
        net = scattered((2, 2, 3, 2), 4, np.random.default_rng(1), shared=shared, spread=0.2)
        X, _ = rows(2, 2)
        closed = plain_dgp_full.moments(net, X, 0.9)
        summed = plain_dgp_full.moments(
            net, X, 0.9, rule=lambda *inputs: plain_dgp_full.expected_by_grid(*inputs, step=0.3, end=8.0)
        )
        for one, other in zip(closed, summed, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
        assert np.abs(closed[1][1][:, 0, 1]).max() > 0.01

    def test_diagonal_and_non_diagonal_agree_on_two_layers(self):
        """The outputs of the first layer are independent; those of the second are not."""
        net = network((2, 2, 3), shared=False)
        X, _ = rows(3, 2)
        full, diagonal = plain_dgp_full.moments(net, X, 0.9)[1], plain_dgp.moments(net, X, 0.9)[1]
        np.testing.assert_allclose(full[0], diagonal[0].astype(float), rtol=1e-12)
        np.testing.assert_allclose(diagonals(full[1]), diagonal[1].astype(float), rtol=1e-12)


class TestAgainstTheTwin:
    @every_shape
    @every_share
    @shared_or_not
    @pytest.mark.parametrize("noisy", [True, False], ids=["noisy", "latent"])
    def test_moments(self, dims, share, shared, noisy):
        net = scattered(dims, 4, np.random.default_rng(2), shared=shared)
        X, _ = rows(5, dims[0])
        expected = plain_dgp.moments(net, X, share, latent=not noisy)
        for one, other in zip(layer_moments(net, X, share, noisy=noisy), expected, strict=True):
            np.testing.assert_allclose(one[0], other[0].astype(float), rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(one[1], other[1].astype(float), rtol=1e-11)

    @pytest.mark.parametrize("offset", [0.0, 5.0, 1e3])
    @pytest.mark.parametrize(("part", "change"), [("log_ls", -5.0), ("log_ls", 4.0), ("log_sn", 8.0), ("log_sf", -6.0)])
    def test_scales_far_from_one(self, offset, part, change):
        net = network((2, 2, 2, 1))
        for layer in net:
            layer[part] = layer[part] + change
        X = rows(4, 2)[0] + offset
        for one, other in zip(layer_moments(net, X), plain_dgp.moments(net, X, 1.0), strict=True):
            # the error of a mean by cancellation is relative to the standard deviation of its prior
            np.testing.assert_allclose(one[0], other[0].astype(float), rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(one[1], other[1].astype(float), rtol=1e-10)
            assert np.all(one[1] > 0.0)


class TestKnownMoments:
    @every_shape
    def test_prior_far_from_all_inducing_inputs(self, dims):
        net = network(dims)
        mean, variance = layer_moments(net, np.full((1, dims[0]), 1e3))[0]
        prior = np.exp(2 * net[0]["log_sf"]) + np.exp(2 * net[0]["log_sn"])
        np.testing.assert_allclose(mean, 0.0, atol=1e-300)
        np.testing.assert_allclose(variance, prior[0], rtol=1e-14)

    @every_shape
    def test_prior_without_a_factor(self, dims):
        net = network(dims)
        X, _ = rows(4, dims[0])
        for layer, (mean, variance) in zip(net, layer_moments(net, X, 0.0), strict=True):
            np.testing.assert_allclose(mean, 0.0, atol=1e-14)
            np.testing.assert_allclose(variance, np.exp(2 * layer["log_sf"][0]) + np.exp(2 * layer["log_sn"][0]))

    def test_a_known_input_is_propagated_exactly(self):
        """For a hidden layer without uncertainty, the moments of the second are those at its mean."""
        net = network((2, 2, 1))
        net[0]["log_sn"][:], net[0]["log_sf"][:] = -18.0, -18.0
        net[0]["theta2"] *= np.exp(36.0)
        X, _ = rows(6, 2)
        (mean, variance), last = layer_moments(net, X)
        assert variance.max() < 1e-14
        assert np.abs(mean).max() > 0.1
        expected = layer_moments(net[1:], mean)[0]
        np.testing.assert_allclose(last[0], expected[0], rtol=1e-9)
        np.testing.assert_allclose(last[1], expected[1], rtol=1e-9)


class TestMonteCarlo:
    @pytest.mark.parametrize("share", [pytest.param(1.0, marks=pytest.mark.exhaustive), 0.9])
    @shared_or_not
    def test_two_layers_are_exact(self, share, shared):
        """Moments of the Gaussian first layer and the first two moments of the second, against draws."""
        net = network((2, 2, 2), shared=shared)
        X, _ = rows(3, 2)
        rng = np.random.default_rng(4)
        layers = layer_moments(net, X, share)
        for row, x in enumerate(X):
            for sample, (mean, variance) in zip(drawn(net, x, share, 200_000, rng), layers, strict=True):
                error = sample.std(0) / np.sqrt(len(sample))
                np.testing.assert_array_less(np.abs(sample.mean(0) - mean[row]), ERRORS * error)
                square = (sample - sample.mean(0)) ** 2
                error = square.std(0) / np.sqrt(len(sample))
                np.testing.assert_array_less(np.abs(square.mean(0) - variance[row]), ERRORS * error)

    def test_covariances_of_the_twin(self):
        net = network((2, 2, 3), shared=False)
        X, _ = rows(2, 2)
        rng = np.random.default_rng(5)
        covariances = plain_dgp_full.moments(net, X, 1.0)[1][1]
        for row, x in enumerate(X):
            sample = drawn(net, x, 1.0, 200_000, rng)[1]
            centred = sample - sample.mean(0)
            products = centred[:, :, None] * centred[:, None, :]
            error = products.std(0) / np.sqrt(len(sample))
            np.testing.assert_array_less(np.abs(products.mean(0) - covariances[row]), ERRORS * error)

    def test_a_third_layer_has_gaussian_inputs(self):
        """Against draws from a Gaussian with the moments of the second layer."""
        net = network((2, 2, 2, 1))
        X, _ = rows(2, 2)
        rng = np.random.default_rng(6)
        layers = layer_moments(net, X)
        for row in range(len(X)):
            h = layers[1][0][row] + np.sqrt(layers[1][1][row]) * rng.normal(size=(100_000, 2))
            means, variances = layer_moments(net[2:], h)[0]
            expected = layers[2][0][row], layers[2][1][row]
            assert np.abs(means.mean(0) - expected[0]) < ERRORS * means.std(0) / np.sqrt(len(h))
            second = variances + (means - expected[0]) ** 2
            assert np.abs(second.mean(0) - expected[1]) < ERRORS * second.std(0) / np.sqrt(len(h))
