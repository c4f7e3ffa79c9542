"""Slice sampling from known distributions, asymmetric and different from the approximation of the ellipses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from arviz_stats.base import array_stats

from ep_bench.numerics import slice_sampling
from ep_bench.numerics.slice_sampling import ChainPoint, StudentTApproximation, update_along_line, update_on_ellipse

DRAWS = 6000
ROOT = np.array([[1.0, 0.0], [0.4, 0.7]])


def log_density(x):
    """Return the log density of x = ROOT g; entries of g are logarithms of gamma variables with shapes 1 and 3."""
    first, second = x[0], (x[1] - 0.4 * x[0]) / 0.7
    return first - math.exp(min(first, 50.0)) + 3.0 * second - math.exp(min(second, 50.0))


def by_axes(at, rng):
    for axis in range(2):
        at = update_along_line(log_density, at, 1.5 * np.eye(2)[axis], rng)
    return at


def by_lines(at, rng):
    return update_along_line(log_density, at, ROOT @ rng.standard_normal(2), rng)


def by_ellipses(at, rng, t=StudentTApproximation(np.array([0.3, 0.9]), np.array([[1.5, 0.0], [0.5, 0.6]]))):  # noqa: B008
    return update_on_ellipse(log_density, at, t, rng)


def by_tiny_steps(at, rng):
    return update_along_line(log_density, at, np.array([0.2, 0.1]), rng) if rng.random() < 0.5 else by_axes(at, rng)


@pytest.mark.parametrize("update", [by_axes, by_lines, by_ellipses, by_tiny_steps])
def test_a_known_distribution(update):
    rng = np.random.default_rng(1)
    at, draws = ChainPoint(np.zeros(2), log_density(np.zeros(2))), []
    for _ in range(DRAWS):
        at = update(at, rng)
        draws.append(at.x)
    found = np.array(draws)
    exact = np.log(np.random.default_rng(0).standard_gamma([1.0, 3.0], (400_000, 2))) @ ROOT.T

    def quantities(x):
        return np.column_stack([x, x**2, x[:, 0] * x[:, 1], x < -1.0, x > 1.0])

    series, expected = quantities(found), quantities(exact)
    ess = array_stats.ess(series[None], method="mean", chain_axis=0, draw_axis=1)
    error = np.hypot(series.std(axis=0) / np.sqrt(ess), expected.std(axis=0) / np.sqrt(len(expected)))
    assert ess.min() > 300
    assert (np.abs(series.mean(axis=0) - expected.mean(axis=0)) / error).max() < 4.0


def test_the_log_density_is_that_of_the_point():
    rng = np.random.default_rng(0)
    at = ChainPoint(np.zeros(2), log_density(np.zeros(2)))
    for update in (by_axes, by_lines, by_ellipses):
        at = update(at, rng)
        assert at.log_density == log_density(at.x)
        assert not np.array_equal(at.x, np.zeros(2))


def test_points_without_density_are_never_accepted():
    rng = np.random.default_rng(0)

    def half(x):
        return -0.5 * float(x @ x) if x[0] > 0.0 else -math.inf

    at, t = ChainPoint(np.ones(2), half(np.ones(2))), StudentTApproximation(np.zeros(2), np.eye(2))
    for _ in range(200):
        at = update_on_ellipse(half, update_along_line(half, at, np.array([1.0, 0.3]), rng), t, rng)
        assert at.x[0] > 0.0


def test_a_point_does_not_move_if_no_other_is_accepted():
    start = ChainPoint(np.zeros(2), 0.0)

    def needle(x):
        return 0.0 if np.array_equal(x, start.x) else -math.inf

    rng = np.random.default_rng(0)
    assert update_along_line(needle, start, np.ones(2), rng) is start
    assert update_on_ellipse(needle, start, StudentTApproximation(np.zeros(2), np.eye(2)), rng) is start


def test_slices_step_out_from_a_narrow_width(monkeypatch):
    """The width is a hundredth of that of the density; the number of steps limits both sides together."""
    monkeypatch.setattr(slice_sampling, "STEPS_OUT", 50)
    rng = np.random.default_rng(0)

    def flat(x):
        return 0.0 if abs(x[0]) < 1.0 else -math.inf

    moved = [update_along_line(flat, ChainPoint(np.zeros(1), 0.0), np.array([0.01]), rng).x[0] for _ in range(300)]
    assert 0.4 < np.max(np.abs(moved)) < 0.52
    assert np.mean(moved) == pytest.approx(0.0, abs=0.05)


class TestApproximation:
    def test_many_draws(self):
        rng = np.random.default_rng(0)
        covariance = ROOT @ ROOT.T
        t = StudentTApproximation.of(np.array([2.0, -1.0]) + rng.standard_normal((20_000, 2)) @ ROOT.T)
        np.testing.assert_allclose(t.mean, [2.0, -1.0], atol=0.03)
        np.testing.assert_allclose(t.factor @ t.factor.T, covariance, atol=0.04)

    def test_constant_draws(self):
        t = StudentTApproximation.of(np.ones((5, 2)))
        assert np.isfinite(t.factor).all()
        assert (t.factor.diagonal() > 0.0).all()
