"""Factorised Gaussians over the weights of a network: draws, divergence, predictions.

With mean m and standard deviation s, both (P,), the weights are w = m + s * noise. The prior is N(0, v0), with one
variance per weight or a common one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.models import mlp
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.normal_rng import fill_normals

DRAWN = 256  # networks whose weights are drawn together for predictions


@jit(relaxed=FUSE)
def draw_weights(mean: Any, sd: Any, words: Any, noise: Any, W: Any) -> None:
    """Fill ``noise`` (K, P) with standard normal numbers, and W (K, P) with the weights mean + sd * noise.

    mean and sd (P,); ``words`` is a ``normal_rng.stream``.
    """
    fill_normals(words, noise.reshape(noise.size))
    scale_noise(mean, sd, noise, W)


@jit(relaxed=FUSE)
def scale_noise(mean: Any, sd: Any, noise: Any, W: Any) -> None:
    """Write W (K, P) = mean + sd * noise, for mean and sd (P,) and noise (K, P)."""
    for k in range(noise.shape[0]):
        for i in range(noise.shape[1]):
            W[k, i] = mean[i] + sd[i] * noise[k, i]


@jit(relaxed=REORDER)
def divergence(mean: Any, sd: Any, prior_variance: Any) -> float:
    """Return KL(q || prior) in nats; mean, sd and prior variances are (P,)."""
    total = 0.0
    for i in range(mean.size):
        total += (sd[i] * sd[i] + mean[i] * mean[i]) / prior_variance[i]
    return 0.5 * (total - mean.size + sum_of_logs(prior_variance)) - sum_of_logs(sd)


@jit(relaxed=REORDER)
def sum_of_logs(x: Any) -> float:
    """Return the sum of log x over positive x (n,), with one logarithm per four numbers where possible."""
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


def sample_networks(mean: Any, sd: Any, samples: int, layers: Any, X: Any, rng: np.random.Generator) -> Any:
    """Return the outputs (K, N) at X (N, d) of K = ``samples`` networks with weights drawn from q.

    mean (P,); ``sd`` (P,), or the Cholesky factor (P, P) of a full covariance.

    The weights of at most ``DRAWN`` networks exist at the same time. The numbers do not depend on it.
    """
    outputs = np.empty((samples, len(X)))
    for start in range(0, samples, DRAWN):
        block = outputs[start : start + DRAWN]
        noise = rng.standard_normal((len(block), mean.size))
        block[:] = mlp.evaluate(X, mean + (sd * noise if sd.ndim == 1 else noise @ sd.T), layers)
    return outputs
