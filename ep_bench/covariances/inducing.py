"""Inducing inputs to start from: the centres of k-means."""

from __future__ import annotations

import warnings

import numpy as np

from ep_bench.types import Array

ENOUGH = 100  # rows a centre that k-means takes, of more a part drawn at random


def centres(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the centres (M, d) of clusters of rows X (N, d): ``count``, or all distinct rows where these are fewer."""
    seed = int(rng.integers(2**31))
    if len(X) > ENOUGH * count:
        X = X[np.sort(rng.choice(len(X), ENOUGH * count, replace=False))]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= count:
        return distinct
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that rounding alone tells apart make fewer clusters
        found = KMeans(count, n_init=1, random_state=seed).fit(X)
    return np.array(found.cluster_centers_, dtype=np.float64, order="C")
