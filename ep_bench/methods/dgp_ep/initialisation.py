"""Where the parameters start: section 8.1 of Bui et al. (2015), in the figures of the authors' released program.

First layer: inducing inputs at the centres of k-means, all lengthscales at the median distance of two rows. Later
layers: inducing inputs evenly from -1 to 1 in every dimension, lengthscales e, so that they begin near an identity.
Signals of deviation 1, noises of deviation 0.1; factors and theta_2 drawn from N(0, 1), in later layers N(0, 0.01).
"""

from __future__ import annotations

import numpy as np

from ep_bench.covariances.inducing import centres
from ep_bench.methods.dgp_ep.layout import Structure, layers, size
from ep_bench.types import Array

NOISE_DEVIATION = 0.1
LATER_SCALE = 0.1  # of the factors of later layers
PAIRWISE = 2000  # rows whose distances are taken, drawn at random from more


def start(structure: Structure, X: Array, inducing: Array, rng: np.random.Generator) -> Array:
    """Return the parameters (P,) to start from, for rows X (n, d) and first inducing inputs (M, d)."""
    theta = np.empty(size(structure))
    for index, layer in enumerate(layers(structure, theta)):
        first = index == 0
        layer.log_lengthscales[:] = np.log(median_distance(X, rng)) if first else 1.0
        layer.log_magnitude[:] = 0.0
        layer.log_noise[:] = np.log(NOISE_DEVIATION)
        layer.inputs[:] = inducing if first else np.linspace(-1.0, 1.0, structure.inducing)[:, None]
        for part in (layer.factor, layer.linear):
            part[:] = (1.0 if first else LATER_SCALE) * rng.standard_normal(part.shape)
    return theta


def first_inputs(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Return inducing inputs (M, d) for the first layer: ``count``, or all distinct rows where these are fewer."""
    return centres(X, count, rng)


def median_distance(X: Array, rng: np.random.Generator) -> float:
    """Return the median of the distances between all pairs of rows, each with itself among them; 1 where it is 0."""
    from scipy.spatial.distance import pdist

    if len(X) > PAIRWISE:
        X = X[rng.choice(len(X), PAIRWISE, replace=False)]
    apart, n = pdist(X), len(X)
    # Each pair counts twice, as in the full matrix, whose diagonal adds n zeros.
    median = float(np.median(np.concatenate([apart, apart, np.zeros(n)])))
    return median if median > 0.0 else 1.0
