"""EP for networks: initial values, improper posteriors, and convergence to the fixed point."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linprog

from ep_bench.methods.ep_nn import posterior, schedule
from ep_bench.methods.ep_nn.acceleration import Accelerator
from ep_bench.methods.ep_nn.initialisation import along_a_direction, log_posterior, start, start_at_maximum
from ep_bench.methods.ep_nn.sites import GROUPS, SHORTENED, empty, record
from tests.methods.ep_nn_support import (
    PLAN,
    approximation,
    close,
    posteriors_close,
    put,
    settle,
    some_sites,
    stub,
    taken,
    tiny,
)
from tests.twins import plain_ep_nn as plain


class TestStarts:
    def test_priors_of_section_3_3_1(self):
        ours = approximation(tiny())
        start(ours, 0.5, 4.0)
        prior = ours.prior
        np.testing.assert_allclose(1 / prior.tau, [[0.5, 0.5, 4.0]] * 2)
        np.testing.assert_allclose(1 / prior.output_tau, [0.04, 0.04, 1.0])
        np.testing.assert_allclose(prior.output_nu / prior.output_tau, [1.0, 2.0, 0.0])
        assert not prior.nu.any()
        np.testing.assert_allclose(ours.post.output_mean, [1.0, 2.0, 0.0])

    def test_gradient_of_the_log_posterior(self):
        model, rng = tiny(linear=(True, False)), np.random.default_rng(2)
        ours, point = approximation(model), 0.5 * rng.normal(size=9)
        arguments = model.X, model.y, ours.problem.linear, 0.09, ours
        value, gradient = log_posterior(point, *arguments)
        numeric = approx_fprime(point, lambda at: log_posterior(at, *arguments)[0], 1e-7)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-3)
        w, v = point[:6].reshape(2, 3), point[6:]
        g = [plain.activation(model.X @ w[k], 2, k == 0) for k in range(2)]
        f = v[0] * g[0] + v[1] * g[1] + v[2]
        expected = ((model.y - f) ** 2).sum() / 0.18 + (model.w_tau * w**2).sum() / 2
        expected += (model.v_tau * (v - model.v_nu / model.v_tau) ** 2).sum() / 2
        assert value == pytest.approx(expected, rel=1e-12)

    def test_the_gradient_is_zero_at_the_maximum(self):
        model = tiny()
        ours, before = approximation(model), approximation(model)
        start_at_maximum(ours, np.random.default_rng(0))
        point = np.concatenate([(ours.prior.nu / ours.prior.tau).ravel(), ours.prior.output_nu / ours.prior.output_tau])
        point[-1] = 0.0  # the bias keeps its prior; its optimum follows
        np.testing.assert_array_equal(ours.prior.tau, before.prior.tau)
        assert (point[6:8] > 0).all()
        arguments = model.X, model.y, ours.problem.linear, 0.09, before
        assert log_posterior(point, *arguments)[0] < 0.2 * log_posterior(np.zeros(9), *arguments)[0]

    def test_theta_is_released_at_the_given_moments(self):
        ours = approximation(tiny(noise=None, noise_prior=(-9.2, 4.0)))
        ours.release_noise(-2.4, 0.2)
        assert ours.refresh()
        np.testing.assert_allclose(ours.post.noise, [-2.4, 0.2], rtol=1e-12)
        assert np.ptp(ours.sites.noise_precision) == np.ptp(ours.sites.noise_location) == 0

    def test_data_points_along_a_direction(self):
        rng = np.random.default_rng(3)
        X = np.column_stack([rng.normal(size=(30, 4)), np.ones(30)])
        order = along_a_direction(X, np.random.default_rng(5))
        # they are ordered along some direction if a half-space contains all differences
        differences = np.diff(X[order, :4], axis=0)
        found = linprog(np.zeros(4), -differences, -1e-3 * np.ones(29), bounds=[(-1, 1)] * 4)
        assert found.success
        moved = rng.permutation(30)
        np.testing.assert_array_equal(moved[along_a_direction(X[moved], np.random.default_rng(5))], order)


class TestWithoutAPosterior:
    def test_a_step_is_halved_until_the_posterior_is_proper(self):
        model = tiny()
        ours = approximation(model)
        put(ours, some_sites(model))
        before, counters, start_tau = ours.snapshot(), record(), ours.sites.tau.copy()
        ours.sites.tau[:] -= 10.0
        ours.recover(before, counters)
        halvings = int(counters.counts[SHORTENED])
        assert halvings > 0
        np.testing.assert_allclose(ours.sites.tau, start_tau - 10.0 / 2**halvings)
        posteriors_close(ours, plain.posterior(model, taken(ours)), 1e-9)
        ours.sites.tau[:] = start_tau - 10.0 / 2 ** (halvings - 1)
        assert not ours.refresh()

    def test_a_changed_sign_is_restored(self):
        """With its new sign the initial site gives no proper posterior for any step size."""
        ours = approximation(tiny())
        put(ours, some_sites(tiny()))
        ours.sites.sign[0], ours.sites.alpha[0] = 1.0, 5.0
        assert ours.refresh()
        before, counters = ours.snapshot(), record()
        ours.sites.sign[0] = -1.0
        ours.sites.beta[0] += 1.0
        ours.recover(before, counters)
        assert counters.counts[SHORTENED] == 1
        np.testing.assert_array_equal(ours.sites.sign, before[1])
        np.testing.assert_array_equal(ours.vector, before[0])

    def test_no_step_size_helps(self):
        ours = approximation(tiny())
        ours.sites.tau[:] = -10.0
        with pytest.raises(FloatingPointError, match="posterior"):
            ours.recover(ours.snapshot(), record())

    @pytest.mark.parametrize("name", ["tau", "nu", "alpha", "beta", "noise_precision", "noise_location"])
    def test_a_nan_is_not_a_proper_posterior(self, name):
        ours = approximation(tiny(noise=None, noise_prior=(-9.2, 4.0)))
        array = getattr(ours.sites, name)
        array[(1,) * array.ndim] = np.nan
        assert not ours.refresh()

    def test_a_proposal_without_a_proper_posterior_is_rolled_back(self):
        ours = approximation(tiny())
        before, accelerator = ours.snapshot(), Accelerator()
        ours.sweep(0.5, 0.5, 0.5)
        swept, accelerator.bound = ours.snapshot(), 64.0
        for proposed in (np.full(len(swept[0]), np.nan), swept[0] - 1e6 * (np.arange(len(swept[0])) < 2)):
            accelerator.propose = lambda *_, proposed=proposed: proposed.copy()
            ours.problem = ours.problem._replace(clip=False)
            assert not schedule.accelerate(ours, accelerator, before, 1.0)
            np.testing.assert_array_equal(ours.vector, swept[0])
        assert accelerator.bound == 64.0 / 16.0  # each counts as a failure of the accelerator
        accelerator.propose = lambda *_: swept[0].copy()
        assert not schedule.accelerate(ours, accelerator, before, 1.0)
        assert accelerator.bound == 64.0 / 16.0  # and this one does not

    def test_the_last_entry_of_alpha_is_not_negative(self):
        """alpha and -alpha give the same site; damping and step sizes require a unique one."""
        ours = approximation(tiny())
        before = ours.snapshot()
        ours.sweep(0.5, 0.5, 0.5)
        proposed, place = ours.vector.copy(), 2 * ours.sites.tau.size
        alpha = proposed[place : place + ours.sites.alpha.size].reshape(ours.sites.alpha.shape)
        expected = np.abs(alpha[1, -1]), ours.sites.alpha.copy()
        alpha[1] *= -1.0
        accelerator = SimpleNamespace(propose=lambda *_: proposed)
        assert schedule.accelerate(ours, accelerator, before, 1.0)
        assert ours.sites.alpha[1, -1] == expected[0] > 0.0
        np.testing.assert_array_equal(ours.sites.alpha, expected[1])


class TestTheWayToAFixedPoint:
    def test_it_stops_at_the_first_step_below_the_tolerance(self):
        one, calls = stub(lambda turn: 0.5**turn)
        history = schedule.ConvergenceHistory()
        assert schedule.converge(one, PLAN, history)
        assert history.sizes == [0.5**turn for turn in range(1, 15)]
        assert set(calls) == {(0.8, 0.8, 0.8)}

    def test_cycles_are_damped_and_reported(self):
        one, calls = stub(lambda turn: 0.1 + 0.05 * np.sin(turn))
        history = schedule.ConvergenceHistory()
        assert not schedule.converge(one, PLAN._replace(sweeps=700), history)
        damping = np.array(history.trace["damping"])
        assert len(history.sizes) == 700
        assert (np.diff(damping) <= 0).all()
        assert damping[0] == 0.8
        assert 0.1 <= damping[-1] <= 0.2
        np.testing.assert_array_equal(damping, [one[0] for one in calls])

    def test_more_damping_resets_the_accelerator(self, monkeypatch):
        """The map has changed."""
        forgotten = []
        monkeypatch.setattr(Accelerator, "forget", lambda *_: forgotten.append(1))
        monkeypatch.setattr(schedule, "accelerate", lambda *_: False)
        one, _ = stub(lambda turn: 0.1 + 0.05 * np.sin(turn))
        history = schedule.ConvergenceHistory()
        assert not schedule.converge(one, PLAN._replace(sweeps=700, accelerate=True), history)
        assert len(forgotten) == 1 + len(np.unique(history.trace["damping"])) - 1 + (
            history.trace["damping"][-1] <= 0.1
        )

    def test_a_step_of_nan_counts_as_diverged(self):
        one, _ = stub(lambda turn: np.nan if turn == 3 else 0.5**turn)
        one.evidence, history = lambda: (np.nan, np.nan), schedule.ConvergenceHistory()
        one.refresh = lambda: False
        with pytest.raises(FloatingPointError, match="no sweep"):
            schedule.converge(one, PLAN._replace(sweeps=3), history)
        assert history.sizes == [0.5, 0.25, np.inf]
        one, history = stub(lambda _: np.nan)[0], schedule.ConvergenceHistory()
        one.evidence = lambda: (np.nan, np.nan)
        assert not schedule.converge(one, PLAN._replace(sweeps=3), history)  # a proper posterior is kept
        assert history.restored is None

    def test_nothing_converges_without_evidence(self):
        one, _ = stub(lambda turn: 0.5**turn)
        one.evidence, history = lambda: (np.nan, 0.0), schedule.ConvergenceHistory()
        assert not schedule.converge(one, PLAN._replace(sweeps=30), history)

    def test_a_fit_that_settles_without_evidence_is_not_restored(self):
        one, _ = stub(lambda turn: 0.5**turn)
        one.evidence, history = lambda: (np.nan, np.nan), schedule.ConvergenceHistory()
        history.restored = 2  # set by an earlier stage
        assert not schedule.converge(one, PLAN._replace(sweeps=5), history)
        assert history.restored is None
        assert (
            history.reason()
            == "a relative step of 0.031 after 5 sweeps; more sweeps, another damping or restarts may help"
        )

    def test_a_stable_evidence_is_sufficient_if_chosen(self):
        """The evidence moves by 0.2 nats in sweep 30 and is constant afterwards; the step never decreases."""
        for chosen in (False, True):
            one, _ = stub(lambda _: 0.1)
            history = schedule.ConvergenceHistory()
            one.evidence = lambda history=history: (0.2 if len(history.sizes) >= 30 else 0.0, 0.0)
            assert schedule.converge(one, PLAN._replace(sweeps=120, evidence=chosen), history) == chosen
            assert history.criterion == ("evidence" if chosen else "")
            assert ("log evidence" in history.reason()) == chosen
            assert len(history.sizes) == (31 + schedule.EVIDENCE_SWEEPS if chosen else 120)

    def test_the_evidence_of_earlier_stages_does_not_count(self):
        history, (one, _) = schedule.ConvergenceHistory(), stub(lambda _: 0.1)
        history.sizes, history.trace["log_evidence"] = [0.1] * 50, [0.0] * 50
        assert schedule.converge(one, PLAN._replace(evidence=True), history)
        assert len(history.sizes) == 101

    def test_output_and_prior_sites_have_limits_of_their_own(self):
        one, dampings = stub(lambda turn: 0.5**turn), []
        quiet = one[0].sweep
        one[0].sweep = lambda *damping: (dampings.append(damping), quiet(*damping))[1]
        assert schedule.converge(one[0], PLAN._replace(final_output=0.2, prior=0.6), schedule.ConvergenceHistory())
        assert set(dampings) == {(0.8, 0.2, 0.6)}

    def test_every_group_counts(self):
        for group in range(len(GROUPS)):
            one, _ = stub(np.zeros_like)
            quiet = one.sweep

            def sweep(*damping, quiet=quiet, group=group):
                found = quiet(*damping)
                found.steps[group] = 1e-6, 1.0
                return found

            one.sweep = sweep
            assert not schedule.converge(one, PLAN._replace(sweeps=3), schedule.ConvergenceHistory())

    @pytest.mark.parametrize("sequential", [False, True])
    def test_acceleration_shortens_it(self, sequential):
        """With the same fixed point as plain sweeps."""
        lengths, found = [], []
        for accelerate in (False, True):
            ours, history = approximation(tiny(), sequential=sequential), schedule.ConvergenceHistory()
            assert schedule.converge(
                ours, PLAN._replace(accelerate=accelerate, final_damping=0.1, tolerance=1e-8, sweeps=3000), history
            )
            lengths.append(len(history.sizes))
            found.append(ours)
        assert lengths[1] < 0.5 * lengths[0]
        for name in ("tau", "nu", "T", "b"):
            close(getattr(taken(found[1]), name), getattr(taken(found[0]), name), 1e-5)

    def test_a_changed_sign_has_no_direction(self):
        model = tiny()
        ours = approximation(model)
        put(ours, some_sites(model))
        start_vector, signs = ours.vector.copy(), ours.sites.sign.copy()
        ours.sites.alpha[2] += 0.3
        ours.sites.alpha[3] += 0.3
        ours.sites.sign[2] *= -1
        start_vector = schedule.align_changed_signs(ours, (start_vector, signs))
        step = ours.vector - start_vector
        place = 2 * ours.sites.tau.size
        step = step[place : place + ours.sites.alpha.size].reshape(-1, 3)
        assert not step[2].any()
        np.testing.assert_allclose(step[3], 0.3)

    def test_weights_make_sites_comparable(self):
        ours = approximation(tiny())
        settle(ours)
        weighted, place = ours.vector * schedule.group_weights(ours), 0
        for array in (*ours.sites[:6], *ours.prior):
            part = weighted[place : place + array.size]
            place += array.size
            follows = array is ours.prior.output_tau or array is ours.prior.output_nu
            assert np.sqrt((part**2).sum()) == pytest.approx(1.0 if array.any() and not follows else 0.0)
        assert place == weighted.size


def test_the_best_sweep_has_the_minimum_step_with_an_evidence():
    ours, history = approximation(tiny()), schedule.ConvergenceHistory()
    start(ours, 0.5, 4.0)
    best = schedule.BestSweep(ours)
    with pytest.raises(FloatingPointError, match="no sweep"):
        best.restore(ours)
    points = []
    for size, log_evidence in ((0.1, -3.0), (0.05, np.nan), (0.2, -1.0)):
        history.add(ours.sweep(0.5, 0.5, 0.5), ours, 0.5)
        ours.refresh()
        history.trace["log_evidence"][-1] = log_evidence
        best.consider(ours, size, history)
        points.append(ours.vector.copy())
    assert best.restore(ours) == 1
    np.testing.assert_array_equal(ours.vector, points[0])
    assert best.size == 0.1


def test_the_reason_names_the_restored_sweep():
    history = schedule.ConvergenceHistory()
    history.trace["skipped"], history.sizes, history.restored, history.unsettled = [3.0], [7.0], 12, True
    assert history.reason() == (
        "a relative step of 7 after 1 sweeps, 3 terms without a proper cavity, "
        "priors of weights that did not converge; returned to sweep 12; "
        "more sweeps, another damping or restarts may help"
    )


@pytest.mark.parametrize("signs", [False, True])
def test_posteriors_of_many_weights(signs):
    """Against inverses, for more weights than one block of the copy has."""
    rng, n, K, D = np.random.default_rng(3), 90, 2, 71
    X, (_, sites, prior) = rng.normal(size=(n, D)), empty(n, K, D)
    sites.tau[:], sites.nu[:] = rng.uniform(-0.02 if signs else 0.0, 1.0, (n, K)), rng.normal(size=(n, K))
    prior.tau[:], prior.nu[:] = rng.uniform(1.0, 2.0, (K, D)), rng.normal(size=(K, D))
    mean, S = np.zeros((K, D)), np.zeros((K, D, D))
    assert posterior.weights(X, sites, prior, mean, S)
    for k in range(K):
        inverse = np.linalg.inv(X.T @ np.diag(sites.tau[:, k]) @ X + np.diag(prior.tau[k]))
        np.testing.assert_allclose(S[k], inverse, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(S[k], S[k].T)
        np.testing.assert_allclose(mean[k], inverse @ (X.T @ sites.nu[:, k] + prior.nu[k]), rtol=1e-9)
