"""Deep GPs by approximate EP: energy and gradient against twins and differences, identities, limits, extremes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.methods.dgp_ep_support import DGPCase, check_derivatives, network, unpacked
from tests.twins import plain_dgp, plain_dgp_sites
from tests.twins.plain_networks import check_gradient

SHAPES = [(2, 1), (1, 1, 1), (2, 2, 1), (3, 1, 3, 1), (2, 3, 2, 2, 1)]
every_shape = pytest.mark.parametrize("dims", SHAPES, ids=str)
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.5, 0.05])
Case = partial(DGPCase, "gaussian")
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])


@every_shape
@every_alpha
@shared_or_not
class TestAgainstTheTwin:
    def test_energy_of_all_data_and_of_a_minibatch(self, dims, alpha, shared):
        case = Case(dims, alpha=alpha, shared=shared)
        for some in (slice(None), slice(2, 5), slice(9, 10)):
            # phi of posterior and cavity have a factor of n / alpha
            assert case.energy(rows=some)[0] == pytest.approx(float(case.twin(rows=some)), rel=1e-13, abs=1e-13 / alpha)

    def test_gradient_by_differences_of_the_twin(self, dims, alpha, shared):
        """In extended precision, so that differences have ten digits."""
        case = Case(dims, alpha=alpha, shared=shared)
        some = slice(1, 4)
        _, gradient = case.energy(rows=some)
        check_gradient(
            lambda theta: case.twin(theta, some), case.theta, gradient, case.rng, directions=2, step=1e-3, rel=1e-8
        )


@every_shape
@shared_or_not
def test_gradient_by_differences(dims, shared):
    case = Case(dims, inducing=6, alpha=0.7, shared=shared)
    _, gradient = case.energy()
    check_gradient(lambda theta: case.energy(theta)[0], case.theta, gradient, case.rng, rel=1e-7, step=1e-4)


@pytest.mark.parametrize("part", ["log_ls", "log_sf", "log_sn", "Z", "R", "theta2"])
def test_every_derivative_by_differences(part):
    """One by one, because a random direction would hide a small derivative."""
    case = Case((2, 2, 1), inducing=3, alpha=0.5, shared=False)
    check_derivatives(case, case.twin, part, step=1e-4, digits=1e-9)


def without_factor(net):
    """Return the network with q(u) equal to the prior."""
    for layer in net:
        M = layer["Z"].shape[1]
        layer["theta2"] = np.zeros_like(layer["theta2"])
        packed = np.zeros_like(layer["R"])
        packed[:, np.cumsum([0, *range(M, 1, -1)])] = -40.0
        layer["R"] = packed
    return net


class TestIdentities:
    @every_shape
    @shared_or_not
    def test_no_factor_gives_the_prior_of_the_last_layer(self, dims, shared):
        case = Case(dims, net=without_factor(network(dims, shared=shared)))
        expected = plain_dgp_sites.prior_energy(case.net[-1], case.y)
        assert case.energy()[0] == pytest.approx(expected, rel=1e-12)

    @every_shape
    def test_the_cavity_of_one_data_point_is_the_prior(self, dims):
        """This holds for any q, because its factor is the only one."""
        for seed in range(3):
            case = Case(dims, n=1, seed=seed)
            value, gradient = case.energy()
            expected = plain_dgp_sites.prior_energy(case.net[-1], case.y)
            assert value == pytest.approx(expected, rel=1e-11)
            for layer in unpacked(case.structure, gradient):
                np.testing.assert_allclose(layer["R"], 0.0, atol=1e-10)
                np.testing.assert_allclose(layer["theta2"], 0.0, atol=1e-10)


class TestSmallPowers:
    @every_shape
    def test_the_limit_is_the_variational_energy(self, dims):
        """The difference decreases with alpha."""
        case = Case(dims, net=network(dims))
        limit = float(plain_dgp.variational_energy(case.net, case.X, case.y, case.n))
        coarse, fine = (case.energy(alpha=alpha)[0] - limit for alpha in (2e-6, 1e-6))
        assert coarse / fine == pytest.approx(2.0, abs=1e-3)

    def twin(self, case):
        return lambda theta: plain_dgp.variational_energy(unpacked(case.structure, theta), case.X, case.y, case.n)

    @every_shape
    @shared_or_not
    def test_zero_is_the_limit_itself(self, dims, shared):
        case = Case(dims, shared=shared)
        value, gradient = case.energy(alpha=0.0)
        assert value == pytest.approx(float(self.twin(case)(case.theta)), rel=1e-12)
        check_gradient(self.twin(case), case.theta, gradient, case.rng, directions=3, step=1e-3, rel=1e-8)

    def test_the_gradient_keeps_its_digits(self):
        """The terms of posterior and cavity cancel up to order alpha."""
        case = Case((2, 2, 1))
        _, gradient = case.energy(alpha=1e-7)
        check_gradient(self.twin(case), case.theta, gradient, case.rng, directions=3, step=1e-3, rel=1e-5)


class TestEdges:
    def finite(self, case):
        value, gradient = case.energy()
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        assert value == pytest.approx(float(case.twin()), rel=1e-9)
        check_gradient(case.twin, case.theta, gradient, case.rng, directions=2, step=1e-4, rel=1e-6)

    @every_alpha
    @pytest.mark.parametrize("dims", [(2, 1), (2, 2, 1)], ids=str)
    @pytest.mark.parametrize(
        ("part", "value"),
        [("log_sn", 12.0), ("log_sn", -7.0), ("log_ls", -7.0), ("log_ls", 5.0), ("log_sf", -7.0), ("log_sf", 3.0)],
    )
    def test_scales_far_from_one(self, alpha, dims, part, value):
        net = network(dims)
        for layer in net:
            layer[part] = layer[part] + value
        self.finite(Case(dims, alpha=alpha, net=net))

    @pytest.mark.parametrize("dims", [(2, 1), (2, 2, 1)], ids=str)
    def test_inputs_far_from_all_inducing_inputs(self, dims):
        case = Case(dims, net=network(dims))
        case.X = case.X + 1e4
        self.finite(case)

    @pytest.mark.parametrize("dims", [(2, 1), (2, 2, 1)], ids=str)
    def test_identical_inducing_inputs(self, dims):
        """K has rank one, apart from its jitter."""
        net = network(dims)
        for layer in net:
            layer["Z"] = np.full_like(layer["Z"], 0.3)
        case = Case(dims, net=net)
        value, gradient = case.energy()
        assert value == pytest.approx(float(case.twin()), rel=1e-9)
        assert np.all(np.isfinite(gradient))

    def test_a_factor_much_narrower_than_the_prior(self):
        net = network((2, 2, 1))
        for layer in net:
            layer["R"][:, [0, 4, 7, 9]] += 6.0
        self.finite(Case((2, 2, 1), net=net))

    def test_one_inducing_input_and_one_data_point(self):
        self.finite(Case((2, 2, 1), inducing=1, n=1))
