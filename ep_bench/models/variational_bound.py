"""The negative variational bound of one minibatch for given draws, and its gradient.

Symbols (P weights, K samples, B data points in the batch, N in total):

    m, s           means and standard deviations of q(w), (P,); w_k = m + s e_k
    v0             prior variances (P,)
    sigma2         noise variance
    f_bk           output of network k at data point b

    negative bound = KL(q || prior) + N / B sum_b mean_k [log(2 pi sigma2) / 2 + (y_b - f_bk)^2 / (2 sigma2)]

The divergence has a closed form (``models.meanfield``). The parameters are theta = (m, log s, log sigma2), (2 P + 1,).

Arguments of the kernels: ``layers`` (L, 3) as in ``models.mlp``, ``words`` the state of the random number generator
(``numerics.normal_rng``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.meanfield import divergence, draw_weights
from ep_bench.models.mlp import backward, forward
from ep_bench.numerics.jit import REORDER, jit


class BoundWorkspace(NamedTuple):
    """Arrays for K samples, B data points, P weights and the H weights of a noise head, 0 without one."""

    noise: Any  # (K, P + H) e
    W: Any  # (K, P + H) w
    by_w: Any  # (K, P) gradients with respect to the weights of each sample
    Z: Any  # (B * units,) hidden outputs
    D: Any  # (2, B * widest)
    f: Any  # (B,)
    std: Any  # (P + H,) s
    head: Any  # (P,) weights of the network whose output is that of the noise head
    by_head: Any  # (P,) gradient with respect to them
    h: Any  # (B,) outputs of the noise head


def workspace(samples: int, rows: int, weights: int, units: int, widest: int, head: int = 0) -> BoundWorkspace:
    """Allocate the arrays for batches of up to ``rows`` data points."""
    drawn, plain = (samples, weights + head), (samples, weights)
    return BoundWorkspace(
        np.empty(drawn), np.empty(drawn), np.empty(plain), np.empty(rows * units), np.empty((2, rows * widest)),
        np.empty(rows), np.empty(weights + head), np.empty(weights), np.empty(weights), np.empty(rows),
    )  # fmt: skip


@jit(relaxed=REORDER)
def draw(theta: Any, words: Any, work: BoundWorkspace) -> None:
    """Draw noise and weights of one step at theta (2 P + 1,)."""
    size = work.std.size
    for i in range(size):
        work.std[i] = math.exp(theta[size + i])
    draw_weights(theta[:size], work.std, words, work.noise, work.W)


@jit(relaxed=REORDER)
def bound(
    theta: Any, X: Any, y: Any, layers: Any, n: int, prior_variance: Any, work: BoundWorkspace, gradient: Any
) -> float:
    """Return the negative bound of a batch X (B, d), y (B,) of n data points; write its gradient (2 P + 1,).

    ``work`` must hold the noise, weights and standard deviations that ``draw`` writes.
    """
    K, size = work.W.shape
    rows = len(y)
    log_sigma2 = theta[2 * size]
    precision, factor = math.exp(-log_sigma2), n / (rows * K)
    gradient[: 2 * size] = 0.0
    squares = 0.0
    f = work.f[:rows]
    for k in range(K):
        forward(X, work.W[k], layers, work.Z, f)
        for b in range(rows):
            residual = y[b] - f[b]
            squares += residual * residual
            f[b] = -factor * precision * residual
        noise, by_w = work.noise[k], work.by_w[k]
        backward(X, work.W[k], layers, work.Z, f, 1.0, by_w, work.D)
        for i in range(size):
            gradient[i] += by_w[i]
        for i in range(size):
            gradient[size + i] += by_w[i] * noise[i]
    add_divergence(theta, work.std, prior_variance, gradient)
    fit = factor * 0.5 * precision * squares
    gradient[2 * size] = 0.5 * n - fit
    constant = 0.5 * n * (math.log(2.0 * math.pi) + log_sigma2)
    return divergence(theta[:size], work.std, prior_variance) + constant + fit


@jit(relaxed=REORDER)
def add_divergence(theta: Any, std: Any, prior_variance: Any, gradient: Any) -> None:
    """Convert derivatives with respect to s (P,) to log s, and add the gradient of the divergence (2 P + 1,)."""
    size = std.size
    for i in range(size):
        s = std[i]
        gradient[i] += theta[i] / prior_variance[i]
        gradient[size + i] = s * gradient[size + i] + s * s / prior_variance[i] - 1.0
