"""Deep GPs by approximate EP for classes: probit and softmax against quadrature, sums over draws and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from ep_bench.methods.dgp_ep import likelihoods
from tests.methods.dgp_ep_support import DGPCase, network, unpacked
from tests.twins import plain_dgp
from tests.twins.plain_networks import check_gradient

DIMS = {"probit": [(2, 1), (2, 2, 1), (3, 1, 2, 1)], "softmax": [(2, 3), (2, 2, 3), (3, 1, 2, 4)]}
every_shape = pytest.mark.parametrize(
    ("likelihood", "dims"), [(name, dims) for name, some in DIMS.items() for dims in some], ids=str
)
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.5, 0.05, 0.0])
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])


@every_shape
@every_alpha
@shared_or_not
class TestAgainstTheTwin:
    def test_energy(self, likelihood, dims, alpha, shared):
        case = DGPCase(likelihood, dims, alpha=alpha, shared=shared)
        # the quadratures for powers of a probit differ
        rel = 1e-6 if likelihood == "probit" and alpha < 1 else 1e-12
        assert case.energy()[0] == pytest.approx(float(case.twin()), rel=rel)

    def test_gradient_by_differences(self, likelihood, dims, alpha, shared):
        case = DGPCase(likelihood, dims, alpha=alpha, shared=shared)
        _, gradient = case.energy()
        check_gradient(
            lambda theta: case.energy(theta)[0], case.theta, gradient, case.rng, directions=4, step=1e-3, rel=1e-7
        )
        last = unpacked(case.structure, gradient)[-1]
        np.testing.assert_array_equal(last["log_sn"], 0.0)


class TestProbit:
    def test_closed_form(self):
        """Mean 0.3 and variance 0.7; the expected value is the integral."""
        expected, _ = integrate.quad(lambda f: stats.norm.pdf(f, 0.3, np.sqrt(0.7)) * ndtr(f), -12, 12, epsabs=1e-14)
        assert np.log(expected) == pytest.approx(-0.52595806582638, abs=1e-12)
        found = plain_dgp.log_z("probit", np.array([0.3]), np.array([[0.7]]), 1, 1.0)
        assert found == pytest.approx(-0.52595806582638, abs=1e-14)

    @pytest.mark.parametrize("size", [30.0, 1e3, 1e8])
    def test_tails(self, size):
        """A mean that many standard deviations on the wrong side, then on the right side."""
        net = network((2, 1))
        net[0]["theta2"] = net[0]["theta2"] * size
        case = DGPCase("probit", (2, 1), net=net)
        value, gradient = case.energy()
        assert value == pytest.approx(float(case.twin()), rel=1e-10)
        assert np.all(np.isfinite(gradient))
        # beyond, differences in double precision are not accurate
        if size < 1e6:
            check_gradient(case.twin, case.theta, gradient, case.rng, directions=2, step=1e-4, rel=1e-5)


def by_gumbel_noise(mean, variance, label):
    """E softmax(f)[label]: the probability that f + Gumbel noise is largest at the label, an integral over one line."""
    t, w = np.polynomial.hermite_e.hermegauss(150)
    w = w / w.sum()

    def shifted(s, c):
        return s - mean[c] - np.sqrt(variance[c]) * t

    def integrand(s):
        z = shifted(s, label)
        density = w @ np.exp(-z - np.exp(-z))
        others = [w @ np.exp(-np.exp(-shifted(s, c))) for c in range(len(mean)) if c != label]
        return density * np.prod(others)

    return integrate.quad(integrand, -25, 60, points=[0.0, *mean], limit=400, epsabs=1e-13)[0]


class TestSoftmax:
    @pytest.mark.parametrize("label", range(3))
    def test_quadrature_of_the_twin(self, label):
        """A grid over three outputs against one integral over the maximum."""
        mean, variance = np.array([0.4, -1.1, 0.9]), np.array([1.3, 0.2, 2.5])
        found = plain_dgp.log_z("softmax", mean, np.diag(variance), label, 1.0)
        assert np.exp(found) == pytest.approx(by_gumbel_noise(mean, variance, label), abs=1e-9)

    @pytest.mark.parametrize("alpha", [1.0, 0.5])
    def test_many_draws_approximate_the_integral(self, alpha):
        case = DGPCase("softmax", (2, 2, 3), alpha=alpha, net=network((2, 2, 3)))
        draws = stats.norm.ppf(stats.qmc.Sobol(3, seed=1).random(2**14))
        expected = plain_dgp.energy(case.net, case.X, case.y, case.n, alpha, "softmax")
        assert case.energy(noise=draws)[0] == pytest.approx(float(expected), abs=2e-3)

    def test_two_classes_with_distant_outputs(self):
        """No overflow if outputs differ by thousands."""
        net = network((2, 3))
        net[0]["theta2"] = net[0]["theta2"] * 1e4
        case = DGPCase("softmax", (2, 3), net=net)
        value, gradient = case.energy()
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))

    @pytest.mark.parametrize("alpha", [1.0, 0.0])
    def test_an_invalid_covariance_gives_nan(self, alpha):
        """The result must not be a finite number."""
        V = np.array([[[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
        noise = np.random.default_rng(0).normal(size=(30, 3))
        value = likelihoods.joint_softmax(
            np.zeros((1, 3)), V, np.zeros(1), alpha, noise, -1.0, np.zeros((1, 3)), np.zeros((1, 3, 3))
        )
        assert np.isnan(value)
