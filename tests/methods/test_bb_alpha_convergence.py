"""Convergence of black-box alpha: whether the noise variance of a network has settled."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import bb_alpha
from ep_bench.types import Rows

SMALL = {"hidden": (5,), "samples": 2, "learning_rate": 1e-3}


def noiseless(n: int = 200) -> Rows:
    """Return data points of a function without noise."""
    X = np.random.default_rng(27).normal(size=(n, 2))
    return Rows(X, np.sin(X[:, 0]))


def test_a_noise_variance_that_still_changes_is_reported():
    """1,400 steps of 0.001 are too few for the log noise variance of a function without noise."""
    config = bb_alpha.Config(schedule="released program", epochs=200, **SMALL)
    with pytest.warns(ConvergenceWarning, match=r"^the log noise variance changed by -0\.\d\d over the second half"):
        state, _ = bb_alpha.fit(noiseless(), config, np.random.default_rng(0))
    assert state.converged is False


@pytest.mark.parametrize("options", [{"epochs": 20}, {"epochs": 60, "learning_rate": 1e-4}])
def test_a_noise_variance_that_cannot_move_far_is_reported(options):
    """The change is far below the limit, but in one direction."""
    config = bb_alpha.Config(**SMALL | {"schedule": "released program"} | options)
    with pytest.warns(ConvergenceWarning, match=r"in almost one direction \(the step sizes sum to 0\.\d+\)"):
        state, _ = bb_alpha.fit(noiseless(), config, np.random.default_rng(0))
    assert state.converged is False


@pytest.mark.parametrize("options", [{"epochs": 200, "noise_variance": 0.5}, {"epochs": 300}])
def test_convergence_is_not_stated_otherwise(options):
    """The energy is not judged, so a fit whose noise variance has settled is not called converged."""
    rng = np.random.default_rng(3)
    noisy = Rows(rng.normal(size=(100, 2)), rng.normal(size=100))
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        state, _ = bb_alpha.fit(noisy, bb_alpha.Config(**SMALL | options), np.random.default_rng(0))
    assert state.converged is None


def test_the_change_is_that_of_the_second_half():
    assert not bb_alpha._noise_still_changes([4.0, 2.0, 1.0, 0.9, 0.8], 10.0)
    with pytest.warns(ConvergenceWarning, match=r"changed by -1\.39 over"):
        assert bb_alpha._noise_still_changes([4.0, 2.0, 1.0, 0.9, 0.5], 10.0)


def test_a_change_counts_relative_to_the_possible_one():
    with pytest.warns(ConvergenceWarning, match=r"changed by -0\.21 over .* \(the step sizes sum to 0\.3\)"):
        assert bb_alpha._noise_still_changes([1.1, 1.05, 1.0, 0.95, 0.9], 0.3)
    assert not bb_alpha._noise_still_changes([1.1, 1.05, 1.0, 0.95, 0.9], 0.5)
    assert not bb_alpha._noise_still_changes([1.0, 1.0], 0.0)  # a fixed noise variance


MOVING = "most variances of the weights moved in one direction"


def test_an_energy_far_above_its_minimum_is_reported():
    """Steps of 0.001 are too small for 20 epochs, and those of 0.03 are not for 300."""
    rng = np.random.default_rng(3)
    noisy = Rows(rng.normal(size=(100, 2)), rng.normal(size=100))
    with pytest.warns(UserWarning, match=MOVING):
        early, started = bb_alpha.fit(noisy, bb_alpha.Config(**SMALL | {"epochs": 20}), np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", MOVING)
        config = bb_alpha.Config(**SMALL | {"epochs": 300, "learning_rate": 0.03})
        state, trace = bb_alpha.fit(noisy, config, np.random.default_rng(0))
    assert np.mean(trace["objective"][-20:]) < started["objective"][-1] - 0.5
    assert np.median(state.std) > 5 * np.median(early.std)
