"""Distances of predictive distributions, compared with closed forms, slow versions and large samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from ep_bench import scoring
from ep_bench.experiments import distribution_distances
from ep_bench.predictions import Predictive

Mixture = tuple[list[float], list[float], list[float]]  # weights, means, standard deviations


def predictive(*mixtures: Mixture) -> Predictive:
    """Return one observation per mixture; all mixtures have the same weights."""
    weights, means, deviations = zip(*mixtures, strict=True)
    assert all(w == weights[0] for w in weights)
    return Predictive(weights[0], np.array(means).T, np.array(deviations).T ** 2)


def apart(ours: Predictive, truth: Predictive) -> distribution_distances.DistributionDistances:
    return distribution_distances.compare(distribution_distances.tabulate(ours), distribution_distances.tabulate(truth))


def mean_distance(one: Mixture, other: Mixture) -> float:
    """Return E|X - Y|, component by component, by the mean of a folded Gaussian."""
    total = 0.0
    for w, m, s in zip(*one, strict=True):
        for v, n, t in zip(*other, strict=True):
            total += w * v * stats.foldnorm(abs(m - n) / np.hypot(s, t), scale=np.hypot(s, t)).mean()
    return total


def below(mixture: Mixture, y: float) -> float:
    return sum(w * ndtr((y - m) / s) for w, m, s in zip(*mixture, strict=True))


def area_between(one: Mixture, other: Mixture, pieces: int = 400) -> float:
    """Return the integral of |F - G| over small intervals by scipy's quadrature."""
    ends = [m + z * s for mixture in (one, other) for _, m, s in zip(*mixture, strict=True) for z in (-9, 9)]
    edges = np.linspace(min(ends), max(ends), pieces + 1)
    return sum(integrate.quad(lambda y: abs(below(one, y) - below(other, y)), *piece)[0] for piece in pairwise(edges))


def test_the_distance_of_gaussians_of_equal_variance_is_that_of_their_means() -> None:
    ours = Predictive.gaussian([0.0, 3.0, -1e4], [9.0, 0.01, 1.0])
    truth = Predictive.gaussian([2.5, 3.0, 1e4], [9.0, 0.01, 1.0])
    np.testing.assert_allclose(apart(ours, truth).wasserstein, [2.5, 0.0, 2e4], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("std", [0.5, 1.001, 30.0, 1e4])
def test_gaussians_of_equal_mean(std: float) -> None:
    """The functions cross at the mean: (s - 1) E|Z|, and E|X - Y| - E|X - X'| / 2 - E|Y - Y'| / 2 in closed form."""
    found = apart(Predictive.gaussian([7.0], [std**2]), Predictive.gaussian([7.0], [1.0]))
    scale = max(std, 1.0) * 17.0  # the range
    expected = abs(std - 1.0) * np.sqrt(2 / np.pi)
    np.testing.assert_allclose(found.wasserstein, expected, rtol=0, atol=1e-6 * scale)
    excess = np.sqrt(2 / np.pi) * np.hypot(std, 1.0) - (std + 1.0) / np.sqrt(np.pi)
    np.testing.assert_allclose(found.excess, excess, rtol=0, atol=1e-6 * scale)


def test_point_masses_have_closed_forms() -> None:
    """Components with variance 0, alone and among others: |F - G| and its square are 1 between the points."""
    found = apart(Predictive.gaussian([1.0, 4.0], [0.0, 0.0]), Predictive.gaussian([3.5, 4.0], [0.0, 0.0]))
    np.testing.assert_allclose(found.wasserstein, [2.5, 0.0], atol=1e-5)
    np.testing.assert_allclose(found.excess, [2.5, 0.0], atol=1e-5)
    two = Predictive([0.25, 0.75], [[0.0], [8.0]], [[0.0], [0.0]])
    found = apart(two, Predictive([0.5, 0.5], [[0.0], [8.0]], [[0.0], [0.0]]))
    np.testing.assert_allclose(found.wasserstein, 8 * 0.25, rtol=1e-5)
    np.testing.assert_allclose(found.excess, 8 * 0.25**2, rtol=1e-5)


LIGHT_SPIKE: Mixture = ([0.96, 0.04], [0.0, 1.3], [4.0, 0.002])
PAIRS = [
    (([0.3, 0.7], [-2.0, 1.0], [1.0, 0.5]), ([1.0], [0.0], [2.0])),
    (([0.3, 0.5, 0.2], [-20.0, 0.0, 33.0], [3.0, 3.0, 3.0]), ([0.6, 0.4], [-15.0, 20.0], [3.0, 9.0])),
    (LIGHT_SPIKE, ([1.0], [0.4], [4.0])),
    (([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0]), ([0.5, 0.5], [-1.01, 1.01], [1.0, 1.0])),
]


@pytest.mark.parametrize(("ours", "truth"), PAIRS)
def test_mixtures_against_slow_versions(ours: Mixture, truth: Mixture) -> None:
    found = apart(predictive(ours), predictive(truth))
    spread = 17.0 * max(ours[2] + truth[2]) + np.ptp(ours[1] + truth[1])
    np.testing.assert_allclose(found.wasserstein, area_between(ours, truth), rtol=0, atol=1e-6 * spread)
    own = 0.5 * mean_distance(truth, truth)
    excess = mean_distance(ours, truth) - 0.5 * mean_distance(ours, ours) - own
    np.testing.assert_allclose(found.excess, excess, rtol=0, atol=1e-6 * spread)
    np.testing.assert_allclose(
        distribution_distances.own_crps(distribution_distances.tabulate(predictive(truth))), own, atol=1e-6 * spread
    )


def test_large_samples_have_the_same_distances() -> None:
    """Quantiles at many uniform levels are a sample without randomness; scipy compares samples."""
    ours = Predictive([0.3, 0.7], [[-20.0], [10.0]], [[4.0], [25.0]])
    truth = Predictive([0.6, 0.4], [[-15.0], [20.0]], [[9.0], [9.0]])
    rng = np.random.default_rng(1)
    expected = stats.wasserstein_distance(ours.sample(rng, 400_000)[:, 0], truth.sample(rng, 400_000)[:, 0])
    standard_error = np.sqrt((ours.variance() + truth.variance()) / 400_000)[0]
    assert apart(ours, truth).wasserstein[0] == pytest.approx(expected, abs=4 * standard_error)


def test_the_expected_crps_is_the_mean_of_the_scores() -> None:
    """The reference's own CRPS and the excess sum to the CRPS of ``scoring`` over quantiles of the reference."""
    ours = Predictive([0.3, 0.7], [[-2.0], [1.0]], [[1.0], [0.25]])
    truth = Predictive.gaussian([0.5], [4.0])
    y = 0.5 + 2.0 * stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    repeated = Predictive(ours.weights, np.repeat(ours.means, 4000, axis=1), np.repeat(ours.variances, 4000, axis=1))
    expected = distribution_distances.own_crps(distribution_distances.tabulate(truth)) + apart(ours, truth).excess
    assert expected[0] == pytest.approx(scoring.crps(repeated, y), rel=1e-3)


def test_distances_have_the_unit_of_the_target() -> None:
    ours, truth = Predictive.gaussian([0.0, 1.0], [1.0, 4.0]), Predictive.gaussian([0.5, 1.0], [2.0, 1.0])
    plain, scaled = apart(ours, truth), apart(ours.rescale(5.0, 1e3), truth.rescale(5.0, 1e3))
    np.testing.assert_allclose(scaled.wasserstein, 1e3 * plain.wasserstein, rtol=1e-5)
    np.testing.assert_allclose(scaled.excess, 1e3 * plain.excess, rtol=1e-5)


def test_distances_are_zero_to_itself_and_symmetric() -> None:
    rng = np.random.default_rng(4)
    ours = distribution_distances.tabulate(Predictive.equal_mixture(rng.normal(0, 9, (40, 3)), 1.0))
    theirs = distribution_distances.tabulate(Predictive.equal_mixture(rng.normal(1, 9, (25, 3)), 4.0))
    assert not np.any(distribution_distances.compare(ours, ours))
    np.testing.assert_allclose(
        distribution_distances.compare(ours, theirs), distribution_distances.compare(theirs, ours), rtol=1e-12
    )


def test_thousands_of_components_need_few_breakpoints() -> None:
    """Such mixtures are predictions of samplers with known noise; the number of breakpoints depends on smoothness."""
    means = 20.0 * np.random.default_rng(5).standard_normal((3000, 2)) ** 3
    for n, curve in enumerate(distribution_distances.tabulate(Predictive.equal_mixture(means, 9.0))):
        y = np.linspace(curve.x[0] - 5, curve.x[-1] + 5, 501)
        exact = ndtr((y[:, None] - means[:, n]) / 3.0).mean(axis=1)
        clipped = curve(np.clip(y, curve.x[0], curve.x[-1]))
        np.testing.assert_allclose(clipped, exact, rtol=0, atol=1e-5)
        mid = 0.5 * (curve.x[1:] + curve.x[:-1])
        exact = ndtr((mid[:, None] - means[:, n]) / 3.0).mean(axis=1)
        assert np.abs(np.diff(curve.x) * (curve(mid) - exact)).sum() < 1e-6 * np.ptp(curve.x)
        assert len(curve.x) < 1000


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        distribution_distances.tabulate(Predictive.gaussian([np.nan], [1.0]))
    with pytest.raises(ValueError, match="not finite"):
        distribution_distances.tabulate(Predictive.gaussian([0.0], [np.inf]))
