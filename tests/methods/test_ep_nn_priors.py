"""EP for networks: sites of the priors against numerical integration, and the evidence with all priors released."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.ep_nn.prior_sweeps import output_priors, weight_priors
from ep_bench.methods.ep_nn.priors import GAUSSIAN, LAPLACE
from ep_bench.methods.ep_nn.sites import OUTPUT_PRIOR, SHORTENED, SKIPPED_PRIORS, NetworkPosterior, PriorSites, record
from tests.methods.ep_nn_support import approximation, settle, taken, tiny
from tests.methods.test_ep_nn_fixed_points import derivative
from tests.twins import plain_ep_nn as plain

KINDS = {LAPLACE: plain.log_laplace, GAUSSIAN: plain.log_gaussian}
KIND = pytest.mark.parametrize("kind", KINDS, ids=["laplace", "gaussian"])
KNOWN = 1e-9  # variance of an almost fixed scale


class OneUnit:
    """Return input weights of one unit under a likelihood N(w | m, V), and the sites of their priors."""

    def __init__(self, m, V, phi, phi_V, groups=(0,)):
        D, L = len(groups), max(groups) + 1
        self.m, self.V, self.scale, self.groups = np.array(m), np.array(V), (phi, phi_V), np.array([groups])
        sites = np.zeros((4, 1, D))
        sites[0] = 0.1
        self.prior = PriorSites(*sites, np.zeros(2), np.zeros(2))
        mean, S = plain.usual(*self.likelihood_and(0.1))
        scales = np.array([np.full(L, 1 / phi_V), np.full(L, phi / phi_V)])
        self.post = NetworkPosterior(mean[None], S[None], np.zeros(2), np.zeros((2, 2)), np.zeros(2), scales)

    def likelihood_and(self, tau):
        P, r = plain.natural(self.m, self.V)
        return P + tau * np.eye(len(r)), r

    def sweep(self, kind, eta, damping=1.0, times=1):
        for _ in range(times):
            counters = record()
            weight_priors(self.groups, self.prior, self.post, eta, damping, kind, counters)
        return counters

    def weight(self, j):
        return self.post.weight_mean[0, j], self.post.weight_covariance[0, j, j]

    def phi(self, l=0):
        precision, location = self.post.scales[:, l]
        return location / precision, 1 / precision

    def assert_q_is_its_sites(self):
        P, r = self.likelihood_and(0.0)
        mean, S = plain.usual(P + np.diag(self.prior.tau[0]), r + self.prior.nu[0])
        np.testing.assert_allclose(self.post.weight_mean[0], mean, rtol=1e-9)
        np.testing.assert_allclose(self.post.weight_covariance[0], S, rtol=1e-9, atol=1e-14)
        for l in range(self.post.scales.shape[1]):
            mine = self.groups[0] == l
            phi, phi_V = self.scale
            precision = 1 / phi_V + self.prior.scale_precision[0, mine].sum()
            location = phi / phi_V + self.prior.scale_location[0, mine].sum()
            np.testing.assert_allclose(self.post.scales[:, l], [precision, location], rtol=1e-12)

    def assert_moments_match(self, kind, eta, tolerance):
        """(28): each cavity times its prior to the power eta has the moments of q."""
        for j, l in enumerate(self.groups[0]):
            cavity = plain.without(self.weight(j), (self.prior.tau[0, j], self.prior.nu[0, j]), eta)
            scale_site = self.prior.scale_precision[0, j], self.prior.scale_location[0, j]
            scale_cavity = plain.without(self.phi(l), scale_site, eta)
            _, w, phi = plain.weight_moments(*cavity, *scale_cavity, eta, KINDS[kind])
            np.testing.assert_allclose([*self.weight(j), *self.phi(l)], [*w, *phi], rtol=tolerance, atol=tolerance)


class TestOneWeight:
    @KIND
    @pytest.mark.parametrize(("m", "V", "phi"), [(0.4, 0.04, -3.0), (-0.02, 0.01, -5.0), (2.0, 0.3, -4.0)])
    def test_a_fixed_scale(self, kind, m, V, phi):
        one = OneUnit([m], [[V]], phi, KNOWN)
        one.sweep(kind, 1.0)
        _, (mean, variance), _ = plain.weight_moments(m, V, phi, 0.0, 1.0, KINDS[kind])
        np.testing.assert_allclose(one.weight(0), [mean, variance], rtol=1e-7)
        one.assert_q_is_its_sites()

    @KIND
    @pytest.mark.parametrize("damping", [1.0, 0.4])
    @pytest.mark.parametrize(("m", "V", "phi", "phi_V"), [(0.4, 0.04, -3.0, 1.0), (-1.5, 0.1, -5.0, 2.0)])
    def test_a_learned_scale(self, kind, damping, m, V, phi, phi_V):
        """With eta = 1 EP is exact: moments of w and phi by integration over both."""
        one = OneUnit([m], [[V]], phi, phi_V)
        one.sweep(kind, 1.0, damping, 1 if damping == 1.0 else 60)
        _, w, scale = plain.weight_moments(m, V, phi, phi_V, 1.0, KINDS[kind])
        np.testing.assert_allclose([*one.weight(0), *one.phi()], [*w, *scale], rtol=1e-7)
        one.assert_q_is_its_sites()

    @KIND
    def test_a_fraction(self, kind):
        one = OneUnit([0.4], [[0.1]], -3.0, 1.0)
        one.sweep(kind, 0.8, 1.0, 60)
        one.assert_moments_match(kind, 0.8, 1e-7)
        one.assert_q_is_its_sites()

    def test_a_damped_step(self):
        whole, part = OneUnit([0.4], [[0.1]], -3.0, 1.0), OneUnit([0.4], [[0.1]], -3.0, 1.0)
        steps = whole.sweep(LAPLACE, 0.8).steps
        assert (steps == part.sweep(LAPLACE, 0.8, 0.25).steps).all()
        for to, ours in zip(whole.prior[:4], part.prior[:4], strict=True):
            start = 0.1 if to is whole.prior.tau else 0.0
            np.testing.assert_allclose(ours - start, 0.25 * (to - start), rtol=1e-12)
        part.assert_q_is_its_sites()


class TestManyWeights:
    m = np.array([0.5, -0.03, 1.2, 0.1])
    V = 0.02 * (np.eye(4) + 0.4 * np.ones((4, 4)))

    @KIND
    @pytest.mark.parametrize("groups", [(0, 0, 0, 0), (0, 1, 1, 2)])
    def test_every_site_matches(self, kind, groups):
        one = OneUnit(self.m, self.V, -3.0, 1.5, groups)
        counters = one.sweep(kind, 0.8, 1.0, 80)
        assert (counters.steps[3:5, 0] < 1e-18 * counters.steps[3:5, 1]).all()
        assert counters.counts[SKIPPED_PRIORS] == counters.counts[SHORTENED] == 0
        one.assert_moments_match(kind, 0.8, 1e-6)
        one.assert_q_is_its_sites()

    def test_a_group_depends_on_its_own_weights_only(self):
        found = []
        for other in (1.2, 9.0):
            one = OneUnit([0.5, other], np.diag([0.1, 0.1]), -3.0, 1.5, (0, 1))
            one.sweep(LAPLACE, 0.8, 1.0, 40)
            found.append((one.weight(0), one.phi(0), one.phi(1)))
        assert found[0][:2] == found[1][:2]
        assert found[1][2][0] > found[0][2][0]

    def test_small_weights_with_a_common_scale_shrink_more(self):
        m = np.array([0.5, 0.01, 0.02, -0.01])
        alone, shared = OneUnit(m, self.V, -3.0, 4.0, (0, 1, 2, 3)), OneUnit(m, self.V, -3.0, 4.0, (0, 0, 0, 0))
        for one in (alone, shared):
            one.sweep(GAUSSIAN, 0.8, 1.0, 80)
        assert shared.phi()[0] < alone.phi()[0]
        assert abs(shared.weight(0)[0]) < abs(alone.weight(0)[0])

    def test_sites_without_a_proper_cavity_are_skipped(self):
        one = OneUnit([0.5], [[0.1]], -3.0, 1.0)
        one.prior.scale_precision[:] = 5.0  # more precision than q(phi) has
        before = [array.copy() for array in one.prior]
        assert one.sweep(LAPLACE, 0.9).counts[SKIPPED_PRIORS] == 1
        for old, new in zip(before, one.prior, strict=True):
            np.testing.assert_array_equal(old, new)


def output(P, r, eta, prior_tau=1.0):
    """Return q(v) with K + 1 entries after EP on the truncated priors."""
    K1 = len(r)
    tau, nu = np.full(K1, prior_tau), np.zeros(K1)
    tau[-1] = 1.0
    prior = PriorSites(*np.zeros((4, 1, 1)), tau, nu)
    post = NetworkPosterior(
        np.zeros((1, 1)), np.ones((1, 1, 1)), np.empty(K1), np.empty((K1, K1)), np.zeros(2), np.ones((2, 1))
    )
    counters = record()
    assert output_priors(P, r, prior, post, eta, 4.0, 1.0, 200, 1e-12, counters)
    return prior, post, counters


class TestOutputPriors:
    @pytest.mark.parametrize("m", [1.5, 0.1, -1.0])
    def test_one_weight_and_the_bias(self, m):
        """With eta = 1 exact: the weight by integration, the bias by its regression on the weight."""
        P, r = plain.natural(np.array([m, 0.3]), np.array([[0.3, 0.1], [0.1, 0.2]]))
        _, post, _ = output(P, r, 1.0)
        mean, S = plain.usual(P + np.diag([0.0, 1.0]), r)
        _, (v, variance) = plain.output_moments(mean[0], S[0, 0], 1.0)
        slope = S[0, 1] / S[0, 0]
        np.testing.assert_allclose(post.output_mean, [v, mean[1] + slope * (v - mean[0])], rtol=1e-8)
        bias = S[1, 1] - slope * S[0, 1] + slope**2 * variance
        expected = [[variance, slope * variance], [slope * variance, bias]]
        np.testing.assert_allclose(post.output_covariance, expected, rtol=1e-7)
        assert v > 0

    def test_more_weights(self):
        rng, eta = np.random.default_rng(0), 0.7
        root = rng.normal(size=(4, 9))
        P, r = root @ root.T, np.array([4.0, -6.0, 9.0, 1.0])
        prior, post, counters = output(P, r, eta)
        for k in range(3):
            marginal = post.output_mean[k], post.output_covariance[k, k]
            cavity = plain.without(marginal, (prior.output_tau[k], prior.output_nu[k]), eta)
            np.testing.assert_allclose(marginal, plain.output_moments(*cavity, eta)[1], rtol=1e-7)
        mean, S = plain.usual(P + np.diag(prior.output_tau), r + prior.output_nu)
        np.testing.assert_allclose(post.output_mean, mean, rtol=1e-9)
        np.testing.assert_allclose(post.output_covariance, S, rtol=1e-9, atol=1e-12)
        assert prior.output_tau[3] == 1.0  # of v_0, whose prior is a Gaussian
        assert (counters.steps[OUTPUT_PRIOR] > 0).all()


def one_weight(kind, slack, prior_eta=1.0):
    """y = 1.3 w + 0.2 + noise of known variance as a network: one linear unit, the constant as only input."""
    y = np.array([0.9, 0.4, 1.1, 0.7])
    tau = np.full(2, 1 / slack)
    model = plain.Model(
        np.ones((4, 1)), y, 1, 0.9, np.log(0.3), linear=(True,), w_tau=np.ones((1, 1)), w_nu=np.zeros((1, 1)),
        v_tau=tau, v_nu=tau * [1.3, 0.2],
    )  # fmt: skip
    ours = approximation(model, kind=kind, scale_prior=(-2.0, 1.2), prior_eta=prior_eta)
    ours.released.weights = True
    return model, ours


class TestTheEvidence:
    @KIND
    def test_of_one_weight_and_its_scale(self, kind):
        """Against integration over w and phi, for an almost known output layer."""
        model, ours = one_weight(kind, 1e-7)
        settle(ours, 1.0, tolerance=1e-8)
        precision = 4 * 1.3**2 / 0.3
        w = 1.3 * (model.y - 0.2).sum() / 0.3 / precision
        best = plain.log_normal(model.y, 0.2 + 1.3 * w, 0.3).sum()
        log_z, moments, scale = plain.weight_moments(w, 1 / precision, -2.0, 1.2, 1.0, KINDS[kind])
        expected = best + log_z + 0.5 * np.log(2 * np.pi / precision)
        assert ours.evidence()[0] == pytest.approx(expected, abs=1e-5)
        np.testing.assert_allclose(
            [ours.post.weight_mean[0, 0], ours.post.weight_covariance[0, 0, 0]], moments, rtol=1e-5
        )
        np.testing.assert_allclose(ours.post.scales[1] / ours.post.scales[0], scale[0], rtol=1e-5)

    @KIND
    @pytest.mark.parametrize(
        "groups", [0, pytest.param([[0, 1, 2], [0, 1, 2]], marks=pytest.mark.exhaustive)], ids=["common", "input"]
    )
    def test_of_everything_released(self, kind, groups):
        model = tiny(noise=None, noise_prior=(-2.4, 0.3))
        groups = np.zeros((2, 3), np.int64) + groups
        ours = approximation(model, kind=kind, groups=groups, scale_prior=(-1.5, 0.8))
        ours.released.weights = ours.released.outputs = True
        settle(ours, 0.3, tolerance=1e-8)
        prior, post = ours.prior, ours.post
        model.w_tau, model.w_nu, model.v_tau, model.v_nu = prior.tau, prior.nu, prior.output_tau, prior.output_nu
        expected, log_z = plain.log_evidence(model, taken(ours), fixed_w=False, fixed_v=False)
        phis = [(location / precision, 1 / precision) for precision, location in post.scales.T]
        expected += sum(plain.psi(*phi) - plain.psi(-1.5, 0.8) for phi in phis)
        for k, j in np.ndindex(2, 3):
            marginal = post.weight_mean[k, j], post.weight_covariance[k, j, j]
            sites = [
                (p[k, j], q[k, j]) for p, q in ((prior.tau, prior.nu), (prior.scale_precision, prior.scale_location))
            ]
            expected += plain.weight_term(marginal, sites[0], phis[groups[k, j]], sites[1], 0.8, KINDS[kind])
        for k in range(2):
            marginal = post.output_mean[k], post.output_covariance[k, k]
            expected += plain.output_term(marginal, (prior.output_tau[k], prior.output_nu[k]), 0.8)
        np.testing.assert_allclose(ours.evidence(), [expected, log_z.sum()], rtol=0, atol=1e-7)
        self.assert_stationary(ours)

    @staticmethod
    def assert_stationary(ours):
        """The evidence is stationary in the sites of phi and theta, whose tilted moments are derivatives of ln Z."""
        for array in (ours.prior.scale_precision, ours.prior.scale_location):
            assert abs(derivative(ours, array, (1, 0))) < 1e-5
        assert abs(derivative(ours, ours.sites.noise_location, 3)) < 1e-5
        ours.prior.scale_location[1, 0] += 0.5
        assert abs(derivative(ours, ours.prior.scale_precision, (1, 0))) > 1e-4

    def test_before_and_after_release(self):
        """Prior sites equal to the initial Gaussian terms have the same effect as these."""
        model = tiny(noise=None, noise_prior=(-2.4, 0.3))
        ours = approximation(model)
        ours.sweep(0.5, 0.5, 0.5)
        expected, _ = plain.log_evidence(model, taken(ours))
        assert ours.evidence()[0] == pytest.approx(expected, abs=1e-9)
