"""Inputs that give the target away: a sum of a few, also for its exponential or logarithm, or labels of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ep_bench.types import Array

LIMIT = 0.9999  # fraction of the variance of the target from which inputs determine it
GROUPED = 0.9  # fraction that the means of groups explain
INPUTS = 3  # largest number of inputs in a sum
RANGE = 100.0  # largest range of a target whose exponential is tried
POINTS = 10  # smallest mean number of data points per group, or per input of a sum


def find_leaks(X: Array, y: Array, names: Sequence[str]) -> list[str]:
    """Return the leaks of inputs X (n, d) and targets y (n,), each as a sentence without a full stop.

    Inputs leak if a linear function of at most three of them explains the target, its exponential or its logarithm. An
    input whose values are labels leaks if the target hardly varies within a group, although the means of groups with
    neighbouring values are unrelated: such as patients with many visits. Repeated data points count once.
    """
    _, kept = np.unique(np.column_stack([X, y]), axis=0, return_index=True)
    X, y = X[kept], y[kept]
    sums = (
        f"{' + '.join(names[j] for j in found)} determine{'s' * (len(found) == 1)} {what}"
        for what, target in _targets(y)
        if (found := _sum_for(X, target))
    )
    groups = (
        f"{name} groups data points of nearly equal targets"
        for name, x in zip(names, X.T, strict=True)
        if _groups(x, y)
    )
    return [*sums, *groups]


def _targets(y: Array) -> Iterator[tuple[str, Array]]:
    yield "the target", y
    if np.ptp(y) < RANGE:
        yield "the exponential of the target", np.exp(y - y.max())
    if y.min() > 0.0:
        yield "the logarithm of the target", np.log(y)


def _sum_for(X: Array, y: Array) -> list[int]:
    """Return the inputs, chosen one after the other by correlation with the residuals, that explain y; or none."""
    Z, residuals, chosen = _standardized(X), y - y.mean(), list[int]()
    total = residuals @ residuals
    while total and len(chosen) < min(INPUTS, X.shape[1], len(y) // POINTS):
        chosen.append(int(np.argmax(np.abs(residuals @ Z))))
        basis = np.column_stack([Z[:, chosen], np.ones(len(y))])
        residuals = y - basis @ np.linalg.lstsq(basis, y)[0]
        if residuals @ residuals <= (1.0 - LIMIT) * total:
            return chosen
    return []


def _standardized(X: Array) -> Array:
    """Return X (n, d) with unit variances; constant inputs become 0."""
    centred = X - X.mean(axis=0)
    scale = np.where(np.ptp(X, axis=0) > 0.0, centred.std(axis=0), np.inf)
    return np.asarray(centred / scale)


def _groups(x: Array, y: Array) -> bool:
    """Return whether the values of an input x (n,) are labels of groups that explain y (n,)."""
    values, labels, counts = np.unique(x, return_inverse=True, return_counts=True)
    if not 3 <= len(values) <= len(y) / POINTS:
        return False
    means = np.bincount(labels, y) / counts
    neighbours = np.concatenate([means[1:2], (means[:-2] + means[2:]) / 2.0, means[-2:-1]])
    explained, smooth = (1.0 - np.mean((y - guess[labels]) ** 2) / y.var() for guess in (means, neighbours))
    return bool(explained > GROUPED and smooth < explained / 2.0)
