"""Hyperparameters: priors, starting points, fixed values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from ep_bench.covariances import build
from ep_bench.covariances.hyperparameters import Hyperparameters
from tests.twins.plain_networks import check_gradient

SUM = {"sum": ["se", "nn", "linear"]}


def hyper(kernel=SUM, d=4, *, ard=True, flat=False, **given):
    return Hyperparameters.of((*build(kernel, d, ard).names, "noise_variance"), d, given, flat=flat)


def test_the_start_is_at_the_medians():
    found = hyper().values(hyper().start())
    np.testing.assert_allclose(found["1.lengthscale"], np.full(4, 2.0))
    np.testing.assert_allclose(found["2.weight_variance"], np.full(4, 0.25))
    assert {name: value for name, value in found.items() if np.isscalar(value)} == pytest.approx(
        {"1.magnitude": 1.0, "2.bias_variance": 1.0, "2.magnitude": 1.0, "noise_variance": 0.1}
    )


def test_the_prior_is_gaussian_in_the_logarithms():
    space, rng = hyper(magnitude=2.0), np.random.default_rng(0)
    theta = space.random_start(rng)
    value, gradient = space.log_prior(theta)
    by_role = {"lengthscale": (np.log(2), 2), "weight_variance": (np.log(0.25), 3), "noise_variance": (np.log(0.1), 3),
               "bias_variance": (0, 3)}  # fmt: skip
    priors = {name: by_role[name.split(".")[-1]] for name in space.names if not name.endswith("magnitude")}
    expected = sum(norm.logpdf(t, *priors[n]) for t, n in zip(theta, space.names, strict=True) if n in priors)
    assert value == pytest.approx(expected, rel=1e-12)
    check_gradient(lambda at: space.log_prior(at)[0], theta, gradient, rng, step=1e-3, rel=1e-9)


def test_a_flat_prior_has_density_one():
    value, gradient = hyper(flat=True).log_prior(np.arange(16.0))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_fixed_values_do_not_change_and_the_rest_is_random():
    space = hyper(lengthscale=(1.0, 2.0, 3.0, 4.0), noise_variance=0.5, weight_variance=7.0)
    for theta in (space.start(), space.random_start(np.random.default_rng(0))):
        found = space.values(theta)
        np.testing.assert_allclose(found["1.lengthscale"], [1, 2, 3, 4])
        np.testing.assert_allclose(found["3.weight_variance"], np.full(4, 7.0))
        assert found["noise_variance"] == pytest.approx(0.5)
    assert {name for name, free in zip(space.names, space.free, strict=True) if free} == {
        "1.magnitude", "2.bias_variance", "2.magnitude"
    }  # fmt: skip
    drawn = [space.random_start(np.random.default_rng(seed))[4] for seed in range(400)]
    assert abs(np.mean(drawn)) < 0.2
    assert np.std(drawn) == pytest.approx(1.0, abs=0.15)


def test_other_starting_points_change_neither_prior_nor_fixed_values():
    plain = hyper("se", magnitude=2.0)
    space = plain.starting_at("noise_variance", 0.7, "lengthscale")
    first, drawn = (space.values(theta) for theta in (space.start(), space.random_start(np.random.default_rng(0))))
    assert (first["magnitude"], first["noise_variance"]) == pytest.approx((2.0, 0.7))
    assert (drawn["magnitude"], drawn["noise_variance"]) == pytest.approx((2.0, 0.7))
    np.testing.assert_allclose(first["lengthscale"], np.full(4, 2.0))
    assert len(set(drawn["lengthscale"])) == 4
    theta = np.arange(6.0)
    assert space.log_prior(theta)[0] == plain.log_prior(theta)[0]


def test_limits_are_reported_except_for_irrelevant_inputs():
    space = hyper("se", d=2)
    theta = space.start()
    assert not space.stopped(theta)
    theta[0] = space.high[0]
    assert not space.stopped(theta)
    theta[-1] = space.low[-1]
    assert space.stopped(theta) == "noise_variance runs to 0, stopped at 1e-08"
    assert not hyper("se", d=2, noise_variance=1e-8).stopped(theta)


def test_the_scale_of_a_t_at_a_limit_is_reported():
    space = Hyperparameters.of(("magnitude", "scale", "nu"), 1, {})
    theta = space.start()
    theta[1], theta[2] = space.low[1], space.high[2]
    assert space.stopped(theta) == "scale runs to 0, stopped at 0.0001"
    theta[1] = space.start()[1]
    assert not space.stopped(theta)  # an infinite nu is Gaussian noise
