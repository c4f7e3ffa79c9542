"""The tied factor in whitened coordinates: storage, and the moment-matching step of one output.

Equations and symbols are those of ``stochastic_ep``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import outputs
from ep_bench.methods.dgp_ep.outputs import DGPModel, OutputParameters, UnpackedParameters
from ep_bench.numerics.cholesky import factorise, inverse_factor
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import FUSE, jit

MIN_PRECISION_RATIO = 0.5  # of the posterior's precision after and before a step, in every direction
MAX_HALVINGS = 60  # of a step


class WhitenedCavity(NamedTuple):
    """The cavity (or, with beta = 1, the posterior) of one output."""

    inverse: Any  # (M, M) L^-1
    P: Any  # (M, M)
    J_inverse: Any  # (M, M) J^-1
    V: Any  # (M, M)
    mean: Any  # (M,) m
    A: Any  # (M,)
    phi: float  # (m' P m - log|P|) / 2; nan if K or P has no Cholesky factor


@jit(relaxed=FUSE, merged=True)
def unpack_output(
    model: DGPModel, theta: Any, layer: int, output: int, parameters: UnpackedParameters, i: int
) -> OutputParameters:
    """Unpack the parameters of one output to index i, with T in place of R and t in place of theta_2."""
    M = model.inducing
    T, at = parameters.R[i], model.offsets[layer, 4] + output * (M * (M + 1) // 2)
    for row in range(M):
        for j in range(row, M):
            T[row, j] = theta[at + j - row]
            T[j, row] = T[row, j]
        at += M - row
    return outputs.unpack_without_factor(model, theta, layer, output, parameters, i)


@jit(relaxed=FUSE)
def update_factor(
    model: DGPModel,
    gp: OutputParameters,
    cavity: WhitenedCavity,
    D: Any,
    a: Any,
    rate: float,
    theta: Any,
    layer: int,
    o: int,
) -> int:
    """Update the factor of one output in ``theta``; return the number of halvings of its step, -1 if there is no step.

    ``D`` (M, M) and ``a`` (M,) are gradients of the energy, -N times those of the mean log Z.
    """
    M, N, T = len(D), model.power.n, gp.R
    mean_a = a / -N
    X = D * (-2.0 / N)
    for i in range(M):
        for j in range(M):
            X[i, j] += mean_a[i] * mean_a[j]
    X = np.dot(cavity.J_inverse, np.dot(X, cavity.J_inverse.T))
    left = -X
    for i in range(M):
        left[i, i] += 1.0
    inverse, log_determinant = inverse_factor(left)
    if np.isnan(log_determinant):
        return -1
    J = np.dot(cavity.P, cavity.J_inverse.T)
    site = np.dot(J, np.dot(np.dot(inverse.T, np.dot(inverse, X)), J.T))
    t_new = N * (np.dot(site, cavity.mean + np.dot(cavity.V, mean_a)) + mean_a)
    change = np.empty((M, M))
    for i in range(M):
        for j in range(M):
            change[i, j] = 0.5 * N * (site[i, j] + site[j, i]) - T[i, j]
    halvings = _count_halvings(T, change, rate)
    if halvings < 0:
        return -1
    rate *= 0.5**halvings
    at, packed = model.offsets[layer], model.offsets[layer, 4] + o * (M * (M + 1) // 2)
    for i in range(M):
        theta[at[5] + o * M + i] += rate * (t_new[i] - gp.theta_2[i])
        for j in range(i, M):
            theta[packed + j - i] += rate * change[i, j]
        packed += M - i
    return halvings


@jit(relaxed=FUSE)
def _count_halvings(T: Any, change: Any, rate: float) -> int:
    """Return how often a step of T must be halved to keep ``MIN_PRECISION_RATIO``; -1 if halving does not help.

    T and the full step ``change`` are (M, M).
    """
    for count in range(MAX_HALVINGS):
        left = (1.0 - MIN_PRECISION_RATIO) * T + rate * change
        for i in range(len(T)):
            left[i, i] += 1.0 - MIN_PRECISION_RATIO
        if not np.isnan(inverse_factor(left)[1]):
            return count
        rate *= 0.5
    return -1


@jit(relaxed=FUSE)
def whiten(model: DGPModel, theta: Any, parameters: UnpackedParameters) -> None:
    """Replace R and theta_2 in ``theta`` (P,) by T = L' R' R L and t = L' theta_2.

    ``parameters`` is a workspace for one output.
    """
    M = model.inducing
    for layer in range(len(model.dims) - 1):
        at = model.offsets[layer]
        for o in range(model.dims[layer + 1]):
            gp = outputs.unpack_output(model, theta, layer, o, parameters, 0)
            L = gp.K.copy()
            factorise(L)
            for i in range(M):
                L[i, i + 1 :] = 0.0
            RL, packed = np.dot(gp.R, L), at[4] + o * (M * (M + 1) // 2)
            T = np.dot(RL.T, RL)
            copy_vector(np.dot(L.T, gp.theta_2), theta[at[5] + o * M : at[5] + (o + 1) * M])
            for i in range(M):
                for j in range(i, M):
                    theta[packed + j - i] = T[i, j]
                packed += M - i
