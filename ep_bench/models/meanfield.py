"""Factorised Gaussians over a network's weights: draws, and the mixture of networks that predicts.

mean m, deviation s (P,); weights w = m + s * noise. The prior is N(0, v0), one variance or one a weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.models import mlp
from ep_bench.numerics.draws import fill_normals
from ep_bench.numerics.jit import FUSE, REORDER, jit


@jit(relaxed=FUSE)
def draw_weights(mean: Any, deviation: Any, words: Any, noise: Any, W: Any) -> None:
    """Fill ``noise`` (K, P) from a stream of normals and W (K, P) with the weights that it gives."""
    fill_normals(words, noise.reshape(noise.size))
    weights_of(mean, deviation, noise, W)


@jit(relaxed=FUSE)
def weights_of(mean: Any, deviation: Any, noise: Any, W: Any) -> None:
    """Write W (K, P) = mean + deviation * noise."""
    for k in range(noise.shape[0]):
        for i in range(noise.shape[1]):
            W[k, i] = mean[i] + deviation[i] * noise[k, i]


@jit(relaxed=REORDER)
def divergence(mean: Any, deviation: Any, prior_variance: Any) -> float:
    """Return KL(q || prior), prior variances (P,); the closed form."""
    total = 0.0
    for i in range(mean.size):
        ratio = deviation[i] * deviation[i] / prior_variance[i]
        total += 0.5 * (ratio + mean[i] * mean[i] / prior_variance[i] - 1.0 - np.log(ratio))
    return total


def sample_networks(mean: Any, deviation: Any, samples: int, layers: Any, X: Any, rng: np.random.Generator) -> Any:
    """Return the outputs (K, N) on rows X (N, d) of K = ``samples`` networks with weights drawn from q."""
    noise = rng.standard_normal((samples, mean.size))
    return mlp.evaluate(X, mean + deviation * noise, layers)
