"""Initial parameters from a sparse Gaussian process, for regression; layers are fitted one after the other.

The first layer has inducing inputs and hyperparameters of the sparse process of ``sgp``, by FITC, or by the variational
bound for alpha = 0. Every later layer has those of the sparse process from the outputs of the layer before to y.

The first output of each layer predicts y. Further outputs of a hidden layer predict the first principal components of
its inputs, divided by their lengthscales. Later layers so start close to the identity in their first input.

The tied factor of an output is the product of all sites of power EP, which is the exact posterior of its sparse
process divided by its prior. With targets t (N,) and k(x_i, x_i) - v_i' v_i the variance of f_i given u,

    Theta_1 = A' A,  theta_2 = A' Lambda^-1/2 t,  A = Lambda^-1/2 K_fu K^-1,  v_i = L^-1 k(Z, x_i),  K = L L',
    Lambda_i = sn^2 + alpha (k(x_i, x_i) - v_i' v_i).

Without hidden layers, the predictions are those of ``sgp`` at these parameters. For alpha = 0 minus the energy is the
variational bound. In the search, K has the jitter of this method.

Source: ours. The paper starts from random factors (module ``initialisation``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ep_bench.covariances.from_options import build
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.replicates import Replicates
from ep_bench.covariances.sparse_bound import SparseGPProblem, split
from ep_bench.covariances.sparse_searches import by_trials
from ep_bench.methods.dgp_ep.layout import Layer, Structure, layers, size
from ep_bench.methods.dgp_ep.outputs import JITTER
from ep_bench.types import Array

SEARCH_STEPS = 200  # maximum iterations of the search for hyperparameters and inducing inputs of a layer
MAX_ROWS = 5000  # data points in this search; a random subset of more
NOISE_FLOOR = 1e-4  # minimum noise variance; with less, the factors are ill-conditioned
MAX_MAGNITUDE = 10.0  # signal variance; with more, the jitter is too small for the accuracy of the factors
HIDDEN_NOISE_STD = 0.03  # of hidden layers
COMPONENT_NOISE_STD = 0.1  # assumed noise of principal components of variance 1
SMALLEST = 1e-8  # diagonal of R, relative to its largest entry


class SparseProcess(NamedTuple):
    """Inducing inputs and hyperparameters, standardised units."""

    Z: Array  # (M, D)
    lengthscales: Array  # (D,)
    s2: float  # signal variance
    noise: float  # noise variance


class Factor(NamedTuple):
    """The tied factor of one output, and the predictions at the data points."""

    R: Array  # (M, M) upper triangular, positive diagonal
    theta_2: Array  # (M,)
    mean: Array  # (N,)


def start(structure: Structure, X: Array, y: Array, inducing: Array, alpha: float, rng: np.random.Generator) -> Array:
    """Return initial parameters (P,) for X (n, d), y (n,), from inducing inputs (M, d) of the first layer.

    Raises FloatingPointError if the search for the hyperparameters of a layer has no finite start.
    """
    theta = np.empty(size(structure))
    *hidden, last = layers(structure, theta)
    H, Z = X, inducing
    for layer in hidden:
        process = _learn(H, y, Z, alpha, rng)
        found = _write_layer(layer, process, H, _hidden_targets(H, y, process, len(layer.inputs)), alpha)
        layer.log_noise[:] = np.log(HIDDEN_NOISE_STD)
        H = found
        Z = spread(H, structure.inducing)
    process = _learn(H, y, Z, alpha, rng)
    _write_layer(last, process, H, [(y, process.noise)], alpha)
    return theta


def _learn(H: Array, y: Array, Z: Array, alpha: float, rng: np.random.Generator) -> SparseProcess:
    """Return the sparse process from H (n, D) to y (n,) after a search from inducing inputs Z (M, D)."""
    if len(y) > MAX_ROWS:
        some = np.sort(rng.choice(len(y), MAX_ROWS, replace=False))
        H, y = H[some], y[some]
    covariance = build("se", H.shape[1], True)
    hyper = Hyperparameters.of((*covariance.names, "noise_variance"), H.shape[1], {})
    hyper = hyper.with_minimum("noise_variance", NOISE_FLOOR).with_maximum("magnitude", MAX_MAGNITUDE)
    problem = SparseGPProblem(H, y, covariance, hyper, alpha > 0.0, Replicates.none(len(y)), JITTER)
    found = by_trials(problem, [np.append(hyper.start(), Z)], SEARCH_STEPS)
    logarithms, Z = split(problem, found.point)
    values = hyper.values(logarithms)
    lengthscales = np.broadcast_to(values["lengthscale"], H.shape[1])
    return SparseProcess(Z, lengthscales, float(values["magnitude"]), float(values["noise_variance"]))


def _hidden_targets(H: Array, y: Array, process: SparseProcess, width: int) -> list[tuple[Array, float]]:
    """Return targets (n,) and noise variances of the outputs of a hidden layer: y, then principal components."""
    scaled = (H - H.mean(axis=0)) / process.lengthscales
    components, _, _ = np.linalg.svd(scaled, full_matrices=False)
    columns = [np.sqrt(len(H)) * components[:, i % components.shape[1]] for i in range(width - 1)]
    return [(y, process.noise), *((column, COMPONENT_NOISE_STD**2) for column in columns)]


def _write_layer(
    layer: Layer, process: SparseProcess, H: Array, targets: list[tuple[Array, float]], alpha: float
) -> Array:
    """Write the parameters of a layer; return the means of its outputs (n, D_out) at inputs H (n, D)."""
    layer.log_lengthscales[:] = np.log(process.lengthscales)
    layer.log_magnitude[:] = 0.5 * np.log(process.s2)
    layer.log_noise[:] = 0.5 * np.log(process.noise)
    layer.inputs[:] = process.Z
    means = []
    for o, (target, noise) in enumerate(targets):
        R, layer.linear[o], mean = factor(process._replace(noise=noise), H, target, alpha)
        R[np.diag_indices(len(R))] = np.log(np.maximum(R.diagonal(), SMALLEST * np.abs(R).max()))
        layer.factor[o] = R[np.triu_indices(len(R))]
        means.append(mean)
    return np.column_stack(means)


def factor(process: SparseProcess, H: Array, target: Array, alpha: float) -> Factor:
    """Return the tied factor for targets (n,) at inputs H (n, D)."""
    from scipy.spatial.distance import cdist

    Z, M = process.Z / process.lengthscales, len(process.Z)
    L = np.linalg.cholesky(process.s2 * np.exp(-0.5 * cdist(Z, Z, "sqeuclidean")) + JITTER * np.eye(M))
    cross = process.s2 * np.exp(-0.5 * cdist(Z, H / process.lengthscales, "sqeuclidean"))
    V = solve_triangular(L, cross, lower=True)  # (M, n)
    root = 1.0 / np.sqrt(process.noise + alpha * np.maximum(process.s2 - (V**2).sum(axis=0), 0.0))
    scaled, t = root * V, root * target
    A = solve_triangular(L, scaled, lower=True, trans="T")
    padded = np.vstack([A.T, np.zeros((max(M - len(H), 0), M))])
    R = np.asarray(np.linalg.qr(padded, mode="r"))
    R *= np.where(R.diagonal() < 0.0, -1.0, 1.0)[:, None]
    mean = V.T @ np.linalg.solve(np.eye(M) + scaled @ scaled.T, scaled @ t)
    return Factor(R, A @ t, mean)


def spread(H: Array, count: int) -> Array:
    """Return ``count`` of the points H (n, D), equally spaced in the order of their first coordinate."""
    return H[np.argsort(H[:, 0], kind="stable")[np.linspace(0, len(H) - 1, count).round().astype(int)]]
