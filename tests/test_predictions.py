"""Densities and quantiles as predictions: against scipy's distributions and the mixture of Gaussians."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ep_bench import crps, scoring
from ep_bench.predictions import (
    ASKED_LEVELS,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
    missing_density,
)
from ep_bench.types import Array

pytestmark = pytest.mark.xdist_group("scoringrules")  # its import takes seconds

rng = np.random.default_rng(0)
N = 30
MEAN, SCALE = rng.normal(0.0, 10.0, N), rng.exponential(2.0, N) + 0.1
Y = MEAN + SCALE * np.concatenate([rng.normal(0.0, 1.5, N - 4), [0.0, 8.0, -12.0, 30.0]])


def density(d: Any, *, quantile: bool = True, broadcasts: bool = True) -> DensityPrediction:
    return DensityPrediction(
        logpdf=d.logpdf,
        cdf=d.cdf,
        mean=d.mean(),
        variance=d.var(),
        quantile=d.ppf if quantile else None,
        broadcasts=broadcasts,
    )


def test_a_density_of_a_gaussian_is_the_gaussian() -> None:
    ours, gaussian = density(stats.norm(MEAN, SCALE)), Predictive.gaussian(MEAN, SCALE**2)
    for left, right in ((ours, gaussian), (ours.rescale(3.0, 7.0), gaussian.rescale(3.0, 7.0))):
        for name in ("mean", "variance", "std"):
            np.testing.assert_allclose(getattr(left, name)(), getattr(right, name)(), rtol=1e-12)
        for name in ("logpdf", "logpdf_gaussian", "cdf"):
            np.testing.assert_allclose(getattr(left, name)(Y), getattr(right, name)(Y), rtol=1e-10)
        for p in (1e-9, 0.025, 0.5, 0.975):
            np.testing.assert_allclose(left.quantile(p), right.quantile(p), rtol=1e-10)
        scores, expected = scoring.score(left, Y), scoring.score(right, Y)
        assert scores.keys() == expected.keys()
        np.testing.assert_allclose(list(scores.values()), list(expected.values()), rtol=1e-10)
        assert scoring.score_training(left, Y) == pytest.approx(scoring.score_training(right, Y), rel=1e-10)


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.5, 0.999, 1.0 - 1e-9])
@pytest.mark.parametrize(
    "d",
    [
        stats.laplace(MEAN, SCALE),
        stats.t(1.5, MEAN, SCALE),
        stats.cauchy(MEAN, SCALE),
        stats.uniform(MEAN, SCALE),
        stats.lognorm(0.3 + SCALE / 10.0, scale=np.exp(MEAN / 10.0)),
    ],
    ids=["laplace", "t", "cauchy", "uniform", "lognorm"],
)
def test_without_quantiles_the_distribution_function_is_bisected(d: Any, p: float) -> None:
    with np.errstate(invalid="ignore"):
        ours = density(d, quantile=False)
    np.testing.assert_allclose(ours.cdf(ours.quantile(p)), p, rtol=1e-9, atol=1e-14)
    if p not in {1e-9, 1.0 - 1e-9}:
        np.testing.assert_allclose(ours.quantile(p), d.ppf(p), rtol=1e-9)


def test_a_variance_that_is_not_there_is_infinite() -> None:
    assert np.all(np.isinf(density(stats.t(1.7, MEAN, SCALE)).std()))
    none = DensityPrediction(logpdf=lambda y: y, cdf=lambda y: y, mean=[0.0], variance=[np.nan])
    assert np.isinf(none.variance()[0])
    with pytest.raises(ValueError, match="must be non-negative"):
        DensityPrediction(logpdf=lambda y: y, cdf=lambda y: y, mean=[0.0], variance=[-1.0])


# Quantiles

PERCENTS = np.arange(1, 100) / 100


def quantiles(levels: Any, points: Array | None = None) -> QuantilePrediction:
    return QuantilePrediction(levels, stats.norm.ppf(np.asarray(levels)[:, None], MEAN, SCALE), points)


def test_quantiles_answer_what_they_know() -> None:
    few = quantiles([0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_array_equal(few.quantile(0.25), few.values[1])
    np.testing.assert_array_equal(few.quantile(1.0 - 0.05), few.values[4])
    for p in (0.025, 0.3, 0.1, 0.96):
        assert not few.answers(p)
        with pytest.raises(ValueError, match=r"no quantile at .*: the levels are 0\.05, 0\.25"):
            few.quantile(p)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        few.quantile(0.0)


def test_between_near_levels_the_line_is_near_the_curve() -> None:
    dense = quantiles(PERCENTS)
    for p in (0.025, 0.055, 0.333, 0.975):
        np.testing.assert_allclose(dense.quantile(p), stats.norm.ppf(p, MEAN, SCALE), atol=0.015 * SCALE.max())
    assert not dense.answers(0.012)  # between 0.01 and 0.02 the curve bends too much
    assert not dense.answers(0.995)


def test_the_mean_of_quantiles_is_the_methods_own_or_the_median() -> None:
    np.testing.assert_array_equal(quantiles([0.1, 0.9], points=Y).mean(), Y)
    np.testing.assert_allclose(quantiles([0.1, 0.5, 0.9]).mean(), MEAN)
    with pytest.raises(ValueError, match="no means and no medians"):
        quantiles([0.1, 0.9]).mean()


def test_quantiles_change_their_unit() -> None:
    moved = quantiles([0.1, 0.9], points=MEAN).rescale(5.0, 2.0)
    np.testing.assert_allclose(moved.quantile(0.9), 5.0 + 2.0 * stats.norm.ppf(0.9, MEAN, SCALE))
    np.testing.assert_allclose(moved.mean(), 5.0 + 2.0 * MEAN)


def test_quantiles_that_cross_are_sorted_and_kept_as_they_came() -> None:
    given = np.array([[3.0, 1.0, np.nan], [2.0, 2.0, 2.0], [1.0, 3.0, 1.0]])
    crossed = QuantilePrediction([0.25, 0.5, 0.75], given)
    np.testing.assert_array_equal(crossed.values[:, :2], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(crossed.values[:, 2], given[:, 2])
    np.testing.assert_array_equal(crossed.given, given)
    np.testing.assert_array_equal(crossed.rescale(1.0, 2.0).given, 1.0 + 2.0 * given)
    scores = scoring.score(QuantilePrediction([0.25, 0.5, 0.75], given[:, :1]), np.array([2.5]))
    assert (scores["width50"], scores["coverage50"]) == (2.0, 1.0)


@pytest.mark.parametrize("levels", [[0.5, 0.1], [0.1, 0.1], [0.0, 0.5], [0.5, 1.0], [0.1, np.nan], []])
def test_levels_ascend_between_0_and_1(levels: list[float]) -> None:
    with pytest.raises(ValueError, match="levels"):
        QuantilePrediction(levels, np.zeros((len(levels), 3)))


def test_what_is_asked_for_answers_every_interval() -> None:
    asked = QuantilePrediction(ASKED_LEVELS, np.zeros((len(ASKED_LEVELS), 1)))
    for p in (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975):
        assert np.abs(asked.levels - p).min() < 1e-12
    assert scoring.is_dense(asked)


def test_reasons() -> None:
    assert not missing_density(Predictive.gaussian([0.0], [1.0]))
    assert not missing_density(density(stats.laplace(MEAN, SCALE)))
    assert missing_density(quantiles([0.5])) == "no log-likelihood: the method gives quantiles only"
    assert missing_density(PointPrediction(Y)) == "no log-likelihood: the method gives points only"


# Scores


@pytest.mark.parametrize("quantile", [True, False])
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "d", "arguments", "y"),
    [
        ("normal", stats.norm(MEAN, SCALE), (MEAN, SCALE), Y),
        ("laplace", stats.laplace(MEAN, SCALE), (MEAN, SCALE), Y),
        ("logistic", stats.logistic(MEAN, SCALE), (MEAN, SCALE), Y),
        ("t", stats.t(3.0, MEAN, SCALE), (3.0, MEAN, SCALE), Y),
        ("t", stats.t(1.3, MEAN, SCALE), (1.3, MEAN, SCALE), Y),
        ("lognormal", stats.lognorm(SCALE / 4.0, scale=np.exp(MEAN / 9.0)), (MEAN / 9.0, SCALE / 4.0), np.abs(Y)),
        ("exponential", stats.expon(scale=SCALE), (1.0 / SCALE,), np.abs(Y)),
        ("gamma", stats.gamma(0.7, scale=SCALE), (0.7, 1.0 / SCALE), np.abs(Y)),
        ("uniform", stats.uniform(MEAN, SCALE), (MEAN, MEAN + SCALE), Y),
    ],
)
def test_the_crps_of_densities_is_the_closed_form(name: str, d: Any, arguments: Any, y: Array, quantile: bool) -> None:
    import scoringrules

    expected = getattr(scoringrules, f"crps_{name}")(y, *arguments)
    with np.errstate(invalid="ignore"):
        ours = density(d, quantile=quantile)
    np.testing.assert_allclose(crps.integral(ours, y), expected, rtol=1e-8)
    assert scoring.crps(ours, y) == pytest.approx(np.mean(expected), rel=1e-8)


def test_the_crps_of_a_gaussian_density_is_the_closed_form() -> None:
    z = (Y - MEAN) / SCALE
    expected = SCALE * (z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    np.testing.assert_allclose(crps.integral(density(stats.norm(MEAN, SCALE)), Y), expected, rtol=1e-8)


def test_the_crps_of_a_distribution_with_many_kinks(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = np.array([0.0, 0.3, 0.31, 1.0, 5.0, 5.5])
    cdf = stats.rv_histogram((np.array([1.0, 5.0, 2.0, 0.1, 3.0]), edges), density=False)
    y = np.array([-2.0, 0.0, 0.305, 0.6, 4.0, 5.2, 9.0])
    ours = DensityPrediction(
        logpdf=cdf.logpdf, cdf=cdf.cdf, mean=np.full(7, cdf.mean()), variance=np.full(7, cdf.var()), broadcasts=True
    )
    # Exactly, from the pieces: on each the integrand is a square of a straight line.
    exact = []
    for target in y:
        cuts = np.unique(np.concatenate([edges, [target]]))
        total = 0.0
        for left, right in itertools.pairwise(cuts):
            step = float(left >= target)
            u, v = cdf.cdf(left) - step, cdf.cdf(right) - step
            total += (right - left) * (u * u + u * v + v * v) / 3.0
        exact.append(total)
    np.testing.assert_allclose(crps.integral(ours, y), exact, rtol=1e-6)
    monkeypatch.setattr(crps, "_CHUNK", 1)
    np.testing.assert_allclose(crps.integral(ours, y), exact, rtol=1e-6)


def steps(points: Array, n: int) -> DensityPrediction:
    """Return an empirical distribution, shifted by one value per data point."""
    shift = np.arange(n) * np.sqrt(2.0)
    return DensityPrediction(
        logpdf=np.zeros_like,
        cdf=lambda y: np.searchsorted(points, y - shift, side="right") / len(points),
        mean=points.mean() + shift,
        variance=np.full(n, points.var() + 1.0),
        broadcasts=True,
    )


@pytest.mark.parametrize("jumps", [1, 2, 7])
def test_the_crps_of_a_distribution_with_jumps(jumps: int) -> None:
    points, shift = np.sort(np.random.default_rng(jumps).normal(size=jumps)), np.arange(4) * np.sqrt(2.0)
    y = np.array([0.3, -1.0, 4.0, 4.2])
    apart = np.abs(points[:, None] + shift - y).mean(axis=0)
    expected = apart - 0.5 * np.abs(points[:, None] - points).mean()
    np.testing.assert_allclose(crps.integral(steps(points, 4), y), expected, rtol=1e-6)


def test_a_crps_that_cannot_be_vouched_for_is_left_out() -> None:
    points = np.sort(np.random.default_rng(0).normal(size=3000))
    many = steps(points, 2)
    assert np.isnan(crps.integral(many, np.zeros(2))).all()
    scores = scoring.score(many, np.zeros(2))
    assert "crps" not in scores
    assert {"pit_error", "coverage90", "width90", "rmse"} <= scores.keys()


def test_the_scores_of_a_density_from_their_definitions() -> None:
    d = stats.laplace(MEAN, SCALE)
    scores = scoring.score(density(d), Y)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((Y - MEAN) ** 2)))
    assert scores["ll"] == pytest.approx(d.logpdf(Y).mean())
    assert scores["ll_gaussian"] == pytest.approx(stats.norm(MEAN, d.std()).logpdf(Y).mean())
    assert scores["pit_error"] == pytest.approx(scoring.pit_error(d.cdf(Y)))
    for level in (50, 90, 95):
        low, high = d.interval(level / 100)
        assert scores[f"coverage{level}"] == pytest.approx(np.mean((low <= Y) & (high >= Y)))
        assert scores[f"width{level}"] == pytest.approx(np.mean(high - low))


def test_the_scores_of_quantiles() -> None:
    near = MEAN + SCALE * rng.normal(size=N)
    scores = scoring.score(quantiles(ASKED_LEVELS, points=MEAN), near)
    full = scoring.score(Predictive.gaussian(MEAN, SCALE**2), near)
    exact = [key for key in full if key.startswith(("coverage", "width", "rmse", "mae", "se_"))]
    assert scores.keys() == {*exact, "crps", "pit_error"}
    for key in exact:
        assert scores[key] == pytest.approx(full[key], rel=1e-9)
    assert scores["crps"] == pytest.approx(full["crps"], rel=2e-3)
    assert scoring.score_training(quantiles([0.5]), near) == {"train_rmse": pytest.approx(full["rmse"])}


def test_the_crps_of_quantiles_is_the_mean_pinball_loss_twice() -> None:
    even = (np.arange(20) + 0.5) / 20
    ours = quantiles(even)
    losses = [np.maximum(p * (Y - q), (p - 1.0) * (Y - q)) for p, q in zip(even, ours.values, strict=True)]
    assert scoring.crps(ours, Y) == pytest.approx(2.0 * np.mean(losses), rel=1e-12)
    gaussian = scoring.crps(Predictive.gaussian(MEAN, SCALE**2), Y)
    assert scoring.crps(ours, Y) == pytest.approx(gaussian, rel=0.01)
    assert "crps" in scoring.score(ours, Y)


@pytest.mark.parametrize("levels", [np.arange(1, 20) / 20, (np.arange(10) + 0.5) / 10, [0.025, 0.5, 0.975]])
def test_few_quantiles_have_no_crps(levels: Any) -> None:
    assert "crps" not in scoring.score(quantiles(levels), Y)


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_quantiles_of_mixtures_invert_the_distribution_function(spread: float) -> None:
    """Components of similar and of very different widths; Newton's steps suffice for the former only."""
    rng = np.random.default_rng(5)
    means, stds = rng.normal(size=(30, 20)), np.exp(spread * rng.normal(size=(30, 20)))
    ours = Predictive(rng.dirichlet(np.ones(30)), means, stds**2)
    for p in (1e-6, 0.025, 0.5, 0.9):
        np.testing.assert_allclose(ours.cdf(ours.quantile(p)), p, rtol=1e-9)


def test_blocks_of_observations_do_not_change_a_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large mixtures are evaluated in blocks, and equal variances of a component are stored once."""
    rng = np.random.default_rng(6)
    means, y = rng.normal(size=(7, 10)), rng.normal(size=10)
    whole = Predictive(np.full(7, 1 / 7), 2.0 + 3.0 * means, np.full((7, 10), 9.0 * 0.3), beyond=9.0)
    monkeypatch.setattr("ep_bench.predictions.mixture._BLOCK", 21)
    ours = Predictive.equal_mixture(means, 0.3).rescale(2.0, 3.0)
    assert ours.variances.strides[1] == 0
    for found, expected in (
        (ours.logpdf(y), whole.logpdf(y)),
        (ours.cdf(0.5), whole.cdf(0.5)),
        (ours.quantile(0.3), whole.quantile(0.3)),
        (ours.variance() + 9.0, whole.variance()),
        (ours.sample(np.random.default_rng(1), 2), whole.sample(np.random.default_rng(1), 2)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_component_without_variance_has_no_density_elsewhere():
    mixture = Predictive(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert mixture.logpdf([1.0, 0.0]).tolist() == [pytest.approx(np.log(0.5) + stats.norm.logpdf(0.0)), np.inf]


def test_pit_of_quantiles_is_that_of_their_distribution() -> None:
    found = QuantilePrediction(ASKED_LEVELS, np.tile(stats.norm.ppf(ASKED_LEVELS)[:, None], (1, 7)))
    y = np.array([-9.0, -2.0, -0.5, 0.0, 1.0, 2.2, 9.0])
    assert found.pit(y) == pytest.approx(stats.norm.cdf(y), abs=0.003)
    assert np.all(np.diff(found.pit(y)) > 0.0)


def test_pit_in_a_run_of_equal_quantiles_is_the_middle() -> None:
    found = QuantilePrediction([0.2, 0.4, 0.6, 0.8], np.array([[0.0], [1.0], [1.0], [2.0]]))
    assert found.pit([1.0]) == pytest.approx([0.5])
