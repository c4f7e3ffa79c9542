"""EP for networks: complete fits of small problems."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator
from ep_bench.methods.ep_nn import METHOD, NOISE_START, Config, problem, schedule, schedule_of, weight_groups
from ep_bench.methods.ep_nn.approximation import NetworkApproximation
from ep_bench.methods.ep_nn.initialisation import along_a_direction, start
from ep_bench.types import Rows
from tests.methods.ep_nn_support import taken
from tests.twins import plain_ep_nn as plain

QUICK = {"hidden": [3], "sweeps": 52}  # options of the conformance tests

TOLERANCE = Config().tolerance
STEPS = ("input", "output", "noise", "weight_prior", "scale", "output_prior")


def rows(n=40, seed=0):
    """Return a step function of the first of two inputs, standardised."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.tanh(1.5 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return Rows(X, (y - y.mean()) / y.std())


def fit(data=None, seed=0, **options):
    config = Config(**{"hidden": (2,), **options})
    return METHOD.fit(rows() if data is None else data, config, np.random.default_rng(seed))


@cache
def converged(**options):
    with warnings.catch_warnings(action="error"):  # a fit that does not converge warns
        state, trace = fit(**options)
    assert state.converged
    return state, trace


class TestConvergence:
    @pytest.mark.parametrize(("updates", "prior"), [("sequential", "laplace"), ("parallel", "gaussian")])
    def test_another_sweep_changes_nothing(self, updates, prior):
        """By the trace of the method, and by an undamped parallel step of the twin."""
        assert any(self.stands_still(rows(seed=seed), prior, updates) for seed in range(2))

    @pytest.mark.slow
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("prior", ["laplace", "ard", "gaussian"])
    @pytest.mark.parametrize("updates", ["sequential", "parallel"])
    def test_another_sweep_changes_nothing_on_most_data(self, updates, prior):
        """One data set of four may continue to change."""
        assert sum(self.stands_still(rows(seed=seed), prior, updates) for seed in range(4)) >= 3

    def stands_still(self, data, prior, updates):
        config = Config(hidden=(2,), prior=prior, updates=updates)
        X = np.column_stack([data.X, np.ones(len(data.y))])
        ours = NetworkApproximation(
            problem(X, data.y, config), NOISE_START, along_a_direction(X, np.random.default_rng(0))
        )
        start(ours, 0.5, 4.0)
        history, done = schedule.run(ours, schedule_of(config))
        if not done:
            return False
        assert history.sizes[-1] < TOLERANCE
        sites, prior_sites = taken(ours), ours.prior
        model = plain.Model(
            X, data.y, 2, config.fraction, noise_prior=ours.problem.noise_prior, clip=True,
            w_tau=prior_sites.tau.copy(), w_nu=prior_sites.nu.copy(), v_tau=prior_sites.output_tau.copy(),
            v_nu=prior_sites.output_nu.copy(),
        )  # fmt: skip
        new = plain.updated(model, sites)
        for names in (("tau", "nu"), ("T", "b"), ("t", "r")):
            step = sum(((getattr(new, name) - getattr(sites, name)) ** 2).sum() for name in names)
            assert np.sqrt(step / sum((getattr(new, name) ** 2).sum() for name in names)) < 2 * TOLERANCE, names
        steps = ours.sweep(0.5, 0.5, 0.5).steps
        assert (np.sqrt(steps[:, 0] / np.maximum(steps[:, 1], 1e-300)) < 1.5 * TOLERANCE).all()
        return True

    @pytest.mark.parametrize("sweeps", [1, 30, 55])
    def test_too_few_sweeps_are_reported(self, sweeps):
        with pytest.warns(ConvergenceWarning, match="relative step"):
            state, trace = fit(sweeps=sweeps)
        assert not state.converged
        assert state.n_iterations == sweeps
        assert max(trace[f"step_{name}"][-1] for name in STEPS) > TOLERANCE

    def test_converged_means_a_step_below_the_tolerance(self):
        for tolerance in (1e-2, 1e-6):
            state, trace = converged(tolerance=tolerance)
            last = [trace[f"step_{name}"][-1] for name in STEPS]
            assert max(last) < tolerance
            assert state.n_iterations < Config().sweeps
            assert max(trace[f"step_{name}"][-2] for name in STEPS) >= tolerance

    @pytest.mark.parametrize("prior", ["laplace", "ard"])
    def test_acceleration_and_updates_do_not_change_the_fixed_point(self, prior):
        found = [
            converged(prior=prior, tolerance=1e-6, sweeps=2000, **options)[0]
            for options in ({}, {"accelerate": False}, {"updates": "parallel"}, {"final_damping": 0.6})
        ]
        for one in found[1:]:
            assert one.log_evidence == pytest.approx(found[0].log_evidence, abs=2e-5)
            np.testing.assert_allclose(one.noise_mean, found[0].noise_mean, rtol=0, atol=1e-5)
            for ours, theirs in zip(METHOD.latent(one, rows().X), METHOD.latent(found[0], rows().X), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


class TestTheTrace:
    def test_names_and_lengths(self):
        state, trace = converged()
        expected = {"sum_log_z", "log_evidence", "noise_deviation", "skipped", "shortened", "negative", "clipped",
                    "negative_output", "negative_noise", "damping"}  # fmt: skip
        assert set(trace) == expected | {
            f"{quantity}_{name}" for quantity in ("step", "least_cavity") for name in STEPS
        }
        assert {len(values) for values in trace.values()} == {state.n_iterations}
        assert np.isfinite([*trace.values()]).all()
        assert trace["log_evidence"][-1] == pytest.approx(state.log_evidence, rel=1e-8)
        assert trace["noise_deviation"][-1] == pytest.approx(np.exp(0.5 * state.noise_mean))
        for name in STEPS:
            assert 0 < min(trace[f"least_cavity_{name}"]) < 1

    def test_stages(self):
        """Section 3.3.1: theta and priors fixed, then the priors of v, then theta, then those of w and phi."""
        _, trace = converged()
        for name, first in (
            ("input", 0),
            ("output", 0),
            ("output_prior", 20),
            ("noise", 40),
            ("weight_prior", 50),
            ("scale", 50),
        ):
            steps = np.array(trace[f"step_{name}"])
            assert (steps[:first] == 0).all()
            assert (steps[first : first + 5] > 0).all(), name
        np.testing.assert_allclose(trace["noise_deviation"][:40], 0.3)


OPTIONS = [
    {"updates": "parallel"}, {"prior": "ard"}, {"prior": "gaussian"}, {"start": "map"}, {"prior_updates": "once"},
    {"noise_variance": 0.02}, {"linear_units": 1}, {"clip": False}, {"release": 1e-2}, {"groups": "weight"},
    {"groups": "unit", "bias": "own"}, {"groups": (0, 1, 1)}, {"fraction": 0.7}, {"prior_fraction": 0.9},
    {"hidden": (1,)}, {"damping": 0.5, "output_damping": 0.3}, {"output_freedom": 10.0, "output_scale": 0.5},
]  # fmt: skip


class TestOptions:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_each_fits_the_step(self, options):
        data = rows()
        state, trace = converged(**options)
        assert np.isfinite(state.log_evidence)
        assert np.isfinite([*trace.values()]).all()
        mean, variance = METHOD.latent(state, data.X)
        assert (variance > 0).all()
        assert np.mean((mean - data.y) ** 2) < 0.05
        assert 0.05 < np.exp(0.5 * state.noise_mean) < 0.25

    def test_a_fixed_noise(self):
        state, trace = converged(noise_variance=0.02)
        assert np.exp(state.noise_mean) == pytest.approx(0.02)
        assert state.noise_variance == 0
        assert max(trace["step_noise"]) == 0

    def test_gaussian_priors_are_not_changed(self):
        state, trace = converged(prior="gaussian")
        assert state.scale_means.size == 0
        assert max(trace["step_weight_prior"]) == 0
        assert converged(prior="gaussian", weight_variance=0.05)[0].log_evidence != state.log_evidence

    def test_priors_updated_once_stay_at_their_fixed_point(self):
        state, trace = converged(prior_updates="once")
        assert max(trace["step_scale"]) == 0
        assert state.scale_means.shape == (1,)
        assert state.log_evidence == pytest.approx(converged()[0].log_evidence, abs=1.0)

    def test_priors_that_are_updated_once_must_converge(self, monkeypatch):
        assert converged(prior_updates="once")[0].converged
        monkeypatch.setattr(schedule, "MORE_PRIOR_SWEEPS", 2)
        with pytest.warns(ConvergenceWarning, match="priors of weights that did not converge"):
            assert not fit(prior_updates="once")[0].converged

    def test_ard_finds_the_relevant_input(self):
        state, _ = converged(prior="ard")
        first, second, _ = state.hyperparameters["weight_deviations"]
        assert first > 20 * second

    def test_clipping_is_counted(self):
        _, trace = converged()
        assert sum(trace["clipped"]) == sum(np.minimum(trace["clipped"], trace["negative"])) > 0
        assert sum(converged(clip=False)[1]["clipped"]) == 0

    def test_groups_of_a_wrong_length(self):
        with pytest.raises(ValueError, match="must have 3 entries"):
            fit(groups=(0, 1))

    def test_groups(self):
        for options, expected in (
            ({}, [[0, 0, 0], [0, 0, 0]]), ({"bias": "own"}, [[0, 0, 1], [0, 0, 1]]),
            ({"prior": "ard"}, [[0, 1, 2], [0, 1, 2]]),
            ({"groups": "unit"}, [[0, 0, 0], [1, 1, 1]]), ({"groups": "unit", "bias": "own"}, [[0, 0, 2], [1, 1, 2]]),
            ({"groups": "weight"}, [[0, 1, 2], [3, 4, 5]]), ({"groups": (0, 1, 0)}, [[0, 1, 0], [0, 1, 0]]),
        ):  # fmt: skip
            np.testing.assert_array_equal(weight_groups(Config(**options), 2, 3), expected)


class TestPredictions:
    X = np.random.default_rng(9).normal(size=(5, 2))

    def test_latent(self):
        """Appendix F."""
        state, _ = converged(linear_units=1)
        mean, variance = METHOD.latent(state, self.X)
        for x, found in zip(np.column_stack([self.X, np.ones(5)]), zip(mean, variance, strict=True), strict=True):
            h = [(x @ w, x @ S @ x) for w, S in zip(state.weight_means, state.weight_covariances, strict=True)]
            moments = [plain.activation_moments(m, V, 2, k == 0) for k, (m, V) in enumerate(h)]
            m_g, V_g = np.array([*moments, (1.0, 0.0)]).T
            expected = plain.function_moments(m_g, V_g, state.output_mean, state.output_covariance)[:2]
            np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_a_mixture_over_theta(self):
        state, _ = converged()
        m, V = METHOD.latent(state, self.X)
        found = METHOD.predict(state, self.X, np.random.default_rng(0))
        theta, variance = state.noise_mean, state.noise_variance
        np.testing.assert_allclose(found.mean(), m, rtol=1e-12)
        np.testing.assert_allclose(found.std() ** 2, V + np.exp(theta + 0.5 * variance), rtol=1e-10)
        grid = plain.around(theta, variance)
        for y in (m, m + 0.4, m - 1.0):
            logs = plain.log_normal(y[:, None], m[:, None], V[:, None] + np.exp(grid)) + plain.log_normal(
                grid, theta, variance
            )
            np.testing.assert_allclose(found.logpdf(y), logsumexp(logs, axis=1) + np.log(grid[1] - grid[0]), atol=1e-6)

    def test_a_fixed_noise_gives_one_gaussian(self):
        state, _ = converged(noise_variance=0.02)
        found = METHOD.predict(state, self.X, np.random.default_rng(0))
        assert found.means.shape == (1, 5)
        np.testing.assert_allclose(found.std() ** 2, METHOD.latent(state, self.X)[1] + 0.02, rtol=1e-12)

    def test_the_estimator(self):
        data = rows()
        model = Estimator("ep_nn", hidden=[2], random_state=0).fit(100 * data.X, 5 + 2 * data.y)
        mean, std = model.predict(100 * data.X, return_std=True)
        assert np.mean((mean - 5 - 2 * data.y) ** 2) < 0.1
        assert (std > 0.2).all()
        assert model.converged_
        assert np.isfinite(model.log_evidence_)
        f, variance = model.latent(100 * data.X)
        np.testing.assert_allclose(f, mean, rtol=1e-9)
        assert (variance < std**2).all()


@pytest.mark.parametrize("sweeps", [20, 21, 22, 41, 51])
@pytest.mark.parametrize("updates", ["sequential", "parallel"])
def test_a_fit_that_ends_just_after_a_release_has_a_posterior(sweeps, updates):
    """With large steps; the evidence may be undefined."""
    with pytest.warns(ConvergenceWarning, match="relative step"):
        state, _ = fit(rows(30, 3), hidden=(3,), sweeps=sweeps, updates=updates)
    assert np.isfinite(METHOD.predict(state, rows().X, np.random.default_rng(0)).logpdf(rows().y)).all()


class TestRestarts:
    def test_the_highest_evidence_is_kept(self):
        """The restarts are the fits that the same generator gives one after the other."""
        options = {"sweeps": 60, "updates": "parallel"}
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            rng, config = np.random.default_rng(3), Config(hidden=(2,), **options)
            single = [METHOD.fit(rows(), config, rng) for _ in range(3)]
            state, trace = fit(seed=3, restarts=3, **options)
        evidences = tuple(one.log_evidence for one, _ in single)
        assert state.start_evidences == evidences
        assert len(set(evidences)) == 3
        best = int(np.argmax(evidences))
        np.testing.assert_array_equal(state.weight_means, single[best][0].weight_means)
        assert trace == single[best][1]

    def test_a_failed_restart_is_counted(self, monkeypatch):
        run, calls = schedule.run, []

        def fails_first(*arguments):
            calls.append(1)
            if len(calls) == 1:
                raise FloatingPointError("no proper posterior")
            return run(*arguments)

        monkeypatch.setattr(schedule, "run", fails_first)
        with pytest.warns(ConvergenceWarning):
            state, _ = fit(restarts=2, sweeps=10)
        assert state.start_evidences == (-np.inf, state.log_evidence)
        monkeypatch.setattr(schedule, "run", lambda *_: fails_first())
        calls.clear()
        with pytest.raises(FloatingPointError, match="no proper posterior"):
            fit(restarts=1)


def test_the_evidence_criterion_ends_a_fit_earlier_at_the_same_evidence():
    slow = {"tolerance": 1e-8, "sweeps": 2000, "accelerate": False, "final_damping": 0.1}
    strict, _ = converged(**slow)
    state, trace = converged(**slow, stop="evidence")
    assert (strict.criterion, state.criterion) == ("step", "evidence")
    assert state.n_iterations < strict.n_iterations
    assert np.ptp(trace["log_evidence"][-51:]) <= 0.1
    assert state.log_evidence == pytest.approx(strict.log_evidence, abs=0.1)
