"""EP for networks: kernels of one term against reference values and fine grids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erfcx

from ep_bench.methods.ep_nn.outputs import output_cavity, output_site
from ep_bench.methods.ep_nn.priors import GAUSSIAN, LAPLACE, SCALE_NODES, log_mills, output_moments, weight_moments
from ep_bench.methods.ep_nn.tilted import MAX_NODES, activation_moments, noise_moments, tilted_activation
from tests.twins import plain_ep_nn as plain

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "ep_nn.json").read_text(encoding="utf-8"))
KINDS = {LAPLACE: plain.log_laplace, GAUSSIAN: plain.log_gaussian}


class TestActivationMoments:
    @pytest.mark.parametrize("case", VALUES["activation_moments"], ids=lambda c: f"{c['m']}-{c['V']}")
    def test_reference_values(self, case):
        mean, variance = activation_moments(case["m"], case["V"], case["K"] ** -0.5, False)
        assert mean == pytest.approx(case["Eg"], rel=1e-10, abs=1e-15)
        assert variance == pytest.approx(case["Varg"], rel=1e-10)

    @pytest.mark.parametrize("linear", [False, True])
    @pytest.mark.parametrize("V", [1e-4, 0.3, 4.0, 100.0])
    @pytest.mark.parametrize("m", [-6.0, -0.8, 0.0, 2.5])
    def test_a_grid(self, m, V, linear):
        expected = plain.activation_moments(m, V, 3, linear)
        found = activation_moments(m, V, 3**-0.5, linear)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13 * (expected[1] < 1e-9) + 1e-15)

    def test_a_saturated_unit_keeps_a_positive_variance(self):
        assert 0 < activation_moments(20.0, 0.1, 1.0, False)[1] < 1e-100


class TestOutputSite:
    given = VALUES["output_site"]
    mu, Sigma = np.array(given["mu_cav"]), np.array(given["Sigma_cav"])
    m_g, V_g = np.array(given["m_g"]), np.array(given["V_g"])

    def test_reference_values(self):
        m_f, V_f, _ = plain.function_moments(self.m_g, self.V_g, self.mu, self.Sigma)
        assert (m_f, V_f) == pytest.approx((self.given["m_f"], self.given["V_f"]), rel=1e-13)
        eta = self.given["eta"]
        _, _, _, ratio, ratio_V = noise_moments(self.given["y"], m_f, V_f, eta, self.given["log_sigma2"], 0.0)
        alpha, beta, sign = output_site(
            eta, self.given["y"] - m_f, ratio, ratio_V, self.m_g @ self.Sigma @ self.m_g, self.m_g @ self.mu
        )
        np.testing.assert_allclose(alpha * self.m_g, self.given["alpha"], rtol=1e-10)
        np.testing.assert_allclose(beta * self.m_g, self.given["beta"], rtol=1e-10)
        assert sign == 1.0

    @pytest.mark.parametrize("y", [0.4, 2.5, 12.0])  # the last is an outlier, which gives a negative precision
    @pytest.mark.parametrize("eta", [1.0, 0.7])
    def test_moments_are_matched(self, y, eta):
        m_f, V_f, cross = plain.function_moments(self.m_g, self.V_g, self.mu, self.Sigma)
        _, _, (ratio, ratio_V) = plain.noise_moments(y, m_f, V_f, eta, -2.0, 1.5)
        hat = plain.tilted_output(y, m_f, cross, ratio, ratio_V, self.mu, self.Sigma)
        T, b = plain.quotient(hat, (self.mu, self.Sigma), eta)
        alpha, beta, sign = output_site(eta, y - m_f, ratio, ratio_V, self.m_g @ cross, self.m_g @ self.mu)
        np.testing.assert_allclose(sign * alpha**2 * np.outer(self.m_g, self.m_g), T, rtol=0, atol=1e-11 * abs(T).max())
        np.testing.assert_allclose(beta * self.m_g, b, rtol=0, atol=1e-11 * abs(b).max())
        assert sign == (-1.0 if y > 10 else 1.0)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_the_cavity_is_a_ratio_of_gaussians(self, sign):
        rng, eta = np.random.default_rng(3), 0.9
        alpha, beta = 0.2 * rng.normal(size=11), rng.normal(size=11)
        P, r = plain.natural(self.mu, self.Sigma)
        mean, S = plain.usual(
            P + eta * sign * np.outer(alpha, alpha), r + eta * beta
        )  # so that mu, Sigma is the cavity
        mu, spread, cross, u = np.empty((4, 11))
        s, term = output_cavity(eta, alpha, sign, beta, mean, S, self.m_g, mu, spread, cross, u)
        np.testing.assert_allclose(mu, self.mu, rtol=0, atol=1e-12)
        np.testing.assert_allclose(spread, np.diag(self.Sigma), rtol=1e-12)
        np.testing.assert_allclose(cross, self.Sigma @ self.m_g, rtol=0, atol=1e-12)
        np.testing.assert_allclose(u, S @ alpha, rtol=0, atol=1e-13)
        assert s == pytest.approx(1 / eta - sign * alpha @ S @ alpha, rel=1e-12)
        assert term == pytest.approx(plain.psi(self.mu, self.Sigma) - plain.psi(mean, S), rel=1e-10)


class TestNoiseMoments:
    @pytest.mark.parametrize("eta", [1.0, 0.95, 0.5])
    @pytest.mark.parametrize("variance", [1e-4, 0.02, 0.5, 2.0])
    @pytest.mark.parametrize(("residual", "V_f"), [(0.05, 0.01), (0.3, 0.2), (1.5, 0.05), (0.0, 1e-3)])
    def test_a_grid(self, residual, V_f, variance, eta):
        log_z, theta, ratio = plain.noise_moments(residual, 0.0, V_f, eta, -2.5, variance)
        found = noise_moments(0.4 + residual, 0.4, V_f, eta, -2.5, variance)
        np.testing.assert_allclose(found, [log_z, *theta, *ratio], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found[2::2], [theta[1], ratio[1]], rtol=1e-10)

    def test_a_fixed_theta(self):
        log_z, (theta, _), (ratio, _) = plain.noise_moments(0.7, 0.2, 0.3, 0.8, -1.0, 0)
        np.testing.assert_allclose(
            noise_moments(0.7, 0.2, 0.3, 0.8, -1.0, 0.0), [log_z, theta, 0, ratio, 0], rtol=1e-13
        )

    @pytest.mark.parametrize("residual", [0.01, 0.3, 3.0])
    def test_the_prior_alone(self, residual):
        """The prior of section 4.4; then an outlier, which moves theta by five standard deviations."""
        log_z, theta, ratio = plain.noise_moments(residual, 0.0, 0.1, 0.95, 2 * np.log(0.01), 4.0)
        found = noise_moments(residual, 0.0, 0.1, 0.95, 2 * np.log(0.01), 4.0)
        np.testing.assert_allclose(found, [log_z, *theta, *ratio], rtol=1e-10)


def tilted(y, noise, k, m, V, mu, Sigma, eta, linear=False):
    """Return the results of the kernel and of the twin."""
    K = len(m)
    found = [plain.activation_moments(m[j], V[j], K, linear and j == k) for j in range(K)]
    m_g, V_g = np.array([*found, (1.0, 0.0)]).T
    m_f, V_f, cross = plain.function_moments(m_g, V_g, mu, Sigma)
    rest = V_f - V_g[k] * (Sigma[k, k] + mu[k] ** 2)
    ours = tilted_activation(
        0.0, y - m_f, noise / eta, m[k], V[k], m_g[k], mu[k], Sigma[k, k], cross[k], rest, K**-0.5, linear,
        np.empty(MAX_NODES), np.empty(MAX_NODES),
    )  # fmt: skip
    theta = np.log(noise)
    return ours, plain.tilted_activation(y, theta, k, m, V, m_g, V_g, mu, Sigma, eta, linear, count=4001)


ALL = pytest.mark.exhaustive
MU, SIGMA = np.array([1.2, 0.7, 0.1]), np.array([[0.2, 0.05, 0.0], [0.05, 0.3, -0.02], [0.0, -0.02, 0.1]])


class TestTiltedActivation:
    @pytest.mark.parametrize("linear", [False, True])
    @pytest.mark.parametrize("eta", [1.0, 0.8])
    @pytest.mark.parametrize("y", [-1.5, 0.2, 0.9])
    @pytest.mark.parametrize("noise", [0.09, 0.005])
    @pytest.mark.parametrize("V", [0.01, pytest.param(0.5, marks=ALL), 3.0, pytest.param(10.0, marks=ALL), 50.0])
    def test_a_fine_grid(self, V, noise, y, eta, linear):
        """For a wide cavity the likelihood changes the density within a standard deviation."""
        ours, expected = tilted(y, noise, 0, np.array([0.4, -0.2]), np.array([V, 0.6]), MU, SIGMA, eta, linear)
        deviation = np.sqrt(expected[1])
        assert ours[0] == pytest.approx(expected[0], abs=1e-10 * deviation)
        assert ours[1] == pytest.approx(expected[1], rel=1e-10)

    def test_two_modes(self):
        """The cavity prefers h < 0, the likelihood h > 0, both with uncertainty."""
        cavity, mu = (-3.0, 1.0), np.array([2.0, 0.3, 0.0])
        m, V = np.array([[cavity[0], 0.0], [cavity[1], 0.1]])
        ours, expected = tilted(0.4, 0.3, 0, m, V, mu, 0.01 * np.eye(3), 0.95)
        assert expected[1] > 2 * cavity[1]
        np.testing.assert_allclose(ours, expected, rtol=1e-10)

    def test_a_likelihood_much_narrower_than_the_cavity(self):
        for linear in (False, True):
            ours, expected = tilted(
                0.5, 1e-3, 0, np.array([0.3, 0.1]), np.array([2.0, 1e-4]), np.array([1.5, 0.4, 0.0]), 1e-5 * np.eye(3),
                0.95, linear,
            )  # fmt: skip
            assert expected[1] < 0.02  # the prior variance is 2
            np.testing.assert_allclose(ours, expected, rtol=1e-10)

    def test_a_linear_unit_with_a_known_weight_is_gaussian(self):
        m, V, v, noise, eta, y = 0.4, 0.8, 1.3, 0.2, 0.9, 1.1
        ours, _ = tilted(y, noise, 0, np.array([m]), np.array([V]), np.array([v, 0.0]), np.zeros((2, 2)), eta, True)
        precision = 1 / V + eta * v**2 / noise
        assert ours == pytest.approx(((m / V + eta * v * y / noise) / precision, 1 / precision), rel=1e-9)

    def test_a_weight_of_zero_has_no_effect(self):
        ours, _ = tilted(2.0, 0.1, 0, np.array([0.4]), np.array([0.8]), np.zeros(2), np.zeros((2, 2)), 1.0)
        assert ours == pytest.approx((0.4, 0.8), rel=1e-9)


def weight(m, V, phi, phi_V, eta, kind):
    return weight_moments(m, V, phi, phi_V, eta, kind, *np.empty((3, SCALE_NODES)))


class TestWeightPriors:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("eta", [1.0, 0.8])
    @pytest.mark.parametrize(
        ("m", "V", "phi", "phi_V"),
        [(0.3, 0.04, -2.0, 0.3), (0.0, 1.0, -9.2, 6.25), (5.0, 0.01, -2.0, 0.5),
         pytest.param(-1.5, 0.2, -3.0, 1.0, marks=ALL), pytest.param(0.02, 1e-3, -6.0, 2.0, marks=ALL),
         pytest.param(2.0, 4.0, 0.5, 0.1, marks=ALL)],
    )  # fmt: skip
    def test_two_dimensions(self, m, V, phi, phi_V, eta, kind):
        log_z, w, scale = plain.weight_moments(m, V, phi, phi_V, eta, KINDS[kind])
        found = weight(m, V, phi, phi_V, eta, kind)
        np.testing.assert_allclose(found, [log_z, *w, *scale], rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("m", "V", "phi"), [(0.3, 0.04, -2.0), (-3.0, 0.5, -12.0), (0.0, 2.0, 1.0), (40.0, 0.1, -8.0)]
    )
    def test_a_fixed_scale(self, m, V, phi, kind):
        log_z, w, _ = plain.weight_moments(m, V, phi, 0.0, 0.9, KINDS[kind])
        found = weight(m, V, phi, 0.0, 0.9, kind)
        assert found[0] == pytest.approx(log_z, rel=1e-10)
        assert found[1] == pytest.approx(w[0], rel=1e-10, abs=1e-14)
        assert found[2] == pytest.approx(w[1], rel=1e-10)
        assert found[3:] == (phi, 0.0)

    def test_a_scale_far_below_the_cavity(self):
        """Moments of a narrow Laplace density in a wide cavity, where differences would lose all digits."""
        for phi in (-14.0, -20.0, -30.0):
            _, mean, variance, _, _ = weight(-0.4, 0.5, phi, 0.0, 0.8, LAPLACE)
            assert variance == pytest.approx(np.exp(phi) / 0.64, rel=1e-3)
            assert mean == pytest.approx(-0.8 * np.exp(phi) / 0.64, rel=1e-3)

    @pytest.mark.parametrize("t", [-30.0, -3.0, 0.0, 1.0, 10.0, 36.9, 37.1, 100.0, 1e6])
    def test_mills_ratio(self, t):
        assert log_mills(t) == pytest.approx(np.log(np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2))), abs=1e-10)


class TestOutputPriors:
    @pytest.mark.parametrize(("freedom", "variance"), [(4.0, 1.0), (2.5, 0.3)])
    @pytest.mark.parametrize("eta", [1.0, 0.7])
    @pytest.mark.parametrize(
        ("m", "V"), [(1.2, 0.04), (0.1, 0.5), (-1.0, 0.3), (-3.0, 0.1), (6.0, 2.0), (2.0, 1e-4), (0.0, 30.0)]
    )
    def test_one_dimension(self, m, V, eta, freedom, variance):
        log_z, (mean, spread) = plain.output_moments(m, V, eta, freedom, variance)
        found = output_moments(m, V, eta, freedom, variance)
        np.testing.assert_allclose(found, [log_z, mean, spread], rtol=1e-10, atol=1e-11)
