"""Convergence of black-box alpha: whether the noise variance of a network has settled."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import bb_alpha
from ep_bench.types import Rows

FAR = 10.0  # sum of step sizes that can move the log noise variance far enough
SMALL = {"hidden": (5,), "samples": 2, "learning_rate": 1e-3}


def noiseless(n: int = 200) -> Rows:
    """Return data points of a function without noise."""
    X = np.random.default_rng(27).normal(size=(n, 2))
    return Rows(X, np.sin(X[:, 0]))


def converged_without_warning(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state, _ = bb_alpha.fit(noiseless(), bb_alpha.Config(**SMALL | options), np.random.default_rng(0))
    return state.converged


def test_a_noise_variance_that_still_changes_is_reported():
    """1,400 steps of 0.001 are too few for the log noise variance of a function without noise."""
    config = bb_alpha.Config(schedule="released program", epochs=200, **SMALL)
    with pytest.warns(ConvergenceWarning, match=r"^the log noise variance changed by -0\.\d\d over the second half"):
        state, _ = bb_alpha.fit(noiseless(), config, np.random.default_rng(0))
    assert state.converged is False


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": 200, "noise_variance": 0.5},
        {"epochs": 1, "learning_rate": 1.0},
        {"epochs": 100, "schedule": "released program"},  # 50 epochs of 7 steps of 0.001
        {"epochs": 20},  # 9 epochs of 7 steps of at most 0.005
    ],
)
def test_a_noise_variance_that_cannot_change_is_no_evidence(options):
    assert converged_without_warning(**options) is None


def test_the_change_is_that_of_the_second_half():
    assert bb_alpha._has_settled([4.0, 2.0, 1.0, 0.9, 0.8], FAR)
    with pytest.warns(ConvergenceWarning, match=r"changed by -1\.39 over"):
        assert not bb_alpha._has_settled([4.0, 2.0, 1.0, 0.9, 0.5], FAR)


def test_the_largest_movement_is_that_of_the_second_half():
    released = bb_alpha.Config(schedule="released program", epochs=5, learning_rate=0.25)
    assert bb_alpha._largest_movement(released, 4) == 2 * 4 * 0.25
    cosine = bb_alpha.Config(epochs=4, learning_rate=0.25)
    rates = [10.0 * 0.25 * 0.5 * (1.0 + np.cos(np.pi * epoch / 4)) for epoch in (2, 3)]
    assert bb_alpha._largest_movement(cosine, 3) == pytest.approx(3 * sum(rates), rel=1e-15)


@pytest.mark.parametrize(("epochs", "n"), [(500, 205), (500, 277), (40, 24978)])
def test_the_settings_of_the_studies_can_move_the_noise_variance(epochs, n):
    """The smallest training sets of committed studies: yacht with a gap, yacht, and the one with fewer epochs."""
    assert bb_alpha._largest_movement(bb_alpha.Config(epochs=epochs), -(-n // 32)) > bb_alpha.SETTLED
