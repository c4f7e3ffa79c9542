"""Scores against their definitions, quadrature and worked examples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from ep_bench import crps, scoring
from ep_bench.predictions import PointPrediction, Predictive
from ep_bench.types import Array

pytestmark = pytest.mark.xdist_group("scoringrules")  # its import takes seconds


def test_crps_of_a_standard_normal() -> None:
    for y, expected in ((0.0, 0.233695), (0.5, 0.3314035), (1.0, 0.6024414)):
        assert scoring.crps(Predictive.gaussian([0.0], [1.0]), np.array([y])) == pytest.approx(expected, abs=5e-7)


def test_crps_of_a_mixture() -> None:
    mixture = Predictive([0.5, 0.5], [[0.0], [1.0]], [[1.0], [4.0]])
    assert scoring.crps(mixture, np.array([0.5])) == pytest.approx(0.3574384, abs=5e-8)


def test_crps_of_a_weighted_mixture_is_its_integral_whatever_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    weights = np.array([0.1, 0.6, 0.3])
    mixture = Predictive(weights, rng.normal(0, 2, (3, 5)), rng.exponential(1, (3, 5)) + 0.1)
    y = rng.normal(0, 2, 5)
    whole = scoring.crps(mixture, y)
    monkeypatch.setattr(crps, "_CHUNK", 1)
    assert scoring.crps(mixture, y) == pytest.approx(whole, rel=1e-12)

    def integrand(z: float, i: int) -> float:
        cdf = float(weights @ stats.norm(mixture.means[:, i], np.sqrt(mixture.variances[:, i])).cdf(z))
        return (cdf - (z >= y[i])) ** 2

    exact = [
        integrate.quad(integrand, -40, y[i], args=(i,), limit=200)[0]
        + integrate.quad(integrand, y[i], 40, args=(i,), limit=200)[0]
        for i in range(5)
    ]
    assert whole == pytest.approx(np.mean(exact), rel=1e-6)


def test_scores_from_their_definitions() -> None:
    rng = np.random.default_rng(0)
    y, mean, variance = rng.normal(size=50), rng.normal(size=50), rng.exponential(size=50) + 0.2
    scores = scoring.score(Predictive.gaussian(mean, variance), y)
    norm = stats.norm(mean, np.sqrt(variance))
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert scores["mae"] == pytest.approx(np.mean(abs(y - mean)))
    assert scores["ll"] == scores["ll_gaussian"] == pytest.approx(norm.logpdf(y).mean())
    assert scores["ll_prct1"] == pytest.approx(np.percentile(norm.logpdf(y), 1))
    for level in (50, 90, 95):
        low, high = norm.interval(level / 100)
        assert scores[f"coverage{level}"] == pytest.approx(np.mean((low <= y) & (y <= high)))
        assert scores[f"width{level}"] == pytest.approx(np.mean(high - low))


def test_pit_error_against_a_fine_grid() -> None:
    pit = np.random.default_rng(2).beta(2, 1, 37)
    u = (np.arange(200_000) + 0.5) / 200_000
    empirical = (pit[:, None] <= u[None, ::20]).mean(axis=0)
    assert scoring.pit_error(pit) == pytest.approx(np.mean(abs(empirical - u[::20])), abs=1e-4)
    assert scoring.pit_error(np.zeros(4)) == pytest.approx(0.5)
    assert scoring.pit_error(np.array([0.5])) == pytest.approx(0.25)


def test_an_infinite_variance_omits_the_scores_that_need_it() -> None:
    wide = Predictive([0.5, 0.5], [[0.0], [0.0]], [[1.0], [np.inf]])
    scores = scoring.score(wide, np.array([0.3]))
    assert "ll_gaussian" not in scores
    assert "width95" not in scores
    assert np.isfinite([scores["ll"], scores["rmse"], scores["coverage95"]]).all()


def test_a_point_prediction_has_no_likelihood() -> None:
    scores = scoring.score(PointPrediction(np.zeros(3)), np.ones(3))
    assert scores["rmse"] == 1.0
    assert not {"ll", "crps", "coverage95"} & scores.keys()
    assert "train_ll" not in scoring.score_training(PointPrediction(np.zeros(3)), np.ones(3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("components", [1, 2, 30])
def test_crps_of_mixtures_against_scoringrules(components: int) -> None:
    import scoringrules

    rng = np.random.default_rng(components)
    weights = rng.dirichlet(np.ones(components))
    means, variances = rng.normal(0.0, 3.0, (components, 80)), rng.gamma(1.0, size=(components, 80))
    y = rng.normal(size=80)
    shared = np.broadcast_to(weights, (80, components))
    expected = scoringrules.crps_mixnorm(y, means.T, np.sqrt(variances).T, shared).mean()
    assert scoring.crps(Predictive(weights, means, variances), y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("components", [1, 65])
def test_crps_of_equal_gaussians_is_the_closed_form(components: int) -> None:
    z = np.linspace(-9.0, 9.0, 13)
    weights, means = np.full(components, 1.0 / components), np.full((components, 13), 3.0)
    found = scoring.crps(Predictive(weights, means, np.full((components, 13), 4.0)), 3.0 + 2.0 * z)
    expected = 2.0 * (z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    assert found == pytest.approx(expected.mean(), rel=1e-9)


def test_crps_of_a_certain_prediction_is_its_distance() -> None:
    certain = Predictive(np.array([0.5, 0.5]), np.array([[1.0], [4.0]]), np.zeros((2, 1)))
    assert scoring.crps(certain, np.array([2.0])) == pytest.approx(1.5 - 0.75)


def mixtures(components: int, rows: int) -> dict[str, Predictive]:
    rng = np.random.default_rng(components)
    even, means = np.full(components, 1.0 / components), rng.normal(size=(components, rows))
    narrow = np.ones((components, rows))
    narrow[::7] = 0.0
    narrow[1::7] = 1e-4
    wide = np.where(np.arange(components)[:, None] == 3, 1e6, 0.5 + narrow)
    return {
        "alike": Predictive(even, 0.3 * means, np.ones((components, rows))),
        "uneven": Predictive(rng.dirichlet(np.ones(components)), 3.0 * means, rng.gamma(1.0, size=means.shape)),
        "some points": Predictive(even, means, narrow),
        "all points": Predictive(even, means, np.zeros_like(means)),
        "one wide": Predictive(even, means, wide),
        "far from 0": Predictive(even, 1e6 + means, narrow + 0.5),
    }


def many_components(components: int, kind: str) -> tuple[Predictive, Array]:
    mixture = mixtures(components, 12)[kind]
    y = np.random.default_rng(3).normal(mixture.mean(), 1.0)
    y[0] = mixture.means[0, 0]
    return mixture, y


@pytest.mark.parametrize("kind", list(mixtures(65, 1)))
@pytest.mark.parametrize("components", [65, 300])
def test_crps_of_many_components_is_that_of_all_pairs(
    components: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture, y = many_components(components, kind)
    found = scoring.crps(mixture, y)
    monkeypatch.setattr(crps, "_FEW", components)
    assert found == pytest.approx(scoring.crps(mixture, y), rel=1e-9)


@pytest.mark.parametrize(
    ("apart", "widest", "power"),
    [
        (0.1, 18.0, 0.0),
        (0.1, 44.0, -1.5),  # as a Student-t with 3 degrees of freedom: the widest have a weight of 1e-30
        (100.0, 18.0, 0.0),  # too far apart for growing steps
    ],
)
def test_crps_of_components_of_very_different_widths_is_that_of_all_pairs(
    apart: float, widest: float, power: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    means, variances = apart * rng.normal(size=(1000, 2)), np.exp(rng.uniform(-8.0, widest, (1000, 2)))
    weights = rng.dirichlet(np.ones(1000)) * variances[:, 0] ** power
    mixture, y, found = Predictive(weights / weights.sum(), means, variances[:, :1] + np.zeros(2)), np.ones(2), []
    compute = crps._distance_by_growing_steps
    monkeypatch.setattr(crps, "_distance_by_growing_steps", lambda *a: found.append(compute(*a)) or found[-1])
    value = scoring.crps(mixture, y)
    assert [one is None for one in found] == [apart > 1.0]
    monkeypatch.setattr(crps, "_FEW", 1000)
    assert value == pytest.approx(scoring.crps(mixture, y), rel=1e-9 if apart > 1.0 else 1e-12)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", list(mixtures(65, 1)))
@pytest.mark.parametrize("components", [65, 300])
def test_crps_of_many_components_against_scoringrules(components: int, kind: str) -> None:
    import scoringrules

    mixture, y = many_components(components, kind)
    shared = np.broadcast_to(mixture.weights, mixture.means.T.shape)
    deviations = np.maximum(np.sqrt(mixture.variances), 1e-12).T
    expected = scoringrules.crps_mixnorm(y, mixture.means.T, deviations, shared).mean()
    assert scoring.crps(mixture, y) == pytest.approx(expected, rel=1e-8)


def test_crps_of_thousands_of_components_takes_little_memory() -> None:
    import tracemalloc

    mixture = mixtures(4000, 20)["alike"]
    tracemalloc.start()
    scoring.crps(mixture, np.zeros(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * mixture.means.nbytes


@pytest.mark.parametrize("kind", ["mixture", "points"])
def test_training_scores_of_blocks_join_to_those_of_the_whole(kind: str) -> None:
    rng = np.random.default_rng(8)
    y, means, variances = rng.normal(size=50), rng.normal(size=(3, 50)), rng.gamma(1.0, size=(3, 50))

    def scores(rows: slice) -> dict[str, float]:
        even = np.full(3, 1 / 3)
        mixture = Predictive(even, means[:, rows], variances[:, rows])
        return scoring.score_training(mixture if kind == "mixture" else PointPrediction(mixture.mean()), y[rows])

    whole = scores(slice(None))
    assert whole.keys() == ({"train_rmse", "train_ll"} if kind == "mixture" else {"train_rmse"})
    for edges in ([0, 50], [0, 1, 50], [0, 20, 40, 50]):
        parts = [scores(slice(a, b)) for a, b in pairwise(edges)]
        assert scoring.joined(parts, np.diff(edges) / 50) == pytest.approx(whole, rel=1e-12)


def test_pit_histogram_counts_all_test_points() -> None:
    prediction = Predictive.gaussian(np.zeros(5), np.ones(5))
    counts = scoring.pit_histogram(prediction, np.array([-9.0, -9.0, 0.1, 0.1, 9.0]))
    assert counts == [2, 0, 0, 0, 0, 2, 0, 0, 0, 1]
    assert scoring.pit_histogram(PointPrediction(np.zeros(5)), np.zeros(5)) == []
