"""Starting points of inducing inputs: the centres of k-means."""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from ep_bench.types import Array

PER_CENTRE = 100  # data points per centre that k-means uses; larger data sets are subsampled


def centres(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the centres (M, d) of ``count`` clusters of inputs X (N, d), subsampled if they are many.

    If fewer inputs of the subsample are distinct, all of these are returned.
    """
    from sklearn.cluster import KMeans  # first, so that compiling with few data points loads it

    seed = int(rng.integers(2**31))
    if len(X) > PER_CENTRE * count:
        X = X[np.sort(rng.choice(len(X), PER_CENTRE * count, replace=False))]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= count:
        return distinct
    # Rounding errors depend on the number of threads. A limit around this function would not limit a library that the
    # import above is the first to load.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inputs that differ by rounding errors give fewer clusters
        found = KMeans(count, n_init=1, random_state=seed).fit(X)
    return np.array(found.cluster_centers_, dtype=np.float64, order="C")
