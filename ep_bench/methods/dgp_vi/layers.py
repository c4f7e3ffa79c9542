"""One layer of a deep Gaussian process: its parameters, the moments of its outputs, and their derivatives.

The D_out outputs of a layer with D_in inputs share covariance function k and inducing inputs Z (M, D_in). Output o is

    f_o(h) = (h W)_o + v(h)' w_o + a rest with variance k(h, h) - v' v,   v(h) = L^-1 k(Z, h),   L L' = k(Z, Z),

with whitened inducing outputs w_o ~ N(0, I) a priori and q(w_o) = N(m_o, F_o F_o'), F_o lower triangular. So at inputs
H (P, D_in), with features V (P, M),

    mean_o = (H W)_o + V m_o,   variance_o = k(h, h) - v' v + |v' F_o|^2 + noise,

where hidden layers have noise. All D_out products V F_o are one product of matrices, and so are those of the gradients.

A vector theta has, layer by layer: logarithms of lengthscales, magnitude and noise variance (D_in + 2,), Z, the means
m (M, D_out), and F (M, D_out, M), stored as F[i, o, j] with the logarithm of its diagonal; elements above are 0.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.from_options import build
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.replicates import Replicates
from ep_bench.covariances.sparse_bound import InducingBasis, SparseGPProblem, basis, by_covariance, features
from ep_bench.numerics import symmetric
from ep_bench.types import Array


class Structure(NamedTuple):
    """Sizes of a deep Gaussian process."""

    dims: tuple[int, ...]  # numbers of inputs, of units of the hidden layers, and 1
    inducing: int  # M


class Layer(NamedTuple):
    """Views of the parameters of one layer, or of their gradients."""

    hyper: Array  # (D_in + 2,) logarithms, the noise variance last
    Z: Array  # (M, D_in)
    mean: Array  # (M, D_out)
    factor: Array  # (M, D_out, M)


class Forward(NamedTuple):
    """Moments of the outputs of a layer, and what their derivatives need."""

    H: Array  # (P, D_in) inputs
    base: InducingBasis
    V: Array  # (P, M)
    F: Array  # (M, D_out, M) with its diagonal
    U: Array  # (P, D_out, M), v' F_o
    mean: Array  # (P, D_out)
    variance: Array  # (P, D_out), without noise


def shapes(structure: Structure) -> list[tuple[tuple[int, ...], ...]]:
    """Return the shapes of the parameters of each layer, in the order of ``Layer``."""
    M = structure.inducing
    return [((d_in + 2,), (M, d_in), (M, d_out), (M, d_out, M)) for d_in, d_out in pairwise(structure.dims)]


def size(structure: Structure) -> int:
    """Return the number of parameters."""
    return sum(math.prod(shape) for layer in shapes(structure) for shape in layer)


def layers(structure: Structure, theta: Array) -> list[Layer]:
    """Return views of theta (P,) per layer."""
    found, at = [], 0
    for layer in shapes(structure):
        views = []
        for shape in layer:
            count = math.prod(shape)
            views.append(theta[at : at + count].reshape(shape))
            at += count
        found.append(Layer(*views))
    return found


def problem_of(d: int) -> SparseGPProblem:
    """Return covariance and hyperparameters of a layer with d inputs, without data points."""
    covariance = build("se", d, True)
    hyper = Hyperparameters.of((*covariance.names, "noise_variance"), d, {})
    return SparseGPProblem(np.empty((0, d)), np.empty(0), covariance, hyper, False, Replicates.none(0))


def diagonal(factor: Array) -> Array:
    """Return a view of the diagonals (M, D_out) of F (M, D_out, M)."""
    return np.einsum("ioi->io", factor)


def forward(problem: SparseGPProblem, layer: Layer, W: Array, H: Array) -> Forward:
    """Return the moments of the outputs at inputs H (P, D_in). Raises FloatingPointError as ``basis`` does."""
    base = basis(problem, layer.hyper, layer.Z)
    V, rest = features(problem.covariance, base, H)
    F = layer.factor.copy()
    diagonal(F)[:] = np.exp(diagonal(layer.factor))
    U = (V @ F.reshape(len(F), -1)).reshape(len(H), -1, len(F))
    variance = np.maximum(rest, 0.0)[:, None] + np.einsum("pok,pok->po", U, U)
    return Forward(H, base, V, F, U, H @ W + V @ layer.mean, variance)


def divergence(layer: Layer, made: Forward) -> float:
    """Return KL(q || N(0, I)) of all outputs of a layer (nats)."""
    logs = diagonal(layer.factor)
    squares = np.vdot(layer.mean, layer.mean) + np.vdot(made.F, made.F)
    return 0.5 * float(squares - logs.size) - float(logs.sum())


def backward(
    problem: SparseGPProblem, layer: Layer, made: Forward, d_mean: Array, d_variance: Array, by: Layer
) -> Array:
    """Write the gradient of a layer, the divergence included, from those of its moments (P, D_out).

    Returns the gradient (P, M) of the covariances with the inducing inputs. The noise is not a part of the moments.
    """
    covariance, parameters, M = problem.covariance, layer.hyper[:-1], len(layer.Z)
    d_rest = d_variance.sum(axis=1)
    d_U = (2.0 * d_variance[:, :, None] * made.U).reshape(len(made.U), -1)
    by.mean[:] = made.V.T @ d_mean + layer.mean
    by.factor[:] = lower(M) * (made.V.T @ d_U).reshape(made.F.shape) + made.F
    diagonal(by.factor)[:] = diagonal(by.factor) * diagonal(made.F) - 1.0
    d_V = d_mean @ layer.mean.T + d_U @ made.F.reshape(M, -1).T - 2.0 * d_rest[:, None] * made.V
    d_K = by_covariance(made.base, d_V.T @ made.V)
    A = np.ascontiguousarray(symmetric.half_solve_back(made.base.factor, d_V))
    by_H, by_Z = (
        covariance.contract_both(parameters, points, a, layer.Z) for points, a in ((made.H, A), (layer.Z, d_K))
    )
    by.hyper[:-1] = by_H[0] + by_Z[0] + covariance.contract_diagonal(parameters, made.H, d_rest)
    by.Z[:] = by_H[1] + 2.0 * by_Z[1]
    return A


def input_gradient(problem: SparseGPProblem, layer: Layer, W: Array, made: Forward, d_mean: Array, A: Array) -> Array:
    """Return the gradient of the inputs (P, D_in) of a layer, from those of its means and covariances."""
    turned = np.ascontiguousarray(A.T)
    return d_mean @ W.T + problem.covariance.contract_both(layer.hyper[:-1], layer.Z, turned, made.H)[1]


def lower(M: int) -> Array:
    """Return ones (M, 1, M) for the elements of F on and below the diagonal, 0 above."""
    return np.tri(M)[:, None, :]
