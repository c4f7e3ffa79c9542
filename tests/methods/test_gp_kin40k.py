"""With one weight variance for 8 relevant and 92 irrelevant inputs of kin40k, the evidence is highest at a constant."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ep_bench import load_dataset
from ep_bench.covariances.network import NetworkCovariance
from ep_bench.types import Array

pytestmark = pytest.mark.slow

POINTS = 600
WEIGHT_VARIANCES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
BIAS_VARIANCES = (0.1, 10.0)
MAGNITUDES = np.exp(np.linspace(-4.0, 6.0, 21))
NOISE_VARIANCES = np.exp(np.linspace(-5.0, 0.5, 23))


def highest_evidence(X: Array, y: Array, weight_variance: float, bias_variance: float) -> float:
    """Return the highest log evidence over all magnitudes and noise variances, by one eigendecomposition."""
    covariance = np.empty((len(y), len(y)))
    NetworkCovariance(X.shape[1], ard=False).fill(np.log([bias_variance, weight_variance, 1.0]), X, covariance)
    values, vectors = np.linalg.eigh(np.tril(covariance) + np.tril(covariance, -1).T)
    squares = (vectors.T @ y) ** 2
    variances = MAGNITUDES[:, None, None] * np.maximum(values, 0.0) + NOISE_VARIANCES[:, None]
    logs = np.log(2.0 * math.pi * variances) + squares / variances
    return float(-0.5 * logs.sum(axis=-1).min())


@pytest.mark.parametrize(("irrelevant", "gain"), [(92, False), (0, True)])
def test_a_constant_has_the_highest_evidence_unless_all_inputs_are_relevant(irrelevant: int, gain: bool) -> None:
    found = load_dataset("kin40k", irrelevant_inputs=irrelevant)
    chosen = np.random.default_rng(0).choice(len(found.y), POINTS, replace=False)
    X, y = ((part[chosen] - part[chosen].mean(axis=0)) / part[chosen].std(axis=0) for part in (found.X, found.y))
    constant = -0.5 * POINTS * math.log(2.0 * math.pi * math.e)
    best = max(highest_evidence(X, y, *both) for both in itertools.product(WEIGHT_VARIANCES, BIAS_VARIANCES))
    assert best > constant + 100.0 if gain else best < constant + 1.0
