"""Black-box alpha: the energy against loops, differences, its limits and identities; the fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from ep_bench import Estimator, data
from ep_bench.methods import bb_alpha
from ep_bench.methods.bb_alpha.energy import energy, fill_factor, workspace
from ep_bench.models import meanfield, mlp
from ep_bench.models import variational_bound as vi_bound
from ep_bench.models.meanfield import draw_weights
from ep_bench.numerics.normal_rng import stream
from tests.methods.support import rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

QUICK = {"hidden": [10], "samples": 5, "epochs": 150, "learning_rate": 0.01}  # options of the conformance tests

SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]
ALPHAS = [-1.0, -0.3, 0.0, 1e-6, 0.5, 1.0, 2.0]
V0 = 0.7


class Case:
    """A random q over a random network, a batch of ``total`` data points, samples of the noise."""

    def __init__(self, hidden, seed, d=5, rows=9, K=8, total=40):
        rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.rng = (d, *hidden, 1), mlp.layout(d, hidden), rng
        self.P = mlp.count(self.layers)
        self.theta = np.concatenate([rng.normal(size=self.P), rng.normal(-2.0, 1.0, size=self.P), [-0.4]])
        self.X, self.y = rng.normal(size=(rows, d)), rng.normal(size=rows)
        self.noise, self.total = rng.normal(size=(K, self.P)), total

    def energy(self, alpha, theta=None, draw=None):
        """Return energy and gradient for the noise, or for new noise from the stream ``draw``."""
        theta = self.theta if theta is None else theta
        work = workspace(len(self.noise), len(self.y), self.P, mlp.units(self.layers), mlp.widest(self.layers))
        fill_factor(theta, V0, work, self.total)
        if draw is None:
            work.noise[:] = self.noise
            work.W[:] = theta[: self.P] + work.vectors[0] * self.noise
        else:
            draw_weights(theta[: self.P], work.vectors[0], draw, work.noise, work.W)
        gradient = np.full(len(theta), np.nan)
        return energy(theta, self.X, self.y, self.layers, self.total, alpha, V0, work, gradient), gradient

    def twin(self, alpha):
        return plain.alpha_energy(self.theta, self.X, self.y, self.sizes, self.total, alpha, V0, self.noise)

    def std(self):
        return np.sqrt(V0 / (1 + np.exp(-self.theta[self.P : -1])))


@pytest.mark.parametrize("hidden", SHAPES)
class TestEnergy:
    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_it_agrees_with_the_twin(self, hidden, alpha):
        case = Case(hidden, 1)
        assert case.energy(alpha)[0] == pytest.approx(case.twin(alpha), rel=1e-8 if alpha == 1e-6 else 1e-11)

    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_gradient(self, hidden, alpha):
        """For alpha = 1e-6 the energy has ten digits, and its differences have five."""
        step, rel = (5e-6, 2e-5) if alpha == 1e-6 else (1e-6, 1e-6)
        for seed in (2, 3):
            case = Case(hidden, seed)
            gradient = case.energy(alpha)[1]
            check_gradient(
                lambda at, c=case: c.energy(alpha, at)[0], case.theta, gradient, case.rng, step=step, rel=rel
            )

    @pytest.mark.parametrize("alpha", [0.0, 0.5])
    def test_gradient_of_one_data_point_and_one_sample(self, hidden, alpha):
        case = Case(hidden, 4, d=1, rows=1, K=1)
        gradient = case.energy(alpha)[1]
        check_gradient(lambda at: case.energy(alpha, at)[0], case.theta, gradient, case.rng, step=1e-6)

    def test_a_small_alpha_is_the_bound_with_a_sampled_divergence(self, hidden):
        """Exact at 0: log q - log prior of the samples replaces the closed form."""
        case = Case(hidden, 5)
        m, s = case.theta[: case.P], case.std()
        W = m + s * case.noise
        ratios = plain.log_normal(W, m, s**2).sum(axis=1) - plain.log_normal(W, 0.0, V0).sum(axis=1)
        f = np.array([plain.outputs(case.X, w, case.sizes) for w in W])
        misfit = -plain.log_normal(case.y, f, np.exp(-0.4)).sum(axis=1).mean() * case.total / len(case.y)
        assert case.energy(0.0)[0] == pytest.approx(ratios.mean() + misfit, rel=1e-11)
        # log E exp(alpha r) / alpha = E r + alpha Var r / 2 + ...
        log_p, log_f, _ = plain.alpha_parts(case.theta, case.X, case.y, case.sizes, case.total, V0, case.noise)
        bend = (log_p - log_f[:, None]).var(axis=0).sum() * case.total / len(case.y) / 2
        gradients = []
        for alpha in (1e-6, -1e-6):
            value, gradient = case.energy(alpha)
            assert value - (ratios.mean() + misfit) == pytest.approx(-alpha * bend, rel=1e-2)
            gradients.append(gradient)
        limit = case.energy(0.0)[1]
        np.testing.assert_allclose(np.mean(gradients, axis=0), limit, rtol=1e-5, atol=1e-7 * np.abs(limit).max())

    @pytest.mark.exhaustive
    def test_at_zero_it_is_variational_inference_on_average(self, hidden):
        """Values and gradients, within Monte Carlo errors of the kernels with the closed-form divergence."""
        case, times = Case(hidden, 6), 4000
        s, prior = case.std(), np.full(case.P, V0)
        theta = np.concatenate([case.theta[: case.P], np.log(s), case.theta[-1:]])
        work = vi_bound.workspace(8, len(case.y), case.P, mlp.units(case.layers), mlp.widest(case.layers))
        ours, theirs = np.empty((times, 2 * case.P + 2)), np.empty((times, 2 * case.P + 2))
        words = [stream(np.random.default_rng(seed)) for seed in (7, 8)]
        # chain rule for rho: d log s / d rho = (1 - v / v0) / 2
        chain = np.concatenate([np.ones(case.P), 0.5 * (1 - s**2 / V0), [1.0]])
        for t in range(times):
            value, gradient = case.energy(0.0, draw=words[0])
            ours[t] = np.append(gradient, value)
            vi_bound.draw(theta, words[1], work)
            gradient = np.empty(len(theta))
            value = vi_bound.bound(theta, case.X, case.y, case.layers, case.total, prior, work, gradient)
            theirs[t] = np.append(gradient * chain, value)
        gap = ours.mean(axis=0) - theirs.mean(axis=0)
        error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / times)
        assert np.all(np.abs(gap) <= 4.5 * error + 1e-9)

    def test_the_limit_at_zero_is_continuous(self, hidden):
        case = Case(hidden, 10)
        limit = case.energy(0.0)[0]
        for alpha in (1e-15, 1e-10, 1e-8, -1e-8):
            assert case.energy(alpha)[0] == pytest.approx(limit, rel=1e-4)


class TestIdentities:
    def test_one_data_point_at_alpha_one_gives_the_evidence_for_any_q(self):
        """With N = 1 the cavity is the prior: E_q[p / f] Z_q / Z_prior = E_prior[p]."""
        case = Case((2,), 11, d=1, rows=1, K=200_000, total=1)
        f = mlp.evaluate(case.X, case.rng.normal(0.0, np.sqrt(V0), size=(1_000_000, case.P)), case.layers)
        log_p = plain.log_normal(case.y, f, np.exp(-0.4))[:, 0]
        evidence = logsumexp(log_p) - np.log(len(log_p))
        errors = [relative_error(log_p)]
        for seed in range(3):
            case.theta[: case.P] = 0.3 * np.random.default_rng(seed).normal(size=case.P)
            case.theta[case.P : -1] = 1.0 + seed  # v is at least 0.73 v0, so that the variance of the ratios is finite
            log_r, log_f, _ = plain_ratios(case)
            errors[1:] = [relative_error(log_r - log_f)]
            assert errors[1] < 0.02
            assert -case.energy(1.0)[0] == pytest.approx(evidence, abs=4 * np.hypot(*errors))

    def test_large_residuals_do_not_overflow(self):
        case = Case((5,), 12)
        case.y *= 1e4
        for alpha in (-1.0, 0.5, 2.0):
            value, gradient = case.energy(alpha)
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()
            assert value == pytest.approx(case.twin(alpha), rel=1e-11)


def relative_error(logs):
    """Return the standard error of the log of a mean of exponentials."""
    ratios = np.exp(logs - logs.max())
    return ratios.std() / ratios.mean() / np.sqrt(len(ratios))


def plain_ratios(case):
    """Return log p (K,) of the only data point, and log f (K,)."""
    m, v = case.theta[: case.P], case.std() ** 2
    W = m + np.sqrt(v) * case.noise
    log_p = plain.log_normal(case.y, mlp.evaluate(case.X, W, case.layers), np.exp(case.theta[-1]))[:, 0]
    return log_p, (-0.5 * W**2 * (1 / v - 1 / V0) + W * m / v).sum(axis=1), None


@pytest.mark.parametrize("schedule", ["cosine", "released program"])
def test_epochs_step_by_step(schedule):
    """Every data point once per epoch, new samples per step, Adam by its twin with the step sizes of the schedule."""
    train = rows(20, 3, 19)
    config = bb_alpha.Config(
        hidden=(4,), epochs=2, batch_size=8, samples=3, prior_variance=V0, learning_rate=0.01, schedule=schedule
    )
    state, trace = bb_alpha.fit(train, config, np.random.default_rng(15))
    rng, case = np.random.default_rng(15), Case((4,), 0, d=3, K=3, total=20)
    start = np.concatenate([0.1 * rng.standard_normal(case.P), np.full(case.P, -10.0), [0.0]])
    faster = np.append(np.ones(2 * case.P), 10.0)  # the log noise variance
    sizes = {"cosine": (0.01 * faster, 0.005 * faster), "released program": (np.array(0.01), np.array(0.01))}[schedule]
    words, theta, gradients, rates = stream(rng), start, [], []
    for objective, noise, rate in zip(trace["objective"], trace["noise_deviation"], sizes, strict=True):
        order, values = rng.permutation(20), []
        for at in (0, 8, 16):
            case.X, case.y = train.X[order[at : at + 8]], train.y[order[at : at + 8]]
            value, gradient = case.energy(0.5, theta, draw=words)
            values.append(value)
            gradients.append(gradient)
            rates.append(rate)
            theta = plain.adam(start, gradients, rates)
        assert objective == pytest.approx(np.mean(values) / 20, rel=1e-9)
        assert noise == pytest.approx(np.exp(0.5 * theta[-1]), rel=1e-9)
    np.testing.assert_allclose(state.mean, theta[: case.P], rtol=1e-6, atol=1e-9)


def test_predictions_do_not_depend_on_the_number_of_networks_drawn_together(monkeypatch):
    """5,000 samples are drawn in blocks, which bounds the memory, from one stream."""
    layers, rng = mlp.layout(3, (4,)), np.random.default_rng(0)
    P = mlp.count(layers)
    mean, std, X = rng.normal(size=P), rng.uniform(0.1, 1.0, P), rng.normal(size=(6, 3))
    state = bb_alpha.State(layers, mean, std, 0.1, 11, True)
    whole = state.predict(X, np.random.default_rng(1)).means
    monkeypatch.setattr(meanfield, "DRAWN", 4)
    np.testing.assert_array_equal(state.predict(X, np.random.default_rng(1)).means, whole)
    W = mean + std * np.random.default_rng(1).standard_normal((11, P))
    np.testing.assert_allclose(whole, [plain.outputs(X, w, (3, 4, 1)) for w in W], rtol=1e-10)


class TestFit:
    def test_initial_values_are_those_of_the_released_program(self):
        config = bb_alpha.Config(hidden=(60,), epochs=1, learning_rate=1e-12, prior_variance=0.5)
        state, _ = bb_alpha.fit(rows(20, 8, 23), config, np.random.default_rng(0))
        assert state.mean.std() == pytest.approx(0.1, rel=0.1)
        np.testing.assert_allclose(state.std, np.sqrt(0.5 / (1 + np.exp(10.0))), rtol=1e-9)
        assert state.noise_variance == pytest.approx(1.0)

    def test_a_larger_alpha_has_wider_predictions_on_the_cubic_data(self):
        """Supplement, section C: one layer of 100 units, noise variance 9 and prior variance 1, both fixed."""
        toy = data.load_dataset("cubic")
        grid, spread = np.linspace(-6, 6, 61)[:, None], []
        for alpha in (-1.0, 1e-6, 1.0):
            model = Estimator(
                "bb_alpha", alpha=alpha, noise_variance=9.0 / float(np.var(toy.y)), epochs=2500, batch_size=20,
                learning_rate=0.01, test_samples=1000, random_state=0,
            )  # fmt: skip
            spread.append(model.fit(toy.X, toy.y).predict_dist(grid).std().mean())
        assert spread[0] < spread[1] < spread[2]
