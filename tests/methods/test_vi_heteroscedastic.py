"""Variational inference with a noise head and an empirical prior: twins, differences, closed forms, fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from ep_bench.methods import vi
from ep_bench.methods.vi import heteroscedastic
from ep_bench.models import mlp
from ep_bench.models import variational_bound as weights_form
from ep_bench.models.empirical_prior import MODE, SHAPE, best_prior, prior_groups
from ep_bench.models.meanfield import divergence
from ep_bench.types import Rows
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]


class Case:
    """A random q over the weights of a random network with a noise head, prior variances, a batch and noise."""

    def __init__(self, hidden, seed, d=5, rows=9, K=3, total=40):
        rng = self.rng = np.random.default_rng(seed)
        self.sizes, self.layers, self.total = (d, *hidden, 1), mlp.layout(d, hidden), total
        self.P, self.H = mlp.count(self.layers), heteroscedastic.head_size(self.layers)
        size = self.P + self.H
        self.theta = np.concatenate([0.5 * rng.normal(size=size), rng.normal(-1.5, 0.5, size=size), [-0.4]])
        self.prior = np.exp(rng.normal(size=size))
        self.X, self.y, self.noise = rng.normal(size=(rows, d)), rng.normal(size=rows), rng.normal(size=(K, size))

    def value(self, theta):
        """Return negative bound and gradient."""
        size = self.P + self.H
        work = weights_form.workspace(
            len(self.noise), len(self.y), self.P, mlp.units(self.layers), mlp.widest(self.layers), self.H
        )
        work.noise[:], work.std[:] = self.noise, np.exp(theta[size:-1])
        work.W[:] = theta[:size] + work.std * self.noise
        gradient = np.full(len(theta), np.nan)
        found = heteroscedastic.bound(theta, self.X, self.y, self.layers, self.total, self.prior, work, gradient)
        return found, gradient


@pytest.mark.parametrize("hidden", SHAPES)
class TestBound:
    def test_it_agrees_with_the_twin(self, hidden):
        case = Case(hidden, 1)
        args = (case.theta, case.X, case.y, case.sizes, case.total, case.prior, case.noise)
        assert case.value(case.theta)[0] == pytest.approx(plain.heteroscedastic_bound(*args), rel=1e-12)

    def test_gradient(self, hidden):
        for seed in (2, 3):
            case = Case(hidden, seed)
            gradient = case.value(case.theta)[1]
            check_gradient(lambda at, of=case.value: of(at)[0], case.theta, gradient, case.rng, step=1e-6)

    def test_where_the_head_is_0_it_is_the_homoscedastic_bound(self, hidden):
        """Only the divergence of the head from its prior is added."""
        case = Case(hidden, 4)
        P, size = case.P, case.P + case.H
        case.theta[P:size], case.noise[:, P:] = 0.0, 0.0
        m, s = case.theta[:size], np.exp(case.theta[size:-1])
        theta = np.concatenate([m[:P], np.log(s[:P]), case.theta[-1:]])
        args = (case.X, case.y, case.sizes, case.total, case.prior[:P], case.noise[:, :P])
        expected = plain.negative_bound(theta, *args) + plain.divergence(m[P:], s[P:], case.prior[P:])
        assert case.value(case.theta)[0] == pytest.approx(expected, rel=1e-12)


def penalised(m, s, layers, head, log_v):
    """KL(q || prior) - log p(v), with one variance per group, by the formulas."""
    v, rates = np.exp(log_v), np.repeat([(SHAPE + 1) * MODE / n_in for _, n_in, _ in layers], 2)
    of_weights = v[prior_groups(layers, head).group]
    return plain.divergence(m, s, of_weights) - stats.invgamma(SHAPE, scale=rates).logpdf(v).sum()


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("hidden", [(), (4, 3)])
def test_the_empirical_prior_in_closed_form_is_the_minimum(hidden, head):
    case = Case(hidden, 5)
    H = case.H if head else 0
    size = case.P + H
    m, s = case.theta[:size], np.exp(case.theta[size : 2 * size])
    groups, best = prior_groups(case.layers, H), np.full(size, np.nan)
    penalty = best_prior(m, s, groups, best)
    of_group = [best[groups.group == g] for g in range(2 * len(case.layers))]
    assert [len(values) for values in of_group[-2:]] == [case.sizes[-2] * (1 + head), 1 + head]
    assert max(map(np.ptp, of_group)) == 0.0
    log_v = np.log([values[0] for values in of_group])
    minimum = penalised(m, s, case.layers, H, log_v)
    assert divergence(m, s, best) + penalty == pytest.approx(minimum, rel=1e-12)
    found = optimize.minimize(lambda at: penalised(m, s, case.layers, H, at), np.zeros(len(log_v)))
    np.testing.assert_allclose(log_v, found.x, atol=1e-4)
    assert found.fun >= minimum - 1e-10


def test_the_gradient_treats_the_best_prior_as_fixed():
    """The bound with the log density of the best prior variances, by differences."""
    case = Case((4, 3), 6)
    size, groups = case.P + case.H, prior_groups(case.layers, case.H)

    def value(theta):
        penalty = best_prior(theta, np.exp(theta[size:-1]), groups, case.prior)
        found, gradient = case.value(theta)
        return found + penalty, gradient

    check_gradient(lambda at: value(at)[0], case.theta, value(case.theta)[1], case.rng, step=1e-6)


def test_it_finds_where_the_noise_is_large():
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(2 * X[:, 0]) + np.where(X[:, 0] > 0, 0.5, 0.05) * rng.normal(size=400)
    config = vi.Config(hidden=(20,), epochs=300, noise="heteroscedastic", prior="empirical", samples=5)
    state, trace = vi.fit(Rows(X, y), config, np.random.default_rng(0))
    found = vi.predict(state, np.array([[-1.0], [1.0]]), np.random.default_rng(1))
    quiet, noisy = np.sqrt(found.weights @ found.variances)
    assert quiet < 0.15
    assert 0.35 < noisy < 0.75
    assert trace["noise_deviation"][-1] == pytest.approx(np.sqrt((0.5**2 + 0.05**2) / 2), rel=0.3)


def test_a_fit_whose_objective_has_risen_has_diverged():
    vi.refuse_divergence([1.5, 40.0, 2.4])
    vi.refuse_divergence([1e9, *[0.5] * 300])
    with pytest.raises(FloatingPointError, match=r"diverged: the objective ends at 40 .* above -0\.3"):
        vi.refuse_divergence([1.5, -0.3, 40.0])
    vi.refuse_divergence([*[0.5] * 290, 1e9, *[0.5] * 9])  # a single epoch
    with pytest.raises(FloatingPointError, match=r"ends at 1\.7 "):
        vi.refuse_divergence([*[0.5] * 290, *[1.7] * 11, *[0.5] * 9])


@pytest.mark.parametrize("noise", ["homoscedastic", "heteroscedastic"])
def test_a_fit_refuses_what_has_diverged(noise, monkeypatch):
    rng = np.random.default_rng(0)
    train = Rows(rng.normal(size=(20, 2)), rng.normal(size=20))
    config = vi.Config(hidden=(3,), noise=noise, epochs=2)
    vi.fit(train, config, rng)
    monkeypatch.setattr(vi, "WORSE", -1e3)  # each fit rises by more
    with pytest.raises(FloatingPointError, match="diverged: the objective"):
        vi.fit(train, config, rng)
