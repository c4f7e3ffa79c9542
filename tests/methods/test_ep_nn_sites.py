"""EP for networks: updates of the likelihood's sites against a slow twin, the conditions that define them, damping."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.ep_nn.outputs import damp_output, dominant_eigenpair, output_cavity
from ep_bench.methods.ep_nn.sites import CLIPPED, NEGATIVE, SHORTENED, SKIPPED_ROWS
from tests.methods.ep_nn_support import (
    approximation,
    close,
    given_sites,
    posteriors_close,
    put,
    sites_close,
    some_sites,
    taken,
    tiny,
)  # fmt: skip
from tests.twins import plain_ep_nn as plain

NOISES = pytest.mark.parametrize("noise", [np.log(0.09), None], ids=["known", "learned"])
CLOSE = 1e-7  # grids of a fit compared with fine ones


def with_noise(noise, **changes):
    return tiny(noise=noise, noise_prior=(-2.4, 0.3), **changes)


def contradicted(clip):
    """Return the tiny problem with two data points that contradict all others, so that h has two modes."""
    model = tiny(clip=clip)
    model.y[[2, 9]] *= -1.0
    return model


class TestASweep:
    @NOISES
    @pytest.mark.parametrize("linear", [(), (True, False)])
    def test_the_twin_in_parallel(self, noise, linear):
        model = with_noise(noise, linear=linear)
        ours, sites = approximation(model), some_sites(model)
        put(ours, sites)
        posteriors_close(ours, plain.posterior(model, sites), 1e-12)
        record, expected = ours.sweep(1.0, 1.0, 1.0), plain.updated(model, sites)
        assert record.counts[SKIPPED_ROWS] == record.counts[SHORTENED] == 0
        assert record.counts[CLIPPED] == 0
        sites_close(taken(ours), expected, CLOSE)
        posteriors_close(ours, plain.posterior(model, expected), CLOSE)

    @NOISES
    @pytest.mark.parametrize("eta", [1.0, 0.6])
    def test_a_sequential_update_matches_the_tilted_moments(self, noise, eta):
        """Equation (25): the cavity times the new site to the power eta has them; with eta = 1 q itself does."""
        model, i = with_noise(noise, eta=eta), 4
        ours, sites = approximation(model, sequential=True, order=np.array([i])), some_sites(model, 1)
        put(ours, sites)
        _, h_hat, v_hat, theta_hat, (m, V, v, theta) = plain.tilted(model, sites, plain.posterior(model, sites), i)
        ours.sweep(1.0, 1.0, 1.0)
        found = taken(ours)
        for k in range(model.K):
            P, r = plain.natural(m[k], V[k])
            hat = plain.usual(P + eta * found.tau[i, k], r + eta * found.nu[i, k])
            np.testing.assert_allclose(hat, h_hat[k], rtol=CLOSE)
        P, r = plain.natural(*v)
        hat = plain.usual(P + eta * found.T[i], r + eta * found.b[i])
        close(hat[0], v_hat[0], CLOSE)
        close(hat[1], v_hat[1], CLOSE)
        if noise is None:
            P, r = plain.natural(*theta)
            np.testing.assert_allclose(plain.usual(P + eta * found.t[i], r + eta * found.r[i]), theta_hat, rtol=CLOSE)
        others = np.arange(len(model.y)) != i
        np.testing.assert_array_equal(found.tau[others], sites.tau[others])
        if eta == 1.0:
            self.assert_q(ours, model.X[i], h_hat, v_hat)

    @staticmethod
    def assert_q(ours, x, h_hat, v_hat):
        for k, (mean, variance) in enumerate(h_hat):
            assert x @ ours.post.weight_mean[k] == pytest.approx(mean, rel=CLOSE)
            assert x @ ours.post.weight_covariance[k] @ x == pytest.approx(variance, rel=CLOSE)
        close(ours.post.output_mean, v_hat[0], CLOSE)
        close(ours.post.output_covariance, v_hat[1], CLOSE)

    @NOISES
    def test_sequential_updates_use_earlier_ones(self, noise):
        """q(w_k) and q(theta) change after every data point, q(v) after the sweep."""
        model, order = with_noise(noise), np.array([3, 7, 0])
        ours, sites = approximation(model, sequential=True, order=order), some_sites(model, 2)
        put(ours, sites)
        q = plain.posterior(model, sites)
        for i in order:
            seen = plain.posterior(model, sites)
            seen.v = q.v
            _, h_hat, v_hat, theta_hat, (m, V, v, theta) = plain.tilted(model, sites, seen, i)
            for k in range(model.K):
                sites.tau[i, k], sites.nu[i, k] = plain.quotient(h_hat[k], (m[k], V[k]), model.eta)
            sites.T[i], sites.b[i] = plain.quotient(v_hat, v, model.eta)
            if noise is None:
                sites.t[i], sites.r[i] = plain.quotient(theta_hat, theta, model.eta)
        ours.sweep(1.0, 1.0, 1.0)
        sites_close(taken(ours), sites, CLOSE)

    def test_damped_input_and_noise_sites(self):
        model = with_noise(None)
        ours, sites = approximation(model), some_sites(model)
        put(ours, sites)
        new = plain.updated(model, sites)
        ours.sweep(0.3, 0.2, 0.2)
        for name in ("tau", "nu", "t", "r"):
            old = getattr(sites, name)
            close(getattr(taken(ours), name), old + 0.3 * (getattr(new, name) - old), CLOSE)

    @pytest.mark.parametrize("clip", [False, True])
    def test_negative_precisions(self, clip):
        model = contradicted(clip)
        ours, sites = approximation(model), given_sites()
        put(ours, sites)
        expected, record = plain.updated(model, sites), ours.sweep(1.0, 1.0, 1.0)
        assert record.counts[NEGATIVE] > 0
        assert record.counts[CLIPPED] == (record.counts[NEGATIVE] if clip else 0)
        assert (expected.tau < 0).any() == (not clip)
        sites_close(taken(ours), expected, 1e-5)

    def test_a_clipped_site_keeps_the_tilted_mean(self):
        model = contradicted(clip=True)
        ours, sites = approximation(model), given_sites()
        put(ours, sites)
        q = plain.posterior(model, sites)
        record = ours.sweep(1.0, 1.0, 1.0)
        rows, units = np.nonzero(taken(ours).tau == 0)
        assert len(rows) == record.counts[CLIPPED] == record.counts[NEGATIVE] > 0
        for i, k in zip(rows, units, strict=True):
            _, h_hat, _, _, (m, V, _, _) = plain.tilted(model, sites, q, i)
            assert m[k] + V[k] * model.eta * ours.sites.nu[i, k] == pytest.approx(h_hat[k][0], rel=CLOSE)
            assert h_hat[k][1] > V[k]

    def test_a_data_point_without_a_proper_cavity_is_skipped(self):
        model = tiny(eta=1.0)
        model.X[4] = model.X[5]
        sites = some_sites(model)
        sites.tau[4:6, 0] = -30.0, 40.0
        ours = approximation(model)
        put(ours, sites)
        before = taken(ours)
        assert ours.sweep(1.0, 1.0, 1.0).counts[SKIPPED_ROWS] == 1
        after = taken(ours)
        np.testing.assert_array_equal(after.tau[5], before.tau[5])
        np.testing.assert_array_equal(after.b[5], before.b[5])
        assert (after.tau[6] != before.tau[6]).all()

    def test_the_reported_steps(self):
        """Norms of the undamped change and of the new values, for any damping."""
        model = with_noise(None)
        sites = some_sites(model)
        new = plain.updated(model, sites)
        for damping in (0.1, 1.0):
            ours = approximation(model)
            put(ours, sites)
            record = ours.sweep(damping, damping, damping)
            for place, names in ((0, ("tau", "nu")), (2, ("t", "r"))):
                step = sum(((getattr(new, name) - getattr(sites, name)) ** 2).sum() for name in names)
                value = sum((getattr(new, name) ** 2).sum() for name in names)
                np.testing.assert_allclose(record.steps[place], [step, value], rtol=1e-5)


def damped(rng, K, eta, delta, old_sign, sign):
    """Return random arguments of ``damp_output`` and its result."""
    root = rng.normal(size=(K + 1, K + 3))
    Sigma, mu = root @ root.T / (K + 3), rng.normal(size=K + 1)  # of the cavity
    old, new, b_old, b_new = 0.4 * rng.normal(size=(4, K + 1))
    old *= 0.25 if old_sign < 0 else 1.0  # so that q is proper
    P, r = plain.natural(mu, Sigma)
    mean, S = plain.usual(P + eta * old_sign * np.outer(old, old), r + eta * b_old)
    found_mu, spread, cross, u = np.empty((4, K + 1))
    s, _ = output_cavity(eta, old, old_sign, b_old, mean, S, mu, found_mu, spread, cross, u)
    assert s > 0
    np.testing.assert_allclose(found_mu, mu, rtol=1e-9, atol=1e-9)
    b, alpha, beta = b_old + delta * (b_new - b_old), old.copy(), np.empty(K + 1)
    merged = damp_output(
        eta, delta, alpha, old_sign, new, sign, b, mu, S, u, s, alpha, beta, np.empty(K + 1)
    )  # in place, as in a sweep
    T = (1 - delta) * old_sign * np.outer(old, old) + delta * sign * np.outer(new, new)
    return (P, r), T, b, (merged * np.outer(alpha, alpha), beta, alpha), (new, b_new)


@pytest.mark.parametrize("old_sign", [1.0, -1.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("delta", [0.02, 0.5, 0.9, 1.0])
class TestDampedOutputSites:
    """Equations (44) and (45): a site of rank one with the mean of the damped site of rank two."""

    def test_the_mean_is_kept(self, delta, sign, old_sign):
        rng = np.random.default_rng(0)
        for K, eta in ((1, 1.0), (3, 0.95), (10, 0.5)):
            (P, r), T, b, (merged, beta, _), _ = damped(rng, K, eta, delta, old_sign, sign)
            expected = plain.usual(P + eta * T, r + eta * b)[0]
            np.testing.assert_allclose(plain.usual(P + eta * merged, r + eta * beta)[0], expected, rtol=0, atol=1e-11)
            if delta < 0.6 and K > 1:  # and only because of (45)
                assert abs(plain.usual(P + eta * merged, r + eta * b)[0] - expected).max() > 1e-4

    def test_the_precision_is_the_nearest_of_rank_one(self, delta, sign, old_sign):
        rng = np.random.default_rng(1)
        for K in (1, 3, 10):
            _, T, _, (merged, _, alpha), _ = damped(rng, K, 0.9, delta, old_sign, sign)
            values, vectors = np.linalg.eigh(T)
            j = np.argmax(abs(values))
            np.testing.assert_allclose(merged, values[j] * np.outer(vectors[:, j], vectors[:, j]), rtol=0, atol=1e-13)
            assert alpha[-1] >= 0  # a unique choice of alpha and -alpha


@pytest.mark.parametrize("old_sign", [1.0, -1.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_undamped_step_gives_the_new_site(sign, old_sign):
    _, _, _, (merged, beta, _), (new, b_new) = damped(np.random.default_rng(2), 4, 0.8, 1.0, old_sign, sign)
    np.testing.assert_allclose(merged, sign * np.outer(new, new), rtol=0, atol=1e-14)
    np.testing.assert_allclose(beta, b_new, rtol=0, atol=1e-13)


def test_from_an_empty_site():
    alpha, beta, new, b = np.zeros(3), np.zeros(3), np.array([0.3, -0.5, 1.0]), np.array([0.2, 0.1, -0.4])
    mu, S = np.array([1.0, 2.0, 0.1]), np.diag([0.2, 0.3, 0.4])
    sign = damp_output(0.9, 0.25, alpha, 1.0, new, 1.0, 0.25 * b, mu, S, np.zeros(3), 1 / 0.9, alpha, beta, np.empty(3))
    assert sign == 1.0
    np.testing.assert_allclose(alpha, 0.5 * new, rtol=1e-14)
    np.testing.assert_allclose(beta, 0.25 * b, rtol=1e-13)


def test_eigenvalue_of_largest_magnitude():
    rng = np.random.default_rng(5)
    for _ in range(50):
        root = rng.normal(size=(2, 2))
        A = root @ root.T @ np.diag(rng.choice([1.0, -1.0], 2))  # with real eigenvalues
        value, *vector = dominant_eigenpair(*A.ravel())
        values = np.linalg.eigvals(A)
        assert value == pytest.approx(values[np.argmax(abs(values))].real, rel=1e-9)
        np.testing.assert_allclose(A @ vector, value * np.array(vector), atol=1e-12 * np.linalg.norm(vector) + 1e-13)
