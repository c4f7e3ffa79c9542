"""The tied-factor energy of power EP, its gradient, and the moments of every layer: for callers outside kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri, softmax

from ep_bench.methods.dgp_ep import joint, network, sep
from ep_bench.methods.dgp_ep.factor import power
from ep_bench.methods.dgp_ep.layout import Structure, layers, offsets, size
from ep_bench.methods.dgp_ep.network import Model
from ep_bench.types import Array

NODES, FARTHEST = 101, 8.5  # of the trapezoidal rule for a probit's power; standard deviations to either side
DRAWS = 2**10  # quasi-random, of the softmax's evidence and predictions
MOST = 2**20  # numbers a temporary of all rows at once may have


Likelihood = Literal["gaussian", "probit", "softmax"]


class Problem(NamedTuple):
    """What the energy is of."""

    structure: Structure
    likelihood: Likelihood
    n: int  # rows in all, of which a minibatch is a part
    alpha: float = 1.0
    propagation: Literal["diagonal", "full"] = "diagonal"


def energy(problem: Problem, theta: Array, X: Array, y: Array, noise: Array | None = None) -> tuple[float, Array]:
    """Return the energy (nats, to be minimised) of a minibatch, and its gradient (P,).

    X (B, d); y (B,) targets, class indices for probit and softmax. ``noise`` (S, C) are the softmax's standard normal
    draws. The value is nan, and the gradient without meaning, where a matrix has no factor. Whitened factors are held
    fixed, with a gradient of 0.
    """
    gradient = np.empty(size(problem.structure))
    if noise is None:
        noise = np.zeros((1, problem.structure.dims[-1]))
    X = np.ascontiguousarray(X, dtype=np.float64)
    return evaluator(problem)(theta, X, targets(problem, y), noise, gradient), gradient


def targets(problem: Problem, y: Array) -> Array:
    """Return targets as the likelihood takes them: -1 and 1 for the probit's classes 0 and 1."""
    y = np.asarray(y, dtype=np.float64)
    return 2.0 * y - 1.0 if problem.likelihood == "probit" else np.ascontiguousarray(y)


def evaluator(problem: Problem) -> Callable[[Array, Array, Array, Array, Array], float]:
    """Return the energy as a function of parameters, rows, targets and noise that writes its gradient."""
    kernels = joint if problem.propagation == "full" else _kernels(problem.structure)
    return partial(kernels.value_and_gradient, model_of(problem))


def matcher(problem: Problem, theta: Array, rate: float) -> sep.Matching:
    """Return the same, matching moments on the way; whitens the factors in ``theta``, so far those of ``network``."""
    model = model_of(problem)
    sep.whiten(model, theta)
    return sep.Matching(model, rate)


def log_evidence(problem: Problem, theta: Array, X: Array, y: Array, noise: Array | None = None) -> float:
    """Return minus the energy of all rows X (n, d), y (n,), as ``energy`` takes them; nats."""
    parts = blocks(problem.structure, len(X))
    shares = [(part.stop - part.start) / len(X) for part in parts]
    return -float(np.dot(shares, [energy(problem, theta, X[part], y[part], noise)[0] for part in parts]))


def moments(structure: Structure, theta: Array, X: Array, beta: float = 1.0) -> list[tuple[Array, Array]]:
    """Return means and variances (B, D_out) of every layer at inputs X (B, d).

    The hidden layers' noise is included, the last one's is not. ``beta`` is the share of the tied factors: 1 for the
    posterior, (n - alpha) / n for the cavity.
    """
    X, model = np.ascontiguousarray(X, dtype=np.float64), _any_model(structure)
    shape = len(structure.dims), len(X), max(structure.dims)
    means, variances = np.empty(shape), np.empty(shape)
    for part in blocks(structure, len(X)):
        m, v = (
            np.empty((shape[0], part.stop - part.start, shape[2])),
            np.empty((shape[0], part.stop - part.start, shape[2])),
        )
        _kernels(structure).propagate(model, theta, X[part], beta, m, v)
        means[:, part], variances[:, part] = m, v
    widths = structure.dims[1:]
    return [(means[i + 1, :, :width], variances[i + 1, :, :width]) for i, width in enumerate(widths)]


def joint_moments(structure: Structure, theta: Array, X: Array, beta: float = 1.0) -> list[tuple[Array, Array]]:
    """Return means (B, D_out) and covariances (B, D_out, D_out) of every layer, otherwise as ``moments``."""
    X, model = np.ascontiguousarray(X, dtype=np.float64), _any_model(structure)
    leading, V = (len(structure.dims), len(X)), max(structure.dims[1:])
    means, covariances = np.empty((*leading, max(structure.dims))), np.empty((*leading, V, V))
    for part in blocks(structure, len(X)):
        m, C = np.empty_like(means[:, part]), np.empty_like(covariances[:, part])
        joint.forward(model, theta, X[part], beta, m, C)
        means[:, part], covariances[:, part] = m, C
    widths = structure.dims[1:]
    return [(means[i + 1, :, :width], covariances[i + 1, :, :width, :width]) for i, width in enumerate(widths)]


def sampled_moments(
    structure: Structure, theta: Array, X: Array, samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return means and variances (S, B, D_out) of the last layer, without its noise, of samples through the others.

    X (B, d). Without hidden layers S is 1: nothing is drawn.
    """
    count = samples if structure.dims[1:-1] else 1
    means = np.empty((count, len(X), structure.dims[-1]))
    variances = np.empty_like(means)
    for first in range(0, len(X), rows := max(MOST // (count * structure.inducing), 1)):
        part = slice(first, first + rows)
        means[:, part], variances[:, part] = _samples_through(structure, theta, X[part], count, rng)
    return means, variances


def _samples_through(
    structure: Structure, theta: Array, X: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return means and variances (S, B, D_out) of the last layer, of ``count`` samples through the others."""
    model, hidden = _any_model(structure), structure.dims[1:-1]
    x = np.ascontiguousarray(X, dtype=np.float64)
    for layer, width in enumerate(hidden):
        m, v = np.empty((len(x), width)), np.empty((len(x), width))
        _kernels(structure).layer_moments(model, theta, layer, x, 1.0, m, v)
        rows = (count, len(X), width)
        noise = rng.standard_normal(rows)
        x = (m.reshape(-1, len(X), width) + np.sqrt(v).reshape(-1, len(X), width) * noise).reshape(-1, width)
    outputs = structure.dims[-1]
    m, v = np.empty((len(x), outputs)), np.empty((len(x), outputs))
    _kernels(structure).layer_moments(model, theta, len(hidden), x, 1.0, m, v)
    return m.reshape(count, len(X), outputs), v.reshape(count, len(X), outputs)


def noise_variances(structure: Structure, theta: Array) -> Array:
    """Return the variances of the last layer's noise (G,)."""
    return np.asarray(np.exp(2.0 * layers(structure, theta)[-1].log_noise))


def normal_draws(outputs: int, rng: np.random.Generator) -> Array:
    """Return quasi-random draws (DRAWS, C) of standard normals."""
    from scipy.stats import qmc

    points = qmc.Sobol(outputs, seed=rng).random_base2(DRAWS.bit_length() - 1)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))


def softmax_probabilities(m: Array, V: Array, noise: Array) -> Array:
    """Return E softmax(f) (N, C), the mean over S, f of means m (S, N, C), by draws (T, C).

    V are variances (S, N, C), or covariances (S, N, C, C).
    """
    total = np.zeros(m.shape[1:])
    roots = np.linalg.cholesky(V) if V.ndim == 4 else np.sqrt(V)[..., None] * np.eye(m.shape[2])
    rows = max(MOST // noise.size, 1)
    for mean, root in zip(m, roots, strict=True):
        for part in range(0, len(mean), rows):
            f = mean[part : part + rows, None] + noise @ root[part : part + rows].transpose(0, 2, 1)
            total[part : part + rows] += softmax(f, axis=2).mean(axis=1)
    return total / len(m)


def blocks(structure: Structure, n: int) -> list[slice]:
    """Return slices of n rows, each few enough that what is kept of them stays small."""
    M = structure.inducing
    rows = max(MOST // (M * (M + 1) // 2 if len(structure.dims) > 2 else M), 1)
    return [slice(first, min(first + rows, n)) for first in range(0, n, rows)]


def _kernels(structure: Structure) -> Any:
    return sep if structure.whitened else network


def _any_model(structure: Structure) -> Model:
    return model_of(Problem(structure, "gaussian", 1))


def model_of(problem: Problem) -> Model:
    """Return the problem as kernels take it."""
    structure = problem.structure
    x = np.linspace(-FARTHEST, FARTHEST, NODES)
    groups = [1 if structure.shared else width for width in structure.dims[1:]]
    return Model(
        np.array(structure.dims, dtype=np.int64), offsets(structure), np.array(groups, dtype=np.int64),
        structure.inducing, power(problem.n, problem.alpha),
        np.array([x, -0.5 * x**2 - logsumexp(-0.5 * x**2)]) if problem.likelihood == "probit" else None,
        1 if problem.likelihood == "softmax" else None,
    )  # fmt: skip
