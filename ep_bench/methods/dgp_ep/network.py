"""Forward and backward pass of a minibatch through the layers: section 5, appendices D and E of Bui et al. (2015).

Each output has its own inducing inputs and tied factor (module ``factor``). In the first layer, with k = k(x, Z),

    mean = k A,    variance = sn^2 + sf^2 - |S k|^2.

The inputs of later layers are treated as independent Gaussians (module ``numerics.psi``). With Q = A A' - G,

    mean = psi1 A,    variance = sn^2 + sf^2 - |S psi1|^2 + sum(Q o cov(k)),

which is the paper's sum(Q o psi2) - mean^2, without their difference: the elements of Q grow with the condition number
of K. The noise of the last layer belongs to the likelihood. Arrays of means, variances and their gradients are
(L + 1, B, W), W the widest layer; index 0 are the inputs, and columns beyond the width of a layer are not used.

Symbols and array arguments (B data points, D inputs of a layer, M inducing inputs, U outputs of all layers):

    x, w       means and variances of the inputs of a layer, (B, W)
    m, v       means and variances of its outputs, (B, W); o is the column of one output
    gm, gv     gradients with respect to mean and variance of one output, (B,)
    k          k or psi1 of one output, (B, M); Sk is S k of each data point, (B, M)
    a, D       gradients with respect to A (M,) and G (M, M)
    d...       gradients, each of the shape of its argument; dlog_l (D,) with respect to log lengthscales
    theta      parameters (P,) as in ``layout``; gradient (P,)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import factor
from ep_bench.methods.dgp_ep.outputs import (
    DGPModel,
    OutputParameters,
    UnpackedParameters,
    allocate_parameters,
    covariance_back,
    output_at,
    unpack_output,
)
from ep_bench.numerics import psi
from ep_bench.numerics.copying import copy_matrix, copy_vector, subtract_matrix
from ep_bench.numerics.jit import FUSE, jit


class LayerMoments(NamedTuple):
    """Means and variances of every layer, and the gradients of the energy with respect to them."""

    means: Any  # (L + 1, B, W), also the next ones
    variances: Any
    d_means: Any
    d_variances: Any


class ForwardPass(NamedTuple):
    """Results of the forward pass of U outputs, in the order of the layers, for the backward pass."""

    moments: Any  # LayerMoments; JointLayerMoments with full propagation
    parameters: UnpackedParameters
    S: Any  # (U, M, M) as in ``factor``, also the next ones
    G: Any  # (U, M, M)
    H: Any  # (U, M, M)
    A: Any  # (U, M)
    mean: Any  # (U, M)
    e: Any  # (U, M)
    Ke: Any  # (U, M)
    k: Any  # (U, B, M) k of the first layer, psi1 of later ones
    Sk: Any  # (U, B, M)
    excesses: Any  # (outputs of later layers, B, P), as in ``numerics.psi``; empty with full propagation


def allocate_moments(model: DGPModel, rows: int) -> LayerMoments:
    """Allocate the arrays for the moments of ``rows`` data points."""
    shape = len(model.dims), rows, model.dims.max()
    return LayerMoments(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


def allocate_pass(model: DGPModel, rows: int) -> ForwardPass:
    """Allocate the arrays for a pass of ``rows`` data points."""
    return allocate_results(model, rows, allocate_moments(model, rows), int(model.dims[2:].sum()))


def allocate_results(model: DGPModel, rows: int, moments: Any, later: int) -> ForwardPass:
    """Allocate all but the moments, with excesses for ``later`` outputs."""
    U, M = int(model.dims[1:].sum()), model.inducing
    square, vector = (U, M, M), (U, M)
    return ForwardPass(
        moments, allocate_parameters(model, U),
        np.empty(square), np.empty(square), np.empty(square),
        np.empty(vector), np.empty(vector), np.empty(vector), np.empty(vector),
        np.empty((U, rows, M)), np.empty((U, rows, M)), np.empty((later, rows, M * (M + 1) // 2)),
    )  # fmt: skip


@jit(relaxed=FUSE, merged=True)
def moments_at_known_inputs(gp: OutputParameters, cavity: factor.Cavity, X: Any, m: Any, v: Any, o: int, k: Any) -> Any:
    """Write mean and variance of output o, without noise, at inputs X (B, D or more), and k (B, M); return S k."""
    psi.psi1(X, np.zeros(X.shape), gp.Zt, gp.l2, gp.s2, k)
    return _moments_from_k(gp, cavity, k, m, v, o)


@jit(relaxed=FUSE, merged=True)
def moments_at_uncertain_inputs(
    gp: OutputParameters, cavity: factor.Cavity, x: Any, w: Any, m: Any, v: Any, o: int, k: Any, excesses: Any
) -> Any:
    """Write the same for Gaussian inputs, and the excesses (B, P) of ``numerics.psi``; return S psi1 (B, M)."""
    psi.psi1(x, w, gp.Zt, gp.l2, gp.s2, k)
    Sk = _moments_from_k(gp, cavity, k, m, v, o)
    add_spread(gp, cavity.A, cavity.G, k, x, w, v, o, excesses)
    return Sk


@jit(relaxed=FUSE, merged=True)
def _moments_from_k(gp: OutputParameters, cavity: factor.Cavity, k: Any, m: Any, v: Any, o: int) -> Any:
    """Write mean and variance of output o for known k (B, M); return S k (B, M)."""
    Sk = np.dot(k, cavity.S.T)
    mean = np.dot(k, cavity.A)
    for n in range(len(k)):
        row, square = Sk[n], 0.0
        for i in range(len(row)):
            square += row[i] * row[i]
        m[n, o] = mean[n]
        v[n, o] = gp.s2 - square
    return Sk


@jit(relaxed=FUSE, merged=True)
def add_spread(gp: OutputParameters, A: Any, G: Any, k: Any, x: Any, w: Any, v: Any, o: int, excesses: Any) -> None:
    """Add the contribution of the variances of the inputs to the variance of output o; write the excesses (B, P)."""
    sums = psi.contract_spread(x, w, gp.Zt, gp.l2, k, pair_weights(A, G), excesses)
    for n in range(len(x)):
        v[n, o] += sums[n]


@jit(relaxed=FUSE, merged=True)
def pair_weights(A: Any, G: Any) -> Any:
    """Return Q = A A' - G (M, M)."""
    Q = outer(A, A)
    subtract_matrix(G, Q)
    return Q


@jit(relaxed=FUSE, merged=True)
def copy_inputs(X: Any, first: Any) -> None:
    """Copy inputs X (B, d) to the first columns of ``first`` (B, W)."""
    for n in range(X.shape[0]):
        for j in range(X.shape[1]):
            first[n, j] = X[n, j]


@jit(relaxed=FUSE, merged=True)
def add_noise(noise: float, v: Any, o: int) -> None:
    """Add the noise variance to the variance of output o."""
    for n in range(len(v)):
        v[n, o] += noise


@jit(relaxed=FUSE, merged=True)
def outer(a: Any, b: Any) -> Any:
    """Return the outer product (M, N) of a (M,) and b (N,)."""
    product = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            product[i, j] = a[i] * b[j]
    return product


@jit(relaxed=FUSE)
def layer_moments(
    model: DGPModel, theta: Any, layer: int, x: Any, parameters: UnpackedParameters, m: Any, v: Any
) -> None:
    """Write the moments (B, D_out) of one layer under the posterior at known inputs x (B, D_in).

    They include noise except for the last layer. ``parameters`` is a workspace for one output.
    """
    k = np.empty((len(x), model.inducing))
    for o in range(model.dims[layer + 1]):
        gp = unpack_output(model, theta, layer, o, parameters, 0)
        cavity = factor.cavity(gp.K, gp.R, gp.theta_2, 1.0)
        moments_at_known_inputs(gp, cavity, x, m, v, o, k)
        if layer < len(model.dims) - 2:
            add_noise(gp.noise, v, o)


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, saved: ForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) without its likelihood term, nats; write the moments of every layer.

    They include noise except for the last layer. Moments and energy are nan if a matrix has no Cholesky factor.
    """
    L, i, value = len(model.dims) - 1, 0, 0.0
    means, variances = saved.moments.means, saved.moments.variances
    copy_inputs(X, means[0])
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            gp = unpack_output(model, theta, layer, o, saved.parameters, i)
            cavity = factor.cavity(gp.K, gp.R, gp.theta_2, model.power.beta)
            tied = factor.tied_terms(gp.K, gp.R, gp.theta_2, model.power, cavity)
            value += tied.energy
            if layer == 0:
                Sk = moments_at_known_inputs(gp, cavity, means[0], m, v, o, saved.k[i])
            else:
                excesses = saved.excesses[i - model.dims[1]]
                Sk = moments_at_uncertain_inputs(
                    gp, cavity, means[layer], variances[layer], m, v, o, saved.k[i], excesses
                )
            if np.isnan(cavity.log_determinant):
                m[:, o] = np.nan
            if layer < L - 1:
                add_noise(gp.noise, v, o)
            save(cavity, tied, Sk, saved, i)
            i += 1
    return value


@jit(relaxed=FUSE, merged=True)
def save(cavity: factor.Cavity, tied: factor.TiedTerms, Sk: Any, saved: Any, i: int) -> None:
    """Copy the terms of one output for the backward pass to index i."""
    copy_matrix(cavity.S, saved.S[i])
    copy_matrix(cavity.G, saved.G[i])
    copy_matrix(tied.H, saved.H[i])
    copy_matrix(Sk, saved.Sk[i])
    copy_vector(cavity.A, saved.A[i])
    copy_vector(cavity.mean, saved.mean[i])
    copy_vector(tied.e, saved.e[i])
    copy_vector(tied.Ke, saved.Ke[i])


@jit(relaxed=FUSE)
def backward(model: DGPModel, saved: ForwardPass, gradient: Any) -> None:
    """Add to the gradient (P,) from the gradients of the last layer's moments; write those of the other layers."""
    L, M, i = len(model.dims) - 1, model.inducing, len(saved.A)
    moments, D = saved.moments, np.empty((M, M))
    for layer in range(L - 1, -1, -1):
        x, w, dx, dw = (
            moments.means[layer],
            moments.variances[layer],
            moments.d_means[layer],
            moments.d_variances[layer],
        )
        for o in range(model.dims[layer + 1] - 1, -1, -1):
            i -= 1
            gp = output_at(saved.parameters, i, model.dims[layer])
            gm, gv = moments.d_means[layer + 1, :, o].copy(), moments.d_variances[layer + 1, :, o].copy()
            dZt, dlog_l = np.zeros(gp.Zt.shape), np.zeros(len(gp.l2))
            a, weights = back_from_k(saved.S[i], saved.A[i], saved.k[i], saved.Sk[i], gm, gv, D)
            dlog_s = 2.0 * gp.s2 * gv.sum()
            if layer > 0:
                excesses, Q = saved.excesses[i - model.dims[1]], pair_weights(saved.A[i], saved.G[i])
                dQ = spread_back(gp, saved.k[i], Q, excesses, x, w, gv, dx, dw, dZt, dlog_l, weights)
                by_Q = np.dot(dQ, saved.A[i])
                for m in range(M):
                    a[m] += 2.0 * by_Q[m]
                subtract_matrix(dQ, D)
            noise = 2.0 * gp.noise * gv.sum() if layer < L - 1 else 0.0
            dlog_s += psi.psi1_back(x, w, gp.Zt, gp.l2, weights, dx, dw, dZt, dlog_l)
            output_back(model, gp, factor_at(saved, i), layer, o, D, a, dZt, dlog_l, dlog_s, noise, gradient)


@jit(relaxed=FUSE, merged=True)
def factor_at(saved: Any, i: int) -> factor.BackwardTerms:
    """Return the terms of the output at index i for the backward pass of its factor."""
    return factor.BackwardTerms(saved.G[i], saved.H[i], saved.A[i], saved.mean[i], saved.e[i], saved.Ke[i])


@jit(relaxed=FUSE, merged=True)
def back_from_k(S: Any, A: Any, k: Any, Sk: Any, gm: Any, gv: Any, D: Any) -> tuple[Any, Any]:
    """Return the gradient with respect to A (M,), and k times that with respect to k (B, M); write that of G to D."""
    kG = np.dot(Sk, S)
    scaled = np.empty(k.shape)
    for n in range(len(k)):
        minus, twice = -gv[n], 2.0 * gv[n]
        for i in range(k.shape[1]):
            scaled[n, i] = minus * k[n, i]
            kG[n, i] = (gm[n] * A[i] - twice * kG[n, i]) * k[n, i]
    copy_matrix(np.dot(k.T, scaled), D)
    return np.dot(gm, k), kG


@jit(relaxed=FUSE, merged=True)
def spread_back(
    gp: OutputParameters,
    k: Any,
    Q: Any,
    excesses: Any,
    x: Any,
    w: Any,
    gv: Any,
    dx: Any,
    dw: Any,
    dZt: Any,
    dlog_l: Any,
    weights: Any,
) -> Any:
    """Return the gradient with respect to Q (M, M) of the contribution of the inputs' variances.

    Adds psi1 times the gradient with respect to psi1 to ``weights`` (B, M).
    """
    dk, dQ = np.empty(k.shape), np.empty(Q.shape)
    psi.contract_spread_back(x, w, gp.Zt, gp.l2, k, Q, excesses, gv, dx, dw, dZt, dlog_l, dk, dQ)
    weights += dk * k
    return dQ


@jit(relaxed=FUSE, merged=True)
def output_back(
    model: DGPModel, gp: OutputParameters, terms: factor.BackwardTerms, layer: int, o: int, D: Any, a: Any, dZt: Any,
    dlog_l: Any, dlog_s: float, dlog_noise: float, gradient: Any,
) -> None:  # fmt: skip
    """Write the gradient of all parameters of one output from the gradients of its propagation."""
    M, at = model.inducing, model.offsets[layer]
    packed = M * (M + 1) // 2
    dK = np.empty((M, M))
    factor.back(
        gp.K, gp.R, model.power, terms, D, a, dK,
        gradient[at[5] + o * M : at[5] + (o + 1) * M], gradient[at[4] + o * packed : at[4] + (o + 1) * packed],
    )  # fmt: skip
    covariance_back(model, gp, layer, o, dK, dZt, dlog_l, dlog_s, dlog_noise, gradient)
