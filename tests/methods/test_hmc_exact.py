"""Hamiltonian Monte Carlo with known results: linear models, the integrator, the orbits of rectified units."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from ep_bench.methods import hmc
from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.adaptation import RunningCurvature, pooled
from ep_bench.methods.hmc.model import log_joint
from ep_bench.methods.hmc.trajectory import leapfrog
from ep_bench.models import mlp, rectified, residuals
from ep_bench.types import Rows
from tests.methods.hmc_support import TOLERANCE, by_chain, distance, small_model
from tests.twins import plain_networks as plain


def linear_rows(seed=0, n=12, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ np.array([[1.0, 0.8], [0.0, 0.6]])  # correlated inputs
    return Rows(X, X @ [0.7, -1.0] + 0.4 + 0.6 * rng.normal(size=n))


def design(X):
    return np.column_stack([X, np.ones(len(X))])


def posterior(A, y, noise, prior):
    """Return mean and covariance of the weights given both variances."""
    covariance = np.linalg.inv(A.T @ A / noise + np.eye(A.shape[1]) / prior)
    return covariance @ A.T @ y / noise, covariance


def assert_moments(state, mean, covariance):
    """Return the errors of mean and covariance of the draws of weights, in standard errors."""
    W = by_chain(state, state.W)
    for i in range(len(mean)):
        assert distance(W[:, :, i], mean[i]) < TOLERANCE, i
        for j in range(i + 1):
            products = (W[:, :, i] - mean[i]) * (W[:, :, j] - mean[j])
            assert distance(products, covariance[i, j]) < TOLERANCE, (i, j)


SAMPLING = {"hidden": (), "chains": 4, "samples": 2500, "warmup": 200, "steps": 8, "stored": 10_000}


class TestLinearModels:
    @pytest.mark.parametrize("prior", ["gaussian", "ard"])
    def test_known_variances(self, prior):
        train = linear_rows()
        config = hmc.Config(**SAMPLING, prior=prior, noise_variance=0.3, prior_variance=2.0)
        state, _ = hmc.fit(train, config, np.random.default_rng(1))
        assert np.all(state.noise_variance == 0.3)
        assert np.all(state.prior_variance == 2.0)
        assert state.diagnostics["r_hat_predictions"] < 1.01
        assert_moments(state, *posterior(design(train.X), train.y, 0.3, 2.0))

    def test_sampled_variances_against_quadrature(self):
        """Quadrature over logarithms of both variances; the weights are integrated out in closed form."""
        train, a_w, b_w, a_n, b_n = linear_rows(1), 2.0, 1.5, 2.5, 0.7
        config = hmc.Config(**SAMPLING, weight_prior=(a_w, b_w), noise_prior=(a_n, b_n))
        state, _ = hmc.fit(train, config, np.random.default_rng(2))
        A, y = design(train.X), train.y
        log_noise, log_prior = np.linspace(-6, 4, 161), np.linspace(-5, 8, 161)
        eigenvalues, vectors = np.linalg.eigh(A @ A.T)  # of the covariance of y without the noise
        turned = vectors.T @ y
        density, means, seconds = np.empty((161, 161)), np.empty((161, 161, 3)), np.empty((161, 161, 3, 3))
        for i, s2 in enumerate(np.exp(log_noise)):
            for j, v in enumerate(np.exp(log_prior)):
                marginal = plain.log_normal(turned, 0.0, s2 + v * eigenvalues).sum()
                density[i, j] = marginal - a_n * np.log(s2) - b_n / s2 - a_w * np.log(v) - b_w / v
                means[i, j], covariance = posterior(A, y, s2, v)
                seconds[i, j] = covariance + np.outer(means[i, j], means[i, j])
        weights = np.exp(density - density.max())
        weights /= weights.sum()
        assert max(weights[0].sum(), weights[-1].sum(), weights[:, 0].sum(), weights[:, -1].sum()) < 1e-7
        mean = np.einsum("ij,ijk->k", weights, means)
        assert_moments(state, mean, np.einsum("ij,ijkl->kl", weights, seconds) - np.outer(mean, mean))
        for draws, grid, of in (
            (state.noise_variance, log_noise, weights.sum(axis=1)),
            (state.prior_variance[:, 0], log_prior, weights.sum(axis=0)),
        ):
            logs = by_chain(state, np.log(draws))
            for power in (1, 2):
                assert distance(logs**power, of @ grid**power) < TOLERANCE
            assert distance(logs > of @ grid, of[grid > of @ grid].sum()) < TOLERANCE + 1  # the grid's own step


def moved(model, w, p, step, count, *, is_single=False):
    """Return the end of a trajectory and the change of the energy; inverse masses differ between weights."""
    w, p, P = w.copy(), p.copy(), len(w)
    tau, inverse_mass = np.linspace(0.5, 2.0, P), np.linspace(1.5, 0.5, P)
    work = residuals.workspace(model.rows.layers, model.rows.kind)
    single = rectified.single_precision(model.rows.X, model.rows.y, model.rows.layers) if is_single else None
    change, error, gradients = leapfrog(model.rows, w, p, 3.0, tau, inverse_mass, step, count, work, single)
    assert gradients == count + (3 if is_single else 1)
    f = plain.outputs(
        model.rows.X, w, (*model.rows.layers[:, 1], 1), activation=list(residuals.ACTIVATIONS)[model.rows.kind]
    )
    assert error == pytest.approx(0.5 * np.sum((f - model.rows.y) ** 2), rel=1e-10)
    return w, p, change


def start_of(model, seed=3):
    rng = np.random.default_rng(seed)
    P = mlp.count(model.rows.layers)
    return rng.normal(size=P), rng.normal(size=P)


class TestIntegrator:
    @pytest.mark.parametrize("activation", ["tanh", "probit"])
    @pytest.mark.parametrize("hidden", [(3,), (9,), (4, 3)])
    def test_the_error_of_the_energy_is_quadratic_in_the_step(self, activation, hidden):
        model = small_model(hidden=hidden, rows=20, activation=activation)
        errors = [moved(model, *start_of(model), 1.0 / n, n)[2] for n in (200, 400, 800)]
        np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=0.02)

    @pytest.mark.parametrize(
        ("activation", "is_single"), [*((name, False) for name in residuals.ACTIVATIONS), ("relu", True)]
    )
    def test_a_trajectory_is_reversible(self, activation, is_single):
        """Rounded gradients are a function of the weights too, so the way back is as exact as in double precision."""
        model = small_model(hidden=(9,), rows=20, activation=activation)
        w, p = start_of(model)
        there, momentum, change = moved(model, w, p, 0.02, 40, is_single=is_single)
        assert np.linalg.norm(there - w) > 0.5
        back, turned, other = moved(model, there, -momentum, 0.02, 40, is_single=is_single)
        np.testing.assert_allclose(back, w, rtol=0, atol=1e-9)
        np.testing.assert_allclose(turned, -p, rtol=0, atol=1e-9)
        assert other == pytest.approx(-change, abs=1e-8)

    def test_volume_is_preserved(self):
        model = small_model(d=1, hidden=(2,), rows=4)
        w, p = start_of(model)
        point, P, h = np.concatenate([w, p]), len(w), 1e-4

        def end(at):
            return np.concatenate(moved(model, at[:P], at[P:], 0.1, 7)[:2])

        def slope(h):
            return np.array([(end(point + h * e) - end(point - h * e)) / (2 * h) for e in np.eye(2 * P)])

        assert np.linalg.det((4 * slope(h / 2) - slope(h)) / 3) == pytest.approx(1.0, abs=1e-8)

    def test_single_precision_changes_a_trajectory_by_rounding_only(self):
        """The energy of the end is that of double precision, whatever the gradients."""
        model = small_model(hidden=(9,), rows=50, activation="relu")
        start = start_of(model)
        (w, p, change), (near, momentum, other) = (
            moved(model, *start, 1e-3, 30, is_single=one) for one in (False, True)
        )
        assert 0.0 < np.abs(near - w).max() < 1e-6
        assert 0.0 < np.abs(momentum - p).max() < 1e-3
        assert other == pytest.approx(change, abs=1e-2)

    def test_a_divergent_trajectory(self):
        model = small_model(hidden=(9,), rows=20, activation="relu")
        w, p = start_of(model)
        work, ones = residuals.workspace(model.rows.layers, model.rows.kind), np.ones(len(w))
        change, _, gradients = leapfrog(model.rows, w, p, 3.0, ones, ones, 50.0, 100, work, None)
        assert change == np.inf
        assert gradients < 101


class TestCurvature:
    @pytest.mark.parametrize("activation", residuals.ACTIVATIONS)
    @pytest.mark.parametrize("hidden", [(), (3,), (4, 3)])
    def test_the_mean_is_the_squared_norm_of_the_columns_of_the_jacobian(self, activation, hidden):
        """Draws of weights count as often as they have probes; the variance of a probe is twice its squared mean."""
        model, rng = small_model(hidden=hidden, rows=20, activation=activation), np.random.default_rng(4)
        X, _, layers, kind = model.rows
        probes, h = (1000, 3000), 1e-5
        draws = start_of(model)
        found, squares = RunningCurvature(len(draws[0])), []
        for w, count in zip(draws, probes, strict=True):
            found.add(model.rows, w, residuals.workspace(layers, model.rows.kind), rng, count)
            steps = h * np.eye(len(w))
            up, down = (residuals.outputs(X, ends, layers, kind) for ends in (w + steps, w - steps))
            squares.append(np.sum(((up - down) / (2 * h)) ** 2, axis=1))
        expected = np.average(squares, axis=0, weights=probes)
        error = np.sqrt(2 * np.average(np.square(squares), axis=0, weights=probes) / sum(probes))
        assert np.all(np.abs(found.mean() - expected) <= TOLERANCE * error + 1e-9)
        assert np.mean(expected > 0) > 0.5


def pooled_by_roles(curvature, sizes):
    """Return the means over all units of weights that have the same role: (layer, input or any unit, or bias)."""
    roles = []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        roles += [(layer, i if layer == 0 else "unit") for i in range(n_in) for _ in range(n_out)]
        roles += [(layer, "bias")] * n_out
    return np.array(
        [np.mean([c for c, other in zip(curvature, roles, strict=True) if other == role]) for role in roles]
    )


class TestPooledCurvature:
    @pytest.mark.parametrize("sizes", [(3, 1), (3, 5, 1), (2, 4, 3, 1)])
    def test_means_over_weights_of_the_same_role(self, sizes):
        layers = mlp.layout(sizes[0], sizes[1:-1])
        curvature = np.random.default_rng(0).gamma(1.0, size=mlp.count(layers))
        before = curvature.copy()
        found = pooled(curvature, layers)
        np.testing.assert_allclose(found, pooled_by_roles(curvature, sizes), rtol=1e-14)
        np.testing.assert_array_equal(curvature, before)
        assert len(np.unique(found)) == sizes[0] + 1 + 2 * (len(sizes) - 2)


class TestLogJoint:
    @pytest.mark.parametrize(("prior", "scales"), [("gaussian", "one"), ("gaussian", "layer"), ("ard", "one")])
    @pytest.mark.parametrize("given", [{}, {"noise_variance": 0.4}, {"prior_variance": 1.3}])
    def test_the_sum_of_densities_by_scipy(self, prior, scales, given):
        model = small_model(prior=prior, scales=scales, weight_prior=(2.0, 0.7), noise_prior=(1.5, 0.2), **given)
        rng, w = np.random.default_rng(0), start_of(model)[0]
        groups = model.group.max() + 1
        noise = given.get("noise_variance", 0.8)
        v = np.full(groups, given["prior_variance"]) if "prior_variance" in given else rng.gamma(3.0, size=groups)
        f = plain.outputs(model.rows.X, w, (2, 3, 1), activation="tanh")
        expected = stats.norm.logpdf(model.rows.y, f, np.sqrt(noise)).sum()
        expected += stats.norm.logpdf(w, 0.0, np.sqrt(v[model.group])).sum()
        if "noise_variance" not in given:
            expected += stats.invgamma.logpdf(noise, 1.5, scale=0.2)
        if "prior_variance" not in given:
            expected += stats.invgamma.logpdf(v, 2.0, scale=0.7).sum()
        assert log_joint(model, w, 0.5 * np.sum((f - model.rows.y) ** 2), noise, v) == pytest.approx(expected)


class TestGroups:
    def test_of_inputs_and_layers(self):
        layers = mlp.layout(2, (3, 4))
        np.testing.assert_array_equal(hyperparameters.groups(layers, "gaussian", "one"), np.zeros(9 + 16 + 5))
        np.testing.assert_array_equal(hyperparameters.groups(layers, "gaussian", "layer"), [0] * 9 + [1] * 16 + [2] * 5)
        expected = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 16 + [4] * 5
        np.testing.assert_array_equal(hyperparameters.groups(layers, "ard", "one"), expected)

    def test_without_hidden_layers(self):
        layers = mlp.layout(3, ())
        np.testing.assert_array_equal(hyperparameters.groups(layers, "gaussian", "layer"), [0, 0, 0, 0])
        np.testing.assert_array_equal(hyperparameters.groups(layers, "ard", "one"), [0, 1, 2, 3])


class TestConditionals:
    """The inverse-gamma conditionals, by the Kolmogorov-Smirnov test."""

    def test_prior_variances(self):
        rng, group, w = np.random.default_rng(0), np.array([0, 0, 1, 1, 1]), np.array([1.0, -2.0, 0.5, 0.1, 3.0])
        draws = np.array([hyperparameters.draw_prior_variances(w, group, (1.2, 0.3), rng) for _ in range(4000)])
        for g, (n, squares) in enumerate([(2, 5.0), (3, 9.26)]):
            expected = stats.invgamma(1.2 + n / 2, scale=0.3 + squares / 2)
            assert stats.kstest(draws[:, g], expected.cdf).pvalue > 1e-3

    def test_density(self):
        v = np.array([0.3, 2.0])
        expected = np.sum(1.7 * np.log(0.4) - gammaln(1.7) - 2.7 * np.log(v) - 0.4 / v)
        assert hyperparameters.log_inverse_gamma(v, (1.7, 0.4)) == pytest.approx(expected)


def scale_distribution(power, incoming, outgoing):
    """Return the distribution of e^{2 t}, t with density exp(power t - incoming e^{2 t} - outgoing e^{-2 t})."""
    return stats.geninvgauss(power / 2, 2 * np.sqrt(incoming * outgoing), scale=np.sqrt(outgoing / incoming))


class TestOrbits:
    @pytest.mark.parametrize("hidden", [(1,), (9,), (4, 3), (9, 17, 5)])
    def test_outputs_do_not_change(self, hidden):
        rng, layers = np.random.default_rng(0), mlp.layout(3, hidden)
        X, w = rng.normal(size=(30, 3)), rng.normal(size=mlp.count(layers))
        before = w.copy()
        tau = rng.gamma(2.0, size=len(w))
        for _ in range(5):
            hyperparameters.rescale(w, layers, tau, rng)
        assert np.mean(np.abs(w / before - 1) > 1e-3) > 0.7
        sizes = (3, *hidden, 1)
        np.testing.assert_allclose(plain.outputs(X, w, sizes), plain.outputs(X, before, sizes), rtol=1e-11, atol=1e-12)

    def test_smooth_units_and_output_biases_have_no_orbit(self):
        w, layers = np.arange(1.0, 5.0), mlp.layout(3, ())
        hyperparameters.rescale(w, layers, np.ones(4), np.random.default_rng(0))
        np.testing.assert_array_equal(w, np.arange(1.0, 5.0))

    @pytest.mark.parametrize(
        ("power", "incoming", "outgoing"), [(2, 0.5, 3.0), (-47, 2.0, 30.0), (13, 40.0, 1e-3), (0, 1, 1)]
    )
    def test_one_update_leaves_the_distribution_invariant(self, power, incoming, outgoing):
        rng, n = np.random.default_rng(1), 5000
        expected = scale_distribution(power, incoming, outgoing)
        z = expected.rvs(n, random_state=rng)
        t = hyperparameters._slice_update(float(power), incoming * z, outgoing / z, rng)
        assert np.mean(t == 0.0) == 0.0
        assert stats.kstest(z * np.exp(2 * t), expected.cdf).pvalue > 1e-3

    def test_updates_converge_from_a_distant_start(self):
        """Thousands of independent units with the same weights, which are wrong by a factor of 1,000."""
        units, rng, layers = 5000, np.random.default_rng(2), mlp.layout(2, (5000,))
        u, v, tau = np.array([0.3, -1.0, 0.7]) * 1e3, 0.9e-3, np.array([2.0, 0.5, 1.0])
        w = np.concatenate([np.repeat(u, units), np.full(units, v), [1.0]])
        precisions = np.concatenate([np.repeat(tau, units), np.full(units, 1.7), [1.0]])
        for _ in range(12):
            hyperparameters.rescale(w, layers, precisions, rng)
        expected = scale_distribution(3 - 1, 0.5 * np.sum(tau * u**2), 0.5 * 1.7 * v**2)
        assert stats.kstest((w[:units] / u[0]) ** 2, expected.cdf).pvalue > 1e-3
        np.testing.assert_allclose(w[:units] * w[3 * units : 4 * units], u[0] * v)
