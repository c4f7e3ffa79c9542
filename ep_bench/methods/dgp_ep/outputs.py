"""Parameters of one output of a layer: unpacking, and the gradient of inducing inputs and hyperparameters.

Symbols are those of ``network``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import factor
from ep_bench.methods.dgp_ep.factor import Power
from ep_bench.numerics import psi
from ep_bench.numerics.copying import copy_matrix
from ep_bench.numerics.jit import FUSE, jit

JITTER = 1e-6  # on the diagonal of K, absolute; not a function of the parameters


class DGPModel(NamedTuple):
    """Sizes and constants of the model, the same in every step."""

    dims: Any  # (L + 1,) inputs, hidden layers, outputs
    offsets: Any  # (L, 6) of each layer's parameters, as in ``layout``
    groups: Any  # (L,) numbers of sets of hyperparameters
    inducing: int  # M
    power: Power


class UnpackedParameters(NamedTuple):
    """Parameters of U outputs; D is the maximum number of inputs of a layer."""

    Zt: Any  # (U, D, M) inducing inputs
    l2: Any  # (U, D) squared lengthscales
    s2: Any  # (U,) signal variances
    noise: Any  # (U,) noise variances
    theta_2: Any  # (U, M)
    K: Any  # (U, M, M) with its jitter
    R: Any  # (U, M, M)


class OutputParameters(NamedTuple):
    """Parameters of one output, views of ``UnpackedParameters``."""

    Zt: Any  # (D, M)
    l2: Any  # (D,)
    s2: float
    noise: float
    theta_2: Any  # (M,)
    K: Any  # (M, M)
    R: Any  # (M, M)


def allocate_parameters(model: DGPModel, count: int) -> UnpackedParameters:
    """Allocate the arrays for the parameters of ``count`` outputs."""
    D, M = model.dims[:-1].max(), model.inducing
    return UnpackedParameters(
        np.empty((count, D, M)), np.empty((count, D)), np.empty(count), np.empty(count), np.empty((count, M)),
        np.empty((count, M, M)), np.empty((count, M, M)),
    )  # fmt: skip


@jit(relaxed=FUSE, merged=True)
def unpack_output(
    model: DGPModel, theta: Any, layer: int, output: int, parameters: UnpackedParameters, i: int
) -> OutputParameters:
    """Unpack the parameters of one output to index i."""
    M, at = model.inducing, model.offsets[layer]
    packed = M * (M + 1) // 2
    factor.unpack(theta[at[4] + output * packed : at[4] + (output + 1) * packed], parameters.R[i])
    return unpack_without_factor(model, theta, layer, output, parameters, i)


@jit(relaxed=FUSE, merged=True)
def unpack_without_factor(
    model: DGPModel, theta: Any, layer: int, output: int, parameters: UnpackedParameters, i: int
) -> OutputParameters:
    """Unpack the parameters of one output, except its factor, to index i."""
    D, M, at = model.dims[layer], model.inducing, model.offsets[layer]
    group = output if model.groups[layer] > 1 else 0
    first, linear = at[3] + output * M * D, at[5] + output * M
    for j in range(D):
        parameters.l2[i, j] = np.exp(2.0 * theta[at[0] + group * D + j])
        for m in range(M):
            parameters.Zt[i, j, m] = theta[first + m * D + j]
    for m in range(M):
        parameters.theta_2[i, m] = theta[linear + m]
    parameters.s2[i] = math.exp(2.0 * theta[at[1] + group])
    parameters.noise[i] = math.exp(2.0 * theta[at[2] + group])
    gp = output_at(parameters, i, D)
    psi.covariance(gp.Zt, gp.l2, gp.s2, gp.K)
    for m in range(M):
        gp.K[m, m] += JITTER
    return gp


@jit(relaxed=FUSE, merged=True)
def output_at(parameters: UnpackedParameters, i: int, D: int) -> OutputParameters:
    """Return the parameters of the output at index i, which has D inputs."""
    return OutputParameters(
        parameters.Zt[i, :D],
        parameters.l2[i, :D],
        parameters.s2[i],
        parameters.noise[i],
        parameters.theta_2[i],
        parameters.K[i],
        parameters.R[i],
    )


@jit(relaxed=FUSE, merged=True)
def covariance_back(
    model: DGPModel, gp: OutputParameters, layer: int, o: int, dK: Any, dZt: Any, dlog_l: Any, dlog_s: float,
    dlog_noise: float, gradient: Any,
) -> None:  # fmt: skip
    """Write the gradient of inducing inputs and hyperparameters of one output; dK (M, M) is overwritten."""
    M, at, inputs = model.inducing, model.offsets[layer], len(gp.l2)
    for i in range(M):
        for j in range(M):
            dK[i, j] *= gp.K[i, j]
        dK[i, i] *= gp.s2 / gp.K[i, i]
    dlog_s += psi.covariance_back(gp.Zt, gp.l2, dK, dZt, dlog_l)
    group = o if model.groups[layer] > 1 else 0
    first = at[0] + group * inputs
    for j in range(inputs):
        gradient[first + j] += dlog_l[j]
    gradient[at[1] + group] += dlog_s
    gradient[at[2] + group] += dlog_noise
    Z = gradient[at[3] + o * M * inputs : at[3] + (o + 1) * M * inputs].reshape(M, inputs)
    copy_matrix(dZt.T, Z)
