"""Tractable approximate Gaussian inference against the authors' library, exact conditioning and a slow twin."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ep_bench.methods import tagi
from ep_bench.methods.tagi.filtering import filter_rows, infer_noise
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins.plain_networks import flat, matrices

REFERENCE = json.loads((Path(__file__).parents[1] / "reference_values" / "tagi.json").read_text(encoding="utf-8"))


def weights(sizes, seed=0):
    """Means and variances of the weights, both (P,)."""
    rng = np.random.default_rng(seed)
    size = sum((a + 1) * b for a, b in pairwise(sizes))
    return rng.normal(size=size), rng.uniform(0.05, 0.2, size=size)


class SlowTAGI:
    """Joint Gaussians of each unit's input with its weights and the units below, conditioned one after the other."""

    def __init__(self, mean, variance, sizes):
        self.means, self.variances = matrices(mean, sizes), matrices(variance, sizes)

    def step(self, x, y, noise):
        below, a, a_var = [(x, np.zeros_like(x))], None, None
        for (M, b), (V, b_var) in zip(self.means, self.variances, strict=True):
            if a is not None:
                active = a > 0
                below.append((np.where(active, a, 0.0), np.where(active, a_var, 0.0)))
            z, z_var = below[-1]
            a, a_var = z @ M + b, z_var @ M**2 + (z**2 + z_var) @ V + b_var
        shift, change = a_var * (y - a) / (a_var + noise), -(a_var**2) / (a_var + noise)  # of the output
        for l in range(len(self.means) - 1, -1, -1):
            (M, b), (V, b_var), (z, z_var) = self.means[l], self.variances[l], below[l]
            units_shift, units_change = np.zeros(len(z)), np.zeros(len(z))
            for k in range(len(a)):
                for i in range(len(z)):
                    gain = V[i, k] * z[i] / a_var[k]  # the covariance with the input, over its variance
                    units_gain = M[i, k] * z_var[i] / a_var[k]
                    units_shift[i] += units_gain * shift[k]
                    units_change[i] += units_gain**2 * change[k]
                    M[i, k] += gain * shift[k]
                    V[i, k] += gain**2 * change[k]
                b[k] += b_var[k] / a_var[k] * shift[k]
                b_var[k] += (b_var[k] / a_var[k]) ** 2 * change[k]
            shift, change, a, a_var = units_shift, units_change, z, np.where(z_var > 0, z_var, 1.0)


class TestAgainstTheAuthorsLibrary:
    @pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda one: f"{one['hidden']}-{one['epochs']}")
    def test_posterior_and_prediction(self, case):
        i, j = np.arange(25)[:, None], np.arange(1, 4)
        X = np.sin(1.7 * i * j + 0.3 * j)
        y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 - 0.3 + 0.1 * np.cos(17 * i[:, 0])
        layers = mlp.layout(3, case["hidden"])
        mean = np.concatenate(
            [0.6 * np.sin(np.arange(1, (a + 1) * b + 1) * (l + 1.3)) for l, (_, a, b) in enumerate(layers)]
        )
        variance = np.concatenate([np.append(np.full(a * b, 0.25 / a), np.full(b, 0.01)) for _, a, b in layers])
        for _ in range(case["epochs"]):
            filter_rows(X, y, np.arange(25), mean, variance, layers, 0.09)
        state = tagi.State(layers, mean, variance, 0.09)
        answer, latent = tagi.predict(state, X[:4], None), tagi.latent(state, X[:4])
        np.testing.assert_allclose(latent, [case["mean"], case["variance"]], rtol=1e-4)
        np.testing.assert_allclose(answer.variance() - latent[1], 0.09, rtol=1e-9)
        units = case["hidden"][0]
        np.testing.assert_allclose(mean[: 3 * units : units], case["first_weight_means"], rtol=1e-4)
        np.testing.assert_allclose(variance[: 3 * units : units], case["first_weight_variances"], rtol=1e-4)

    @pytest.mark.parametrize("row", REFERENCE["noise"])
    def test_learned_noise(self, row):
        f, f_var, log_mean, log_var, y, *theirs = row
        noise = np.exp(log_mean + 0.5 * log_var)
        scale, residual = f_var + noise, y - f
        ours = residual / scale, 1.0 / scale, *infer_noise(noise, log_var, scale, residual)
        np.testing.assert_allclose(ours, theirs, rtol=3e-4)  # single precision, with cancellation in exp(log_var) - 1


@pytest.mark.parametrize("hidden", [(1,), (19,), (6, 9), (17, 4, 5)])
def test_steps_against_the_twin(hidden):
    train, sizes = rows(20, 3, 1), (3, *hidden, 1)
    mean, variance = weights(sizes)
    twin = SlowTAGI(mean, variance, sizes)
    _, undone = filter_rows(train.X, train.y, np.arange(20), mean, variance, mlp.layout(3, hidden), 2.0)
    for x, y in zip(train.X, train.y, strict=True):
        twin.step(x, y, 2.0)
    assert undone == 0.0
    np.testing.assert_allclose(mean, flat(twin.means), rtol=1e-9)
    np.testing.assert_allclose(variance, flat(twin.variances), rtol=1e-9)


def test_a_linear_model_has_the_exact_marginals_of_one_data_point():
    x, (mean, variance) = np.array([[0.5, -2.0, 0.0, 1.5]]), weights((4, 1))
    u, V = np.append(x, 1.0), np.diag(variance)
    scale = u @ V @ u + 0.3
    exact = mean + V @ u * (0.7 - u @ mean) / scale, np.diag(V - np.outer(V @ u, V @ u) / scale)
    log_z, _ = filter_rows(x, np.array([0.7]), np.zeros(1, int), *(ours := (mean, variance)), mlp.layout(4, ()), 0.3)
    np.testing.assert_allclose(ours, exact, rtol=1e-12)
    residual = 0.7 - u @ weights((4, 1))[0]
    assert log_z == pytest.approx(-0.5 * (np.log(2 * np.pi * scale) + residual**2 / scale), rel=1e-12)


class TestNoise:
    def test_square_of_the_noise_by_draws(self):
        """The variance of e^2, where e is normal given a random noise variance with variance s, is 3 s + 2 mean^2."""
        rng = np.random.default_rng(0)
        variance = np.exp(0.3 + 0.5 * rng.normal(size=1_000_000))
        square = variance * rng.normal(size=variance.size) ** 2
        mean, s = np.exp(0.3 + 0.125), np.exp(0.85) * np.expm1(0.25)
        assert square.var() == pytest.approx(3 * s + 2 * mean**2, rel=0.05)

    @pytest.mark.parametrize(("residual", "rises"), [(0.0, False), (4.0, True)])
    def test_a_large_residual_raises_the_noise(self, residual, rises):
        g, h = infer_noise(1.0, 0.2, 1.5, residual)
        assert (g > 0.0) == rises
        assert 1.0 - 0.2 * h > 0.0  # the variance of the logarithm stays positive
        assert np.isfinite(infer_noise(1.0, 0.0, 1.5, residual)).all()

    def test_the_fit_chooses_among_the_deviations(self):
        state, trace = tagi.fit(
            rows(80, 2, 3, noise=0.5), tagi.Config(hidden=(8,), epochs=10), np.random.default_rng(0)
        )
        assert 0.25 < np.sqrt(state.noise_variance) < 0.85
        assert any(np.isclose(np.sqrt(state.noise_variance), one) for one in tagi.NOISE)
        assert {name: len(values) for name, values in trace.items()} == {"log_z": 10, "undone": 10}

    def test_noise_that_depends_on_the_input(self):
        rng = np.random.default_rng(4)
        X = rng.uniform(-1.5, 1.5, size=(600, 1))
        y = rng.normal(size=600) * np.where(X[:, 0] > 0, 1.35, 0.4)
        state, _ = tagi.fit(Rows(X, y), tagi.Config(hidden=(20,), noise="heteroscedastic"), np.random.default_rng(0))
        low, high = tagi.predict(state, np.array([[-1.0], [1.0]]), None).std()
        assert (low, high) == pytest.approx((0.4, 1.35), rel=0.35)


def test_undone_updates_keep_mean_and_variance():
    """With two outputs, a hidden unit's variance can fall by more than itself."""
    layers, undone = mlp.layout(2, (6, 6), 2), 0.0
    for seed in range(30):
        mean, variance = weights((2, 6, 6, 2), seed)
        mean *= 2.0
        variance *= 20.0
        undone += filter_rows(np.ones((1, 2)), np.ones(1), np.zeros(1, int), mean, variance, layers, 1.0)[1]
        assert (variance > 0.0).all()
    assert undone > 0
