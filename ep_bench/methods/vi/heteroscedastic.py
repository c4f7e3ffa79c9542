"""The bound of a network with a second output, the noise head h, for the log variance of the noise (Wu et al. 2019).

The log noise variance at data point b is log sigma2 + h_b. The noise head has its own weights from the last hidden
units and its own constant: H weights, after the P weights of the network. With the weights of the output layer replaced
by those of the head, h is the output of a second network with P weights. Both networks therefore use the same kernels.
Symbols and arguments are those of ``models.variational_bound``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.models import mlp
from ep_bench.models.meanfield import divergence
from ep_bench.models.mlp import backward, forward
from ep_bench.models.variational_bound import BoundWorkspace, add_divergence
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.types import Array


def head_size(layers: Any) -> int:
    """Return the number of weights H of a noise head."""
    return int(layers[-1, 1]) + 1


def evaluate(X: Array, W: Array, layers: Any) -> tuple[Array, Array]:
    """Return both outputs f and h, (K, N) each, at X (N, d) of K networks with weights W (K, P + H)."""
    size, first = mlp.count(layers), int(layers[-1, 0])
    heads = np.hstack([W[:, :first], W[:, size:]])
    return mlp.evaluate(X, np.ascontiguousarray(W[:, :size]), layers), mlp.evaluate(X, heads, layers)


@jit(relaxed=REORDER)
def bound(
    theta: Any, X: Any, y: Any, layers: Any, n: int, prior_variance: Any, work: BoundWorkspace, gradient: Any
) -> float:
    """Return the negative bound of a batch X (B, d), y (B,) of n data points; write its gradient (2 (P + H) + 1,)."""
    K, drawn = work.W.shape
    rows, size, first = len(y), work.by_head.size, layers[layers.shape[0] - 1, 0]
    log_sigma2, factor = theta[2 * drawn], n / (len(y) * K)
    gradient[:] = 0.0
    total = 0.0
    f, h = work.f[:rows], work.h[:rows]
    for k in range(K):
        W = work.W[k]
        copy_vector(W[:first], work.head[:first])
        copy_vector(W[size:], work.head[first:])
        forward(X, work.head, layers, work.Z, h)
        forward(X, W[:size], layers, work.Z, f)
        for b in range(rows):
            residual, log_variance = y[b] - f[b], log_sigma2 + h[b]
            precision = math.exp(-log_variance)
            ratio = residual * residual * precision
            total += 0.5 * factor * (log_variance + ratio)
            f[b] = -factor * precision * residual
            h[b] = 0.5 * factor * (1.0 - ratio)
            gradient[2 * drawn] += h[b]
        backward(X, W[:size], layers, work.Z, f, 1.0, work.by_w[k], work.D)
        backward(X, work.head, layers, work.Z, h, 1.0, work.by_head, work.D)
        _add_gradient(work.by_w[k], work.by_head, first, work.noise[k], gradient)
    add_divergence(theta, work.std, prior_variance, gradient)
    return divergence(theta[:drawn], work.std, prior_variance) + 0.5 * n * math.log(2.0 * math.pi) + total


@jit(relaxed=REORDER)
def _add_gradient(by_w: Any, by_head: Any, first: int, noise: Any, gradient: Any) -> None:
    """Add the gradients (P,) of both networks to those by the means and standard deviations (P + H,) of the weights."""
    size, drawn = by_w.size, noise.size
    for i in range(drawn):
        if i < first:
            g = by_w[i] + by_head[i]
        elif i < size:
            g = by_w[i]
        else:
            g = by_head[first + i - size]
        gradient[i] += g
        gradient[drawn + i] += g * noise[i]
