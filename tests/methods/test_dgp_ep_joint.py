"""Deep GPs by approximate EP with covariances of outputs: against twins, differences and Monte Carlo."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep.energy import joint_moments, log_evidence, moments, noise_variances
from tests.methods.dgp_ep_support import (
    DGPCase,
    check_derivatives,
    drawn,
    network,
    rows,
    scattered,
    structure_of,
    unpacked,
    vector,
)
from tests.twins import plain_dgp, plain_dgp_full
from tests.twins.plain_networks import check_gradient

pytestmark = pytest.mark.exhaustive  # full propagation compiles for ten seconds or more

DIMS = {
    "gaussian": [(2, 2, 1), (2, 2, 3, 1)],
    "probit": [(2, 2, 1), (3, 1, 2, 1)],
    "softmax": [(2, 1, 3), (2, 2, 3), (2, 2, 3, 3)],
}
every_shape = pytest.mark.parametrize(
    ("likelihood", "dims"), [(name, dims) for name, some in DIMS.items() for dims in some], ids=str
)
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])
of_any_width = pytest.mark.parametrize("dims", [(2, 1), (2, 2, 1), (2, 1, 3), (2, 2, 3, 2), (1, 4, 2, 3, 1)], ids=str)
Case = partial(DGPCase, propagation="full")
ERRORS = 4.5  # standard errors


def full(net, X, share=1.0):
    """Return the package's moments, those of the last layer without noise."""
    return joint_moments(structure_of(net), vector(net), X, share)


def wavering(dims):
    """Return a network with uncertain hidden functions, on which the outputs depend."""
    net = network(dims, shared=False)
    net[0]["log_sn"] = net[0]["log_sn"] + 0.8
    net[1]["theta2"] = 2.5 * net[1]["theta2"]
    return net


class TestMoments:
    @of_any_width
    @shared_or_not
    @pytest.mark.parametrize("share", [1.0, 0.9, 0.0])
    def test_the_twin(self, dims, shared, share):
        net = scattered(dims, 4, np.random.default_rng(1), shared=shared, spread=0.3)
        X, _ = rows(3, dims[0])
        expected = plain_dgp_full.moments(net, X, share, latent=True)
        for (mean, C), (twin_mean, twin_C) in zip(full(net, X, share), expected, strict=True):
            np.testing.assert_allclose(mean, twin_mean, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(C, twin_C, rtol=1e-8, atol=1e-10)

    def test_first_layers_are_those_of_diagonal_propagation(self):
        """The first layer, and the variances of the second; later layers depend on covariances."""
        net = network((2, 2, 3, 2), shared=False)
        X, _ = rows(5, 2)
        diagonal = moments(structure_of(net), vector(net), X)
        for layer, ((mean, C), (expected, v)) in enumerate(zip(full(net, X), diagonal, strict=True)):
            apart = max(np.abs(mean - expected).max(), np.abs(np.einsum("noo->no", C) - v).max())
            assert apart < 1e-10 if layer < 2 else apart > 1e-3
            off = C - np.einsum("noo->no", C)[:, :, None] * np.eye(C.shape[1])
            assert (np.abs(off).max() > 1e-2) == (layer > 0)

    def test_more_data_points_than_one_block(self):
        net = network((2, 1, 2), 100)
        X, _ = rows(500, 2)
        mean, C = full(net, X)[-1]
        for some in (slice(3), slice(200, 210), slice(-3, None)):
            expected = full(net, X[some])[-1]
            np.testing.assert_allclose(mean[some], expected[0], rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(C[some], expected[1], rtol=1e-11, atol=1e-12)


class TestMonteCarlo:
    @pytest.mark.parametrize("share", [1.0, 0.9])
    def test_covariances_of_two_layers_are_exact(self, share):
        """One hidden function and three outputs, against draws; diagonal propagation ignores these covariances."""
        net = wavering((2, 1, 3))
        X, _ = rows(2, 2)
        rng = np.random.default_rng(7)
        means, C = full(net, X, share)[-1]
        noise = np.diag(noise_variances(structure_of(net), vector(net)))
        for row, x in enumerate(X):
            sample = drawn(net, x, share, 200_000, rng)[-1]
            np.testing.assert_array_less(
                np.abs(sample.mean(0) - means[row]), ERRORS * sample.std(0) / np.sqrt(len(sample))
            )
            centred = sample - sample.mean(0)
            products = centred[:, :, None] * centred[:, None, :]
            error = products.std(0) / np.sqrt(len(sample))
            np.testing.assert_array_less(np.abs(products.mean(0) - C[row] - noise), ERRORS * error)
            assert np.abs(C[row][np.triu_indices(3, 1)]).max() > 20 * error.max()


@every_shape
@every_alpha
@shared_or_not
class TestEnergy:
    def test_the_twin(self, likelihood, dims, alpha, shared):
        case = Case(likelihood, dims, alpha=alpha, shared=shared)
        # the quadratures for powers of a probit differ
        rel = 1e-6 if likelihood == "probit" and alpha < 1 else 1e-9
        for some in (slice(2, 5), slice(9, 10)):
            assert case.energy(rows=some)[0] == pytest.approx(case.twin(rows=some), rel=rel)

    def test_gradient_by_differences(self, likelihood, dims, alpha, shared):
        case = Case(likelihood, dims, alpha=alpha, shared=shared)
        _, gradient = case.energy()
        check_gradient(
            lambda theta: case.energy(theta)[0], case.theta, gradient, case.rng, directions=4, step=1e-3, rel=1e-6
        )


@pytest.mark.parametrize("part", ["log_ls", "log_sf", "log_sn", "Z", "R", "theta2"])
def test_every_derivative_by_differences(part):
    """One by one, because a random direction would hide a small derivative."""
    case = Case(
        "softmax", (2, 2, 2, 2), inducing=3, alpha=0.5, shared=False, net=network((2, 2, 2, 2), 3, shared=False)
    )
    check_derivatives(case, lambda theta: case.energy(theta)[0], part, step=1e-3, digits=1e-7)


class TestEqualToDiagonalPropagation:
    @every_alpha
    @shared_or_not
    @pytest.mark.parametrize(
        ("likelihood", "dims"),
        [("gaussian", (2, 2, 1)), ("probit", (3, 3, 1)), ("gaussian", (2, 1)), ("softmax", (2, 3))],
    )
    def test_energy_and_gradient(self, likelihood, dims, alpha, shared):
        """One hidden layer and one output, or no hidden layer."""
        case = Case(likelihood, dims, alpha=alpha, shared=shared)
        value, gradient = case.energy()
        expected, diagonal = case.energy(propagation="diagonal")
        assert value == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(gradient, diagonal, rtol=1e-7, atol=1e-8 * np.abs(diagonal).max())

    @pytest.mark.parametrize(("likelihood", "dims"), [("softmax", (2, 1, 3)), ("gaussian", (2, 2, 2, 1))])
    def test_otherwise_it_differs(self, likelihood, dims):
        case = Case(likelihood, dims)
        assert abs(case.energy()[0] - case.energy(propagation="diagonal")[0]) > 1e-3


class TestRows:
    def test_evidence_is_minus_the_energy_of_all_data(self):
        case = Case("softmax", (2, 2, 3))
        assert log_evidence(case.problem, case.theta, case.X, case.y, case.noise) == pytest.approx(
            -case.energy()[0], rel=1e-13
        )


class TestPredictions:
    def state(self, net, likelihood, propagation="full"):
        return dgp_ep.State(
            structure=structure_of(net), likelihood=likelihood, propagation=propagation, theta=vector(net), samples=0,
            log_evidence=0.0, n_iterations=1, converged=True,
        )  # fmt: skip

    def test_regression_agrees_with_the_twin(self):
        net = network((2, 2, 2, 1))
        X, _ = rows(4, 2)
        state = self.state(net, "gaussian")
        found = dgp_ep.predict(state, X, np.random.default_rng(0))
        mean, C = plain_dgp_full.moments(net, X, 1.0)[-1]
        np.testing.assert_allclose(found.mean(), mean[:, 0], rtol=1e-9)
        np.testing.assert_allclose(found.std() ** 2, C[:, 0, 0], rtol=1e-9)
        latent_mean, latent_variance = dgp_ep.latent(state, X)
        np.testing.assert_allclose(latent_mean, mean[:, 0], rtol=1e-9)
        np.testing.assert_allclose(latent_variance + np.exp(2 * net[-1]["log_sn"][0]), C[:, 0, 0], rtol=1e-9)

    def test_two_classes_agree_with_the_twin(self):
        net = network((2, 2, 2, 1))
        X, _ = rows(4, 2)
        found = dgp_ep.predict(self.state(net, "probit"), X, np.random.default_rng(0)).probabilities
        for row, (m, C) in enumerate(zip(*plain_dgp_full.moments(net, X, 1.0, latent=True)[-1], strict=True)):
            expected = [plain_dgp.log_z("probit", m, C, label, 1.0) for label in range(2)]
            np.testing.assert_allclose(found[row], np.exp(expected), rtol=1e-8)

    def test_three_classes_depend_on_the_covariances(self):
        net = wavering((2, 1, 3))
        X, _ = rows(4, 2)
        found, diagonal = (
            dgp_ep.predict(self.state(net, "softmax", way), X, np.random.default_rng(0)).probabilities
            for way in ("full", "diagonal")
        )
        expected = np.empty((4, 3))
        for row, (m, C) in enumerate(zip(*plain_dgp_full.moments(net, X, 1.0, latent=True)[-1], strict=True)):
            expected[row] = [np.exp(plain_dgp.log_z("softmax", m, C, label, 1.0)) for label in range(3)]
        np.testing.assert_allclose(found, expected, atol=1e-3)
        assert np.abs(diagonal - expected).max() > 5e-3


class TestEdges:
    @pytest.mark.parametrize(
        ("part", "value"), [("log_sn", 8.0), ("log_sn", -7.0), ("log_ls", -6.0), ("log_ls", 4.0), ("log_sf", -6.0)]
    )
    def test_scales_far_from_one(self, part, value):
        net = network((2, 2, 2, 1))
        for layer in net:
            layer[part] = layer[part] + value
        case = Case("gaussian", (2, 2, 2, 1), net=net)
        found, gradient = case.energy()
        assert found == pytest.approx(case.twin(), rel=1e-6)
        assert np.all(np.isfinite(gradient))

    @pytest.mark.parametrize("dims", [(2, 2, 1), (2, 2, 2, 2)], ids=str)
    def test_a_huge_factor_gives_nan(self, dims):
        case = Case("softmax" if dims[-1] > 1 else "gaussian", dims)
        for layer in range(len(dims) - 1):
            theta = case.theta.copy()
            unpacked(case.structure, theta)[layer]["R"][:, 0] = 400.0
            assert np.isnan(case.energy(theta)[0])
