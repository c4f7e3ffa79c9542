"""Log joint density of a minibatch with its gradient, and epochs of Langevin dynamics.

Symbols, with theta = (w, kappa), P weights, N data points and B data points per minibatch:

    f_b            output of the network at data point b
    sigma2         noise variance, log(1 + exp(kappa))
    v0, c          prior variances of a weight and of kappa
    g              gradient by theta of the minibatch estimate of the negative log joint density
    eps_w, eps_k   step sizes of the weights and of kappa
    G, V           preconditioner of the weights (P,), running mean of the squared gradient per data point (P,)

    U(theta) = N / B sum_b [log(2 pi sigma2) / 2 + (y_b - f_b)^2 / (2 sigma2)]
               + |w|^2 / (2 v0) + P log(2 pi v0) / 2 + kappa^2 / (2 c) + log(2 pi c) / 2

A step is theta <- theta - eps / 2 G g + sqrt(eps G) e, with e standard normal and G = 1 for kappa.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models import mlp
from ep_bench.models.mlp import backward, forward
from ep_bench.numerics.copying import copy_rows, copy_vector
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.normal_rng import fill_normals

MEMORY, DAMPING = 0.999, 0.1  # of RMSprop; Li et al. (2016), alpha and lambda: 0.99 and 1e-5


class LangevinWorkspace(NamedTuple):
    """Scratch for batches of B data points, and the preconditioner of the chain."""

    X: Any  # (B, d) inputs of the batch
    y: Any  # (B,)
    Z: Any  # (B * units,) hidden outputs
    D: Any  # (2, B * widest)
    f: Any  # (B,)
    gradient: Any  # (P + 1,) g
    noise: Any  # (P + 1,) e
    V: Any  # (P,)
    G: Any  # (P,)


class NetworkPrior(NamedTuple):
    """Prior variances of the weights and of kappa; with ``noise_known``, kappa is fixed and has no prior."""

    weights: float
    kappa: float
    noise_known: bool


class StepSizeSchedule(NamedTuple):
    """Step sizes (1 + t slope)^-decay times the first at step t = 0, 1, ...; the first ``adapting`` steps adapt G."""

    weights: float
    kappa: float
    slope: float
    decay: float
    adapting: int


def workspace(layers: Any, rows: int) -> LangevinWorkspace:
    """Return scratch for batches of at most ``rows`` data points, with the preconditioner G = 1."""
    size = mlp.count(layers)
    return LangevinWorkspace(
        np.empty((rows, int(layers[0, 1]))), np.empty(rows), np.empty(rows * mlp.units(layers)),
        np.empty((2, rows * mlp.widest(layers))), np.empty(rows), np.empty(size + 1), np.empty(size + 1),
        np.zeros(size), np.ones(size),
    )  # fmt: skip


@jit()
def softplus(kappa: float) -> float:
    """Return log(1 + exp(kappa))."""
    return max(kappa, 0.0) + math.log1p(math.exp(-abs(kappa)))


@jit()
def factor(schedule: StepSizeSchedule, t: int) -> float:
    """Return the sizes of step t relative to the first step."""
    return (1.0 + t * schedule.slope) ** -schedule.decay


@jit(relaxed=REORDER)
def misfit(theta: Any, X: Any, y: Any, n: int, layers: Any, work: LangevinWorkspace, gradient: Any) -> Any:
    """Return the negative log-likelihood of n data points, estimated from a batch, and the sum of squared residuals.

    theta (P + 1,), X (B, d), y (B,), layers (L, 3); writes ``gradient`` (P + 1,).
    """
    rows, size = y.size, theta.size - 1
    kappa = theta[size]
    sigma2 = softplus(kappa)
    scale, f, squares = n / rows, work.f[:rows], 0.0
    forward(X, theta[:size], layers, work.Z, f)
    for b in range(rows):
        residual = y[b] - f[b]
        squares += residual * residual
        f[b] = -scale * residual / sigma2
    backward(X, theta[:size], layers, work.Z, f, 1.0, gradient[:size], work.D)
    slope = 1.0 / (1.0 + math.exp(-kappa))  # d sigma2 / d kappa
    gradient[size] = 0.5 * slope / sigma2 * (n - scale * squares / sigma2)
    return 0.5 * (n * math.log(2.0 * math.pi * sigma2) + scale * squares / sigma2), squares


@jit(relaxed=REORDER)
def add_prior(theta: Any, prior: NetworkPrior, gradient: Any) -> float:
    """Return the negative log prior density of theta (P + 1,), and add its gradient to ``gradient`` (P + 1,)."""
    size = theta.size - 1
    precision, squares = 1.0 / prior.weights, 0.0
    for i in range(size):
        squares += theta[i] * theta[i]
        gradient[i] += precision * theta[i]
    energy = 0.5 * (precision * squares + size * math.log(2.0 * math.pi * prior.weights))
    if prior.noise_known:
        gradient[size] = 0.0
        return energy
    kappa = theta[size]
    gradient[size] += kappa / prior.kappa
    return energy + 0.5 * (kappa * kappa / prior.kappa + math.log(2.0 * math.pi * prior.kappa))


@jit(relaxed=FUSE)
def adapt(gradient: Any, n: int, V: Any, G: Any) -> None:
    """Update V (P,) and G (P,) with the gradient (P + 1,) of the log-likelihood of n data points."""
    for i in range(V.size):
        mean = gradient[i] / n
        V[i] = MEMORY * V[i] + (1.0 - MEMORY) * mean * mean
        G[i] = 1.0 / (DAMPING + math.sqrt(V[i]))


@jit(relaxed=FUSE)
def move(theta: Any, gradient: Any, noise: Any, G: Any, eps_w: float, eps_k: float) -> None:
    """Apply a step of Langevin dynamics to theta (P + 1,); gradient (P + 1,), noise (P + 1,), G (P,)."""
    size = G.size
    for i in range(size):
        eps = eps_w * G[i]
        theta[i] += math.sqrt(eps) * noise[i] - 0.5 * eps * gradient[i]
    theta[size] += math.sqrt(eps_k) * noise[size] - 0.5 * eps_k * gradient[size]


@jit(relaxed=FUSE)
def epoch(
    X: Any,
    y: Any,
    order: Any,
    t: int,
    theta: Any,
    layers: Any,
    prior: NetworkPrior,
    schedule: StepSizeSchedule,
    words: Any,
    work: LangevinWorkspace,
    due: Any,
    stored: int,
    samples: Any,
) -> Any:
    """Apply one step per batch of the data X (N, d), y (N,), visited in ``order`` (M,); the first is step t.

    After each step in ``due`` (S,), theta (P + 1,) is copied to ``samples`` (S, P + 1). ``layers`` is (L, 3), and
    ``words`` a stream of ``normal_rng``. Returns the mean of U in nats, the mean squared residual and the number of
    stored samples.
    """
    n, batch, total, steps, squares = y.size, work.y.size, 0.0, 0, 0.0
    for start in range(0, order.size, batch):
        rows = min(batch, order.size - start)
        copy_rows(X, y, order[start : start + rows], work.X, work.y)
        energy, residuals = misfit(theta, work.X[:rows], work.y[:rows], n, layers, work, work.gradient)
        if t < schedule.adapting:
            adapt(work.gradient, n, work.V, work.G)
        total += energy + add_prior(theta, prior, work.gradient)
        squares += residuals
        fill_normals(words, work.noise)
        size = factor(schedule, t)
        move(theta, work.gradient, work.noise, work.G, size * schedule.weights, size * schedule.kappa)
        if stored < due.size and due[stored] == t:
            copy_vector(theta, samples[stored])
            stored += 1
        t += 1
        steps += 1
    return total / steps, squares / order.size, stored
