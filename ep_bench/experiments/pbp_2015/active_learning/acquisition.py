"""Acquisition functions: what a method would learn from the target of a point of the pool."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.predictions import Predictive
from ep_bench.types import Array

TAIL = 8.0  # standard deviations of the components that the quadrature covers
STEP = 0.25  # spacing of its nodes, in the smallest standard deviation of the components
NODES = 101  # minimum number of nodes
BLOCK = 2_000_000  # entries of the arrays of a block of points
SPREAD = 1e-6  # largest spread of equal means, in the smallest standard deviation of the components


class UnsuitableAcquisitionError(ValueError):
    """An acquisition that predictions of this kind do not have, on any data."""


def values_of(acquisition: str, predicted: Any) -> Array:
    """Return the acquisition (P,) of the points of the pool from their predictions.

    ``variance`` is the predictive variance, noise included (Hernandez-Lobato and Adams 2015, section 5.4).
    ``mutual_information`` is that of target and component of a mixture (Houlsby et al. 2012), in nats.

    Raises
    ------
    UnsuitableAcquisitionError
        The prediction has no variance, or is no mixture of Gaussians with different means for ``mutual_information``.
    ValueError
        A component has an infinite or zero variance for ``mutual_information``.
    """
    if acquisition == "random":
        raise ValueError("random needs no prediction")
    if acquisition == "mutual_information":
        return mutual_information(_mixture_of_functions(predicted))
    variance = getattr(predicted, "variance", None)
    if variance is None:
        raise UnsuitableAcquisitionError("the prediction has no variance; use random")
    return np.asarray(variance())


def _mixture_of_functions(predicted: Any) -> Predictive:
    """Return a prediction whose components have different means at some point.

    With equal means the component decides the scale of the noise only: its mutual information is largest where the
    other part of the variance is smallest. Raises as ``values_of`` does.
    """
    if not isinstance(predicted, Predictive) or len(predicted.weights) < 2:
        raise UnsuitableAcquisitionError("mutual_information needs a mixture of at least two Gaussians; use variance")
    used = predicted.weights > 0.0
    means, variances = predicted.means[used], predicted.variances[used]
    if not np.all(np.isfinite(variances) & (variances > 0.0)):
        raise ValueError("mutual_information needs components with finite variances above 0; use variance or random")
    rounding = 4.0 * np.finfo(np.float64).eps * np.abs(means).max(axis=0)
    if np.all(np.ptp(means, axis=0) <= SPREAD * np.sqrt(variances.min(axis=0)) + rounding):
        raise UnsuitableAcquisitionError(
            "mutual_information needs components with different means; those of this prediction differ in the variance "
            "only; use variance"
        )
    return Predictive(predicted.weights[used], means, variances)


def mutual_information(predicted: Predictive) -> Array:
    """Return the entropy of each mixture minus the mean entropy of its components (N,), in nats.

    The entropy of the mixture is computed with the trapezoidal rule, whose error falls exponentially with the number of
    nodes per standard deviation for these smooth, decaying integrands.
    """
    weights, means = predicted.weights, predicted.means
    deviations = np.sqrt(predicted.variances)
    within = weights @ (0.5 * np.log(2.0 * np.pi * np.e * deviations**2))
    return np.array([_entropy(weights, means[:, i], deviations[:, i]) for i in range(means.shape[1])]) - within


def _entropy(weights: Array, means: Array, deviations: Array) -> float:
    """Return the entropy of one mixture; weights, means and standard deviations (S,)."""
    low, high = np.min(means - TAIL * deviations), np.max(means + TAIL * deviations)
    count = max(math.ceil((high - low) / (STEP * deviations.min())), NODES)
    nodes = np.linspace(low, high, count)
    density = np.zeros(count)
    size = max(BLOCK // count, 1)
    for start in range(0, len(weights), size):
        part = slice(start, start + size)
        z = (nodes - means[part, None]) / deviations[part, None]
        density += (weights[part] / deviations[part]) @ np.exp(-0.5 * z**2)
    density /= np.sqrt(2.0 * np.pi)
    logs = np.log(density, out=np.zeros(count), where=density > 0.0)
    return float(-np.sum(density * logs) * (nodes[1] - nodes[0]))
