"""Release of the priors of input weights in ``ep_nn``: after some sweeps, or when EP without them has converged."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench.estimator import Estimator
from ep_bench.methods.ep_nn import schedule

SWEEPS = 400


def fit(**options: Any) -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 2))
    y = np.tanh(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return Estimator("ep_nn", hidden=[3], sweeps=SWEEPS, random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def fixed() -> Any:
    found = fit(prior="gaussian")
    assert found.converged_
    assert found.n_iterations_ < SWEEPS // 2
    return found


def shared(first: Any, second: Any) -> int:
    """Return the number of sweeps in which two fits are equal."""
    count = min(first.n_iterations_, second.n_iterations_)
    same = np.isclose(first.trace_["sum_log_z"][:count], second.trace_["sum_log_z"][:count], rtol=1e-12)
    return count if same.all() else int(np.argmin(same))


def test_by_default_it_is_after_fifty_sweeps(fixed: Any) -> None:
    assert shared(fixed, fit(prior="ard")) == schedule.WEIGHTS_FROM


def test_a_small_step_continues_from_the_fit_with_fixed_priors(fixed: Any) -> None:
    ard = fit(prior="ard", release=1e-4)
    assert shared(fixed, ard) == fixed.n_iterations_ < ard.n_iterations_
    assert ard.state_.scale_means.shape == (3,)
    assert ard.state_.scale_means[0] > ard.state_.scale_means[1] + 1.0  # the second input has no effect


def test_half_of_the_sweeps_remain_after_the_release(fixed: Any) -> None:
    strict = {"tolerance": 1e-30}
    unending, ard = fit(prior="gaussian", **strict), fit(prior="ard", release=1e-30, **strict)
    assert unending.n_iterations_ == ard.n_iterations_ == SWEEPS
    assert shared(unending, ard) == SWEEPS // 2


def test_the_dampings_of_the_paper_lead_to_the_same_fixed_point() -> None:
    printed = {"final_output_damping": 0.2, "prior_damping": 0.6}
    ours, paper = (fit(prior="laplace", tolerance=1e-6, **options) for options in ({}, printed))
    assert ours.converged_
    assert paper.converged_
    assert ours.n_iterations_ < paper.n_iterations_
    assert paper.log_evidence_ == pytest.approx(ours.log_evidence_, abs=1e-4)
    np.testing.assert_allclose(paper.state_.weight_means, ours.state_.weight_means, atol=1e-4)
