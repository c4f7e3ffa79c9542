"""Initial parameters: section 8.1 of Bui et al. (2015), with the numbers of the authors' released program.

First layer: inducing inputs at the centres of k-means, all lengthscales equal to the median distance between data
points. Later layers: inducing inputs equally spaced from -1 to 1 in every dimension and lengthscales e, so that they
are close to the identity. Signal standard deviations are 1, noise standard deviations 0.1. Factors and theta_2 are
drawn from N(0, 1), in later layers from N(0, 0.01).
"""

from __future__ import annotations

import numpy as np

from ep_bench.methods.dgp_ep.layout import Structure, layers, size
from ep_bench.types import Array

NOISE_STD = 0.1
LATER_SCALE = 0.1  # standard deviation of factors and theta_2 in later layers
MAX_PAIRWISE = 2000  # data points in the median distance; a random subset of more


def start(structure: Structure, X: Array, inducing: Array, rng: np.random.Generator) -> Array:
    """Return initial parameters (P,) for inputs X (n, d) and inducing inputs (M, d) of the first layer."""
    theta = np.empty(size(structure))
    for index, layer in enumerate(layers(structure, theta)):
        first = index == 0
        layer.log_lengthscales[:] = np.log(median_distance(X, rng)) if first else 1.0
        layer.log_magnitude[:] = 0.0
        layer.log_noise[:] = np.log(NOISE_STD)
        layer.inputs[:] = inducing if first else np.linspace(-1.0, 1.0, structure.inducing)[:, None]
        for part in (layer.factor, layer.linear):
            part[:] = (1.0 if first else LATER_SCALE) * rng.standard_normal(part.shape)
    return theta


def median_distance(X: Array, rng: np.random.Generator) -> float:
    """Return the median of the distance matrix of X (n, d), its zero diagonal included; 1 if the median is 0."""
    from scipy.spatial.distance import pdist

    if len(X) > MAX_PAIRWISE:
        X = X[rng.choice(len(X), MAX_PAIRWISE, replace=False)]
    # The matrix has each pair twice and n zeros on its diagonal.
    distances = pdist(X)
    median = float(np.median(np.concatenate([distances, distances, np.zeros(len(X))])))
    return median if median > 0.0 else 1.0
