"""Distances from a reference posterior: closed forms, identity on a linear model, and a planted fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import ep_bench
from ep_bench.experiments.posteriors import distances
from ep_bench.experiments.posteriors.reference.compute import floor, split_data
from ep_bench.methods import bb_alpha, laplace
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Rows
from tests.experiments.support import run_experiment

NOISE = 0.09


def linear_posterior(n: int = 30, d: int = 3) -> tuple[Rows, Array, Array, Array]:
    """Return data, test inputs, and the exact mean and covariance of a linear function with a constant at them."""
    rng = np.random.default_rng(0)
    X, further = rng.normal(size=(n, d)), rng.normal(size=(6, d))
    y = X @ [1.0, -0.5, 0.2] + 0.3 * rng.normal(size=n)
    A, B = np.column_stack([X, np.ones(n)]), np.column_stack([further, np.ones(len(further))])
    covariance = np.linalg.inv(A.T @ A / NOISE + np.eye(d + 1) / 0.7)
    return Rows(X, y), further, B @ covariance @ (A.T @ y) / NOISE, B @ covariance @ B.T


def exact_draws(mean: Array, covariance: Array, count: int = 4000) -> Array:
    """Return draws with exactly these means and (to rounding) this covariance."""
    noise = np.random.default_rng(1).normal(size=(count, len(mean)))
    noise -= noise.mean(axis=0)
    noise = noise @ np.linalg.inv(np.linalg.cholesky(noise.T @ noise / count)).T
    jitter = 1e-12 * np.eye(len(mean))
    return mean + noise @ np.linalg.cholesky(covariance + jitter).T


def test_exact_methods_have_no_distance_on_a_linear_model() -> None:
    train, X, mean, covariance = linear_posterior()
    draws = exact_draws(mean, covariance)
    fitted = laplace.fit(
        train, laplace.Config(hidden=(), prior_variance=0.7, noise_variance=NOISE), np.random.default_rng(0)
    )[0]
    exact = laplace.predict(fitted, X, np.random.default_rng(0))
    found = distances.compare(exact, draws, NOISE, distances.nearest(X))
    assert np.max(found["mean_error"]) < 1e-6
    np.testing.assert_allclose(found["std_ratio"], 1.0, atol=1e-5)
    assert np.max(found["wasserstein_1"]) < 0.05  # of 4,000 draws
    assert np.max(found["total_variation"]) < 0.01
    assert np.max(np.abs(found["kl"])) < 1e-3
    same = distances.compare(Predictive.equal_mixture(draws, NOISE), draws, NOISE, distances.nearest(X))
    assert max(np.max(same[name]) for name in distances.NAMES if name not in {"std_ratio", "pair_kl"}) < 1e-12


@pytest.mark.slow
def test_an_exact_method_is_as_near_to_long_chains_as_their_halves(tmp_path: Path) -> None:
    """From the study to the distances: Laplace's method is exact for a network without hidden layers."""
    linear = {"use": "hmc", "label": "relu", "dataset": "yacht", "hidden": [], "noise_variance": 0.3,
              "prior_variance": 0.5, "warmup": 100, "samples": 1000, "steps": 10}  # fmt: skip
    options = {"posteriors": [linear], "chains": 2, "draws": 2000, "stored": 2000}
    run_experiment("reference", options, 0, tmp_path / "reference-yacht", "reference-yacht")
    reference = ep_bench.load_reference("yacht", results=tmp_path)
    noise = reference.noise_deviation**2
    halves = floor(reference.draws, noise, distances.nearest(split_data("yacht", 0).inputs))
    yacht = ep_bench.load_dataset("yacht")
    train, test = ep_bench.standard_split(len(yacht.y), 0)
    known = {"noise_variance": reference.noise_variance, "prior_variance": reference.prior_variance}
    model = ep_bench.Estimator("laplace", hidden=[], **known).fit(yacht.X[train], yacht.y[train])
    exact = model.predict_dist(yacht.X[test])
    found = ep_bench.posterior_distances(exact, reference)
    for name in ("mean_error", "wasserstein_1", "wasserstein_2", "total_variation", "kl"):
        assert found[name].mean() < halves[name].mean()
    wider = Predictive.gaussian(exact.means[0], 1.2 * (exact.variances[0] - noise) + noise)
    faulty = ep_bench.posterior_distances(wider, reference)
    np.testing.assert_allclose(faulty["std_ratio"], np.sqrt(1.2) * found["std_ratio"])
    assert faulty["wasserstein_2"].mean() > 1.5 * found["wasserstein_2"].mean()


def test_full_covariance_is_exact_and_the_diagonal_is_not() -> None:
    train, X, _, _ = linear_posterior()
    posterior = np.linalg.inv(train.X.T @ train.X / NOISE + np.eye(3) / 0.7)
    draws = exact_draws(X @ posterior @ (train.X.T @ train.y) / NOISE, X @ posterior @ X.T + 1e-9 * np.eye(6))
    found = {}
    for form in ("full", "diagonal"):
        options = bb_alpha.Config(
            hidden=(), alpha=1e-6, covariance=form, prior_variance=0.7, noise_variance=NOISE
        )  # fmt: skip
        state, _ = bb_alpha.fit(train, options, np.random.default_rng(0))
        prediction = bb_alpha.predict(state, X, np.random.default_rng(0))
        found[form] = distances.compare(prediction, draws, NOISE, distances.nearest(X))
    np.testing.assert_allclose(found["full"]["std_ratio"], 1.0, atol=1e-4)
    assert np.max(found["full"]["mean_error"]) < 1e-4
    assert np.max(np.abs(found["diagonal"]["std_ratio"] - 1.0)) > 0.02


def test_a_planted_fault_moves_each_distance_as_predicted() -> None:
    """The variance of f is 1.2 times that of a Gaussian reference."""
    variance, mean = np.array([0.2, 1.0, 3.0]), np.array([0.0, -2.0, 5.0])
    draws = mean + np.sqrt(variance) * norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
    draws = np.random.default_rng(0).permuted(draws, axis=0)
    found = distances.compare(Predictive.gaussian(mean, 1.2 * variance + NOISE), draws, NOISE, np.array([1, 2, 0]))
    ratio = np.sqrt(1.2)
    np.testing.assert_allclose(found["std_ratio"], ratio, rtol=1e-3)
    np.testing.assert_allclose(found["wasserstein_2"], ratio - 1.0, rtol=3e-3)
    np.testing.assert_allclose(found["wasserstein_1"], (ratio - 1.0) * np.sqrt(2.0 / np.pi), rtol=3e-3)
    a, b = variance + NOISE, 1.2 * variance + NOISE
    kl = 0.5 * (a / b - 1.0 + np.log(b / a))
    crossing = np.sqrt(np.log(b / a) * a * b / (b - a))
    total_variation = 2.0 * (norm.cdf(crossing / np.sqrt(a)) - norm.cdf(crossing / np.sqrt(b)))
    exact = distances.density_distances(Predictive.gaussian(mean, b), Predictive.gaussian(mean, a))
    np.testing.assert_allclose(exact, [total_variation, kl], rtol=2e-3)
    np.testing.assert_allclose(found["kl"], kl, rtol=0.06)
    np.testing.assert_allclose(found["total_variation"], total_variation, rtol=0.06)


@pytest.mark.parametrize(("correlation", "expected"), [(0.0, 0.0), (0.9, 1.0)])
def test_pairs_show_lost_correlation(correlation: float, expected: float) -> None:
    """Of a bivariate Gaussian, independent marginals lose the mutual information -log(1 - r^2) / 2."""
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    draws = exact_draws(np.zeros(2), covariance, 2000)
    found = distances.compare(
        Predictive.gaussian(np.zeros(2), np.full(2, 1.0 + NOISE)), draws, NOISE, np.array([1, 0])
    )["pair_kl"]
    r = correlation / (1.0 + NOISE)
    assert found.mean() == pytest.approx(-0.5 * expected * np.log(1.0 - r * r), abs=0.12)
