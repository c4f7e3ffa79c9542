"""The mixture of Gaussians that every method answers with, against scipy's distributions and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from ep_bench import scores
from ep_bench.errors import UserError, nearest
from ep_bench.predictions import Predictive, mixture

MIXTURE = Predictive([0.5, 0.5], [[0.0], [1.0]], [[1.0], [4.0]])


def density(y: float) -> float:
    return 0.5 * stats.norm(0, 1).pdf(y) + 0.5 * stats.norm(1, 2).pdf(y)


def test_a_gaussian_is_scipys() -> None:
    mean, variance, y = np.array([0.3, -2.0]), np.array([0.5, 9.0]), np.array([1.0, 40.0])
    ours, theirs = Predictive.gaussian(mean, variance), stats.norm(mean, np.sqrt(variance))
    np.testing.assert_allclose(ours.logpdf(y), theirs.logpdf(y), rtol=1e-14)
    np.testing.assert_allclose(ours.cdf(y), theirs.cdf(y), rtol=1e-14)
    np.testing.assert_allclose(ours.quantile(0.975), theirs.ppf(0.975), rtol=1e-14)
    np.testing.assert_allclose(ours.std(), np.sqrt(variance))


def test_a_mixtures_density_and_moments() -> None:
    # Worked example: 0.5 N(0, 1) + 0.5 N(1, 2^2) at 0.5.
    np.testing.assert_allclose(MIXTURE.logpdf([0.5]), -1.2993841, atol=5e-8)
    np.testing.assert_allclose(MIXTURE.logpdf_gaussian([0.5]), -1.424739, atol=5e-7)
    mean = integrate.quad(lambda y: y * density(y), -30, 30)[0]
    variance = integrate.quad(lambda y: (y - mean) ** 2 * density(y), -30, 30)[0]
    np.testing.assert_allclose([MIXTURE.mean()[0], MIXTURE.variance()[0]], [mean, variance], rtol=1e-9)
    np.testing.assert_allclose(MIXTURE.cdf([0.7])[0], integrate.quad(density, -30, 0.7)[0], rtol=1e-9)


def test_a_variance_of_zero_is_a_step_at_the_mean() -> None:
    with np.errstate(all="raise"):
        steps = Predictive.gaussian(np.zeros(4), np.zeros(4)).cdf([-1.0, 0.0, 1.0, np.nan])
        mixed = Predictive([0.25, 0.75], [[0.0], [0.0]], [[0.0], [1.0]]).cdf([0.0])
    np.testing.assert_array_equal(steps, [0.0, 1.0, 1.0, np.nan])
    np.testing.assert_array_equal(mixed, 0.25 + 0.75 * 0.5)


def test_weights_that_are_no_numbers_are_refused() -> None:
    for weights in ([np.nan, np.nan], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="weights must be non-negative and sum to 1, found a sum of nan"):
            Predictive(weights, np.zeros((2, 1)), np.ones((2, 1)))


def test_densities_far_out_do_not_underflow() -> None:
    far = MIXTURE.logpdf([200.0])[0]
    np.testing.assert_allclose(far, np.log(0.5) + stats.norm(1, 2).logpdf(200.0), rtol=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.025, 0.5, 0.9, 1 - 1e-6])
def test_a_quantile_undoes_the_distribution_function(p: float) -> None:
    rng = np.random.default_rng(3)
    wide = Predictive(np.full(7, 1 / 7), rng.normal(0, 50, (7, 20)), rng.exponential(1, (7, 20)))
    np.testing.assert_allclose(wide.cdf(wide.quantile(p)), p, rtol=1e-9)


@pytest.mark.parametrize("p", [0.0, 1.0, -1.0, float("nan")])
def test_a_quantile_needs_a_probability(p: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        MIXTURE.quantile(p)


def test_samples_have_the_moments() -> None:
    draws = MIXTURE.sample(np.random.default_rng(0), 200_000)[:, 0]
    error = np.sqrt(MIXTURE.variance()[0] / len(draws))
    assert abs(draws.mean() - MIXTURE.mean()[0]) < 4 * error
    assert abs(draws.std() - MIXTURE.std()[0]) < 0.02


def test_rescaling_changes_the_unit() -> None:
    shifted = MIXTURE.rescale(10.0, 3.0)
    np.testing.assert_allclose(shifted.mean(), 10 + 3 * MIXTURE.mean())
    np.testing.assert_allclose(shifted.logpdf([10 + 3 * 0.5]), MIXTURE.logpdf([0.5]) - np.log(3.0))


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="do not match"):
        Predictive([1.0], [[0.0]], [[1.0, 2.0]])


@pytest.mark.parametrize(("weights", "variance"), [([3.0, 3.0], 1.0), ([1.5, -0.5], 1.0), ([0.5, 0.5], -1.0)])
def test_weights_and_variances_must_be_those_of_a_distribution(weights: list[float], variance: float) -> None:
    with pytest.raises(ValueError, match="must be non-negative"):
        Predictive(weights, [[0.0], [1.0]], [[variance], [1.0]])


def test_a_user_error_reports_everything_in_one_line() -> None:
    error = UserError(
        "unknown name", where="a.yaml:3", field="datasets[0]", found="bostn", allowed=["boston", "wine"], name="bostn"
    )
    assert str(error) == (
        "a.yaml:3: datasets[0]: unknown name; found 'bostn'; allowed: boston, wine; did you mean 'boston'?"
    )
    assert nearest("zzzz", ["boston"]) is None


def test_a_variance_that_the_components_leave_out() -> None:
    longer = Predictive(MIXTURE.weights, MIXTURE.means, MIXTURE.variances, beyond=0.5)
    np.testing.assert_allclose(longer.variance(), MIXTURE.variance() + 0.5)
    np.testing.assert_allclose(longer.rescale(1.0, 3.0).variance(), 9.0 * longer.variance())
    np.testing.assert_allclose(longer.logpdf([0.7]), MIXTURE.logpdf([0.7]))
    endless = Predictive(MIXTURE.weights, MIXTURE.means, MIXTURE.variances, beyond=np.inf).rescale(1.0, 3.0)
    assert endless.std().tolist() == [np.inf]
    np.testing.assert_allclose(endless.quantile(0.3), MIXTURE.rescale(1.0, 3.0).quantile(0.3))


def test_weights_by_observation_are_one_mixture_per_observation() -> None:
    rng = np.random.default_rng(8)
    means, variances = rng.normal(size=(3, 5)), rng.gamma(1.0, size=(3, 5))
    weights, y = rng.dirichlet(np.ones(3), size=5).T, rng.normal(size=5)
    joined = Predictive(weights, means, variances).rescale(2.0, 3.0)
    single = [
        Predictive(weights[:, i], means[:, i : i + 1], variances[:, i : i + 1]).rescale(2.0, 3.0) for i in range(5)
    ]
    for function in ("logpdf", "cdf", "logpdf_gaussian"):
        expected = [getattr(one, function)(y[i : i + 1])[0] for i, one in enumerate(single)]
        np.testing.assert_allclose(getattr(joined, function)(y), expected, rtol=1e-12)
    np.testing.assert_allclose(joined.quantile(0.3), [one.quantile(0.3)[0] for one in single], rtol=1e-9)
    np.testing.assert_allclose(joined.mean(), [one.mean()[0] for one in single], rtol=1e-12)
    np.testing.assert_allclose(joined.variance(), [one.variance()[0] for one in single], rtol=1e-12)
    crps = np.mean([scores.crps(one, y[i : i + 1]) for i, one in enumerate(single)])
    assert scores.crps(joined, y) == pytest.approx(crps, rel=1e-12)
    draws = joined.sample(rng, 40_000)
    error = 5.0 * joined.std() / 200.0
    assert np.all(np.abs(draws.mean(axis=0) - joined.mean()) < error)
    np.testing.assert_allclose((draws <= y).mean(axis=0), joined.cdf(y), atol=0.0125)


def test_blocks_of_observations_have_their_own_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    weights, y = rng.dirichlet(np.ones(3), size=7).T, rng.normal(size=7)
    whole = Predictive(weights, rng.normal(size=(3, 7)), np.ones((3, 7)))
    expected = whole.logpdf(y)
    monkeypatch.setattr(mixture, "_BLOCK", 6)
    np.testing.assert_array_equal(whole.logpdf(y), expected)


def test_weights_of_an_observation_that_do_not_sum_to_1_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found a sum of 0\.9"):
        Predictive([[0.5, 0.5], [0.5, 0.4]], np.zeros((2, 2)), np.ones((2, 2)))
