"""Factorised Gaussians over a network's weights: draws, and the mixture of networks that predicts.

mean m, deviation s (P,); weights w = m + s * noise. The prior is N(0, v0), one variance or one a weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.models import mlp
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.normal_rng import fill_normals


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
        total += (deviation[i] * deviation[i] + mean[i] * mean[i]) / prior_variance[i]
    return 0.5 * (total - mean.size + sum_of_logs(prior_variance)) - sum_of_logs(deviation)


@jit(relaxed=REORDER)
def sum_of_logs(x: Any) -> float:
    """Return the sum of log x over a vector of positive numbers, with one logarithm for four of them if it can."""
    whole, total = x.size // 4 * 4, 0.0
    for i in range(0, whole, 4):
        low, high = x[i] * x[i + 1], x[i + 2] * x[i + 3]
        if 1e-150 < low < 1e150 and 1e-150 < high < 1e150:
            total += math.log(low * high)
        else:
            total += math.log(x[i]) + math.log(x[i + 1]) + math.log(x[i + 2]) + math.log(x[i + 3])
    for i in range(whole, x.size):
        total += math.log(x[i])
    return total


def sample_networks(mean: Any, deviation: Any, samples: int, layers: Any, X: Any, rng: np.random.Generator) -> Any:
    """Return the outputs (K, N) on rows X (N, d) of K = ``samples`` networks with weights drawn from q."""
    noise = rng.standard_normal((samples, mean.size))
    return mlp.evaluate(X, mean + deviation * noise, layers)
