"""A minibatch through the layers and back: section 5 and appendices D and E of Bui et al. (2015).

Each output has its own inducing inputs and tied factor (module ``factor``). In the first layer, with k = k(x, Z),

    mean = k A,    variance = sn^2 + sf^2 - |S k|^2,

in later ones, whose inputs are taken to be independent Gaussians (module ``numerics.psi``), with Q = A A' - G,

    mean = psi1 A,    variance = sn^2 + sf^2 - |S psi1|^2 + sum(Q o cov(k)),

which is the paper's sum(Q o psi2) less mean^2 without their difference: Q's elements grow with K's condition.
The last layer's noise belongs to the likelihood. Arrays of means, variances and their gradients are (L + 1, B, W), W
the widest layer, the inputs at 0; what stands beyond a layer's width is not used.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import factor
from ep_bench.methods.dgp_ep.factor import Power
from ep_bench.numerics import psi
from ep_bench.numerics.copying import copy_matrix, copy_vector
from ep_bench.numerics.jit import FUSE, jit

JITTER = 1e-6  # on the diagonal of K, absolute; not a function of the parameters


class DGPModel(NamedTuple):
    """What every step has in common."""

    dims: Any  # (L + 1,) inputs, hidden layers, outputs
    offsets: Any  # (L, 6) of each layer's parameters, as in ``layout``
    groups: Any  # (L,) of hyperparameters
    inducing: int
    power: Power


class Units(NamedTuple):
    """The parameters of U outputs, unpacked; D is the largest number of inputs of a layer."""

    Zt: Any  # (U, D, M)
    l2: Any  # (U, D)
    s2: Any  # (U,)
    noise: Any  # (U,) variances
    theta_2: Any  # (U, M)
    K: Any  # (U, M, M) with its jitter
    R: Any  # (U, M, M)


class Unit(NamedTuple):
    """One output's parameters, views of ``Units``."""

    Zt: Any  # (D, M)
    l2: Any  # (D,)
    s2: float
    noise: float
    theta_2: Any  # (M,)
    K: Any  # (M, M)
    R: Any  # (M, M)


class LayerMoments(NamedTuple):
    """Means and variances of every layer, (L + 1, B, W), and the energy's gradients with respect to them."""

    means: Any
    variances: Any
    d_means: Any
    d_variances: Any


class ForwardPass(NamedTuple):
    """What the backward pass needs of the forward pass of U outputs, in the order of the layers."""

    moments: LayerMoments
    units: Units
    S: Any  # (U, M, M) as in ``factor``, also the next ones
    G: Any  # (U, M, M)
    H: Any  # (U, M, M)
    A: Any  # (U, M)
    mean: Any  # (U, M)
    e: Any  # (U, M)
    Ke: Any  # (U, M)
    k: Any  # (U, B, M) k of the first layer, psi1 of later ones
    Sk: Any  # (U, B, M)
    excesses: Any  # (outputs of later layers, B, P), as in ``numerics.psi``


def units(model: DGPModel, count: int) -> Units:
    """Return room for the parameters of ``count`` outputs."""
    D, M = model.dims[:-1].max(), model.inducing
    return Units(
        np.empty((count, D, M)), np.empty((count, D)), np.empty(count), np.empty(count), np.empty((count, M)),
        np.empty((count, M, M)), np.empty((count, M, M)),
    )  # fmt: skip


def moments(model: DGPModel, rows: int) -> LayerMoments:
    """Return room for the moments of B rows."""
    shape = len(model.dims), rows, model.dims.max()
    return LayerMoments(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


def passes(model: DGPModel, rows: int) -> ForwardPass:
    """Return room for a pass of B rows."""
    U, M = int(model.dims[1:].sum()), model.inducing
    later, square, vector = U - model.dims[1], (U, M, M), (U, M)
    return ForwardPass(
        moments(model, rows), units(model, U),
        np.empty(square), np.empty(square), np.empty(square),
        np.empty(vector), np.empty(vector), np.empty(vector), np.empty(vector),
        np.empty((U, rows, M)), np.empty((U, rows, M)), np.empty((later, rows, M * (M + 1) // 2)),
    )  # fmt: skip


@jit(relaxed=FUSE, merged=True)
def unit_of(model: DGPModel, theta: Any, layer: int, output: int, units: Units, i: int) -> Unit:
    """Unpack one output's parameters to place i."""
    M, at = model.inducing, model.offsets[layer]
    packed = M * (M + 1) // 2
    factor.unpack(theta[at[4] + output * packed : at[4] + (output + 1) * packed], units.R[i])
    return unit_with(model, theta, layer, output, units, i)


@jit(relaxed=FUSE, merged=True)
def unit_with(model: DGPModel, theta: Any, layer: int, output: int, units: Units, i: int) -> Unit:
    """Unpack one output's parameters to place i, where its factor is already."""
    D, M, at = model.dims[layer], model.inducing, model.offsets[layer]
    group = output if model.groups[layer] > 1 else 0
    first, linear = at[3] + output * M * D, at[5] + output * M
    for j in range(D):
        units.l2[i, j] = np.exp(2.0 * theta[at[0] + group * D + j])
        for m in range(M):
            units.Zt[i, j, m] = theta[first + m * D + j]
    for m in range(M):
        units.theta_2[i, m] = theta[linear + m]
    units.s2[i] = math.exp(2.0 * theta[at[1] + group])
    units.noise[i] = math.exp(2.0 * theta[at[2] + group])
    unit = unit_at(units, i, D)
    psi.covariance(unit.Zt, unit.l2, unit.s2, unit.K)
    for m in range(M):
        unit.K[m, m] += JITTER
    return unit


@jit(relaxed=FUSE, merged=True)
def unit_at(units: Units, i: int, D: int) -> Unit:
    """Return the output at place i, of D inputs."""
    return Unit(units.Zt[i, :D], units.l2[i, :D], units.s2[i], units.noise[i], units.theta_2[i], units.K[i], units.R[i])


@jit(relaxed=FUSE, merged=True)
def known_inputs(unit: Unit, own: factor.Cavity, X: Any, m: Any, v: Any, o: int, k: Any) -> Any:
    """Write mean and variance of output o, without noise, at inputs X (B, d or wider), and k (B, M); return S k."""
    psi.psi1(X, np.zeros(X.shape), unit.Zt, unit.l2, unit.s2, k)
    return _given_k(unit, own, k, m, v, o)


@jit(relaxed=FUSE, merged=True)
def uncertain_inputs(
    unit: Unit, own: factor.Cavity, x: Any, w: Any, m: Any, v: Any, o: int, k: Any, excesses: Any
) -> Any:
    """Write the same from inputs of means x and variances w, and the pairs' excesses (B, P); return S psi1."""
    psi.psi1(x, w, unit.Zt, unit.l2, unit.s2, k)
    Sk = _given_k(unit, own, k, m, v, o)
    add_spread(unit, own.A, own.G, k, x, w, v, o, excesses)
    return Sk


@jit(relaxed=FUSE, merged=True)
def _given_k(unit: Unit, own: factor.Cavity, k: Any, m: Any, v: Any, o: int) -> Any:
    """Write mean and variance of output o where k (B, M) is certain; return S k of each row."""
    Sk = np.dot(k, own.S.T)
    mean = np.dot(k, own.A)
    for n in range(len(k)):
        row, square = Sk[n], 0.0
        for i in range(len(row)):
            square += row[i] * row[i]
        m[n, o] = mean[n]
        v[n, o] = unit.s2 - square
    return Sk


@jit(relaxed=FUSE, merged=True)
def add_spread(unit: Unit, A: Any, G: Any, k: Any, x: Any, w: Any, v: Any, o: int, excesses: Any) -> None:
    """Add to output o's variance what the inputs' variances w make of it; write the pairs' excesses (B, P)."""
    sums = psi.contract_spread(x, w, unit.Zt, unit.l2, k, spread_weights(A, G), excesses)
    for n in range(len(x)):
        v[n, o] += sums[n]


@jit(relaxed=FUSE, merged=True)
def spread_weights(A: Any, G: Any) -> Any:
    """Return Q = A A' - G (M, M)."""
    Q = outer(A, A)
    Q -= G
    return Q


@jit(relaxed=FUSE, merged=True)
def place(X: Any, first: Any) -> None:
    """Write inputs X (B, d) to the first columns of a layer (B, W)."""
    for n in range(X.shape[0]):
        for j in range(X.shape[1]):
            first[n, j] = X[n, j]


@jit(relaxed=FUSE, merged=True)
def add_noise(noise: float, v: Any, o: int) -> None:
    """Add the noise's variance to those of output o, v (B, W)."""
    for n in range(len(v)):
        v[n, o] += noise


@jit(relaxed=FUSE, merged=True)
def outer(a: Any, b: Any) -> Any:
    """Return the outer product (M, N) of vectors."""
    product = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            product[i, j] = a[i] * b[j]
    return product


@jit(relaxed=FUSE)
def layer_moments(model: DGPModel, theta: Any, layer: int, x: Any, units: Units, m: Any, v: Any) -> None:
    """Write one layer's moments (B, D_out) by the posterior at inputs x (B, D_in) that are known.

    Those of the last layer are without noise. ``units`` has room for one output.
    """
    k = np.empty((len(x), model.inducing))
    for o in range(model.dims[layer + 1]):
        unit = unit_of(model, theta, layer, o, units, 0)
        own = factor.cavity(unit.K, unit.R, unit.theta_2, 1.0)
        known_inputs(unit, own, x, m, v, o, k)
        if layer < len(model.dims) - 2:
            add_noise(unit.noise, v, o)


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, done: ForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) but for the likelihood; write the moments of every layer.

    Those of the last layer are without noise. Moments and energy are nan where a matrix has no factor.
    """
    L, i, value = len(model.dims) - 1, 0, 0.0
    means, variances = done.moments.means, done.moments.variances
    place(X, means[0])
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = unit_of(model, theta, layer, o, done.units, i)
            own = factor.cavity(unit.K, unit.R, unit.theta_2, model.power.beta)
            tied = factor.tie(unit.K, unit.R, unit.theta_2, model.power, own)
            value += tied.energy
            if layer == 0:
                Sk = known_inputs(unit, own, means[0], m, v, o, done.k[i])
            else:
                excesses = done.excesses[i - model.dims[1]]
                Sk = uncertain_inputs(unit, own, means[layer], variances[layer], m, v, o, done.k[i], excesses)
            if np.isnan(own.log_determinant):
                m[:, o] = np.nan
            if layer < L - 1:
                add_noise(unit.noise, v, o)
            keep(own, tied, Sk, done, i)
            i += 1
    return value


@jit(relaxed=FUSE, merged=True)
def keep(own: factor.Cavity, tied: factor.TiedTerms, Sk: Any, done: Any, i: int) -> None:
    """Write what the backward pass needs of an output to place i."""
    copy_matrix(own.S, done.S[i])
    copy_matrix(own.G, done.G[i])
    copy_matrix(tied.H, done.H[i])
    copy_matrix(Sk, done.Sk[i])
    copy_vector(own.A, done.A[i])
    copy_vector(own.mean, done.mean[i])
    copy_vector(tied.e, done.e[i])
    copy_vector(tied.Ke, done.Ke[i])


@jit(relaxed=FUSE)
def backward(model: DGPModel, done: ForwardPass, gradient: Any) -> None:
    """Add to the gradient (P,), given that of the last layer's moments; those of the layers before come on the way."""
    L, M, i = len(model.dims) - 1, model.inducing, len(done.A)
    moments, D = done.moments, np.empty((M, M))
    for layer in range(L - 1, -1, -1):
        x, w, dx, dw = (
            moments.means[layer],
            moments.variances[layer],
            moments.d_means[layer],
            moments.d_variances[layer],
        )
        for o in range(model.dims[layer + 1] - 1, -1, -1):
            i -= 1
            unit = unit_at(done.units, i, model.dims[layer])
            gm, gv = moments.d_means[layer + 1, :, o].copy(), moments.d_variances[layer + 1, :, o].copy()
            dZt, dlog_l = np.zeros(unit.Zt.shape), np.zeros(len(unit.l2))
            a, weights = back_from_k(done.S[i], done.A[i], done.k[i], done.Sk[i], gm, gv, D)
            dlog_s = 2.0 * unit.s2 * gv.sum()
            if layer > 0:
                excesses, Q = done.excesses[i - model.dims[1]], spread_weights(done.A[i], done.G[i])
                dQ = spread_back(unit, done.k[i], Q, excesses, x, w, gv, dx, dw, dZt, dlog_l, weights)
                a += 2.0 * np.dot(dQ, done.A[i])
                D -= dQ
            noise = 2.0 * unit.noise * gv.sum() if layer < L - 1 else 0.0
            dlog_s += psi.psi1_back(x, w, unit.Zt, unit.l2, weights, dx, dw, dZt, dlog_l)
            unit_back(model, unit, factor_at(done, i), layer, o, D, a, dZt, dlog_l, dlog_s, noise, gradient)


@jit(relaxed=FUSE, merged=True)
def factor_at(done: Any, i: int) -> factor.BackwardTerms:
    """Return what the factor's backward pass needs, of the output at place i."""
    return factor.BackwardTerms(done.G[i], done.H[i], done.A[i], done.mean[i], done.e[i], done.Ke[i])


@jit(relaxed=FUSE, merged=True)
def back_from_k(S: Any, A: Any, k: Any, Sk: Any, gm: Any, gv: Any, D: Any) -> tuple[Any, Any]:
    """Return the gradient with respect to A, and k times that with respect to k (B, M); write that of G."""
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
    unit: Unit,
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
    """Return the gradient of Q by what the inputs' variances add, and add psi1 times that of psi1 to the weights."""
    dk, dQ = np.empty(k.shape), np.empty(Q.shape)
    psi.contract_spread_back(x, w, unit.Zt, unit.l2, k, Q, excesses, gv, dx, dw, dZt, dlog_l, dk, dQ)
    weights += dk * k
    return dQ


@jit(relaxed=FUSE, merged=True)
def unit_back(
    model: DGPModel, unit: Unit, kept: factor.BackwardTerms, layer: int, o: int, D: Any, a: Any, dZt: Any,
    dlog_l: Any, dlog_s: float, dlog_noise: float, gradient: Any,
) -> None:  # fmt: skip
    """Write one output's gradient, from that of its propagation."""
    M, at = model.inducing, model.offsets[layer]
    packed = M * (M + 1) // 2
    dK = np.empty((M, M))
    factor.back(
        unit.K, unit.R, model.power, kept, D, a, dK,
        gradient[at[5] + o * M : at[5] + (o + 1) * M], gradient[at[4] + o * packed : at[4] + (o + 1) * packed],
    )  # fmt: skip
    covariance_back(model, unit, layer, o, dK, dZt, dlog_l, dlog_s, dlog_noise, gradient)


@jit(relaxed=FUSE, merged=True)
def covariance_back(
    model: DGPModel, unit: Unit, layer: int, o: int, dK: Any, dZt: Any, dlog_l: Any, dlog_s: float, dlog_noise: float,
    gradient: Any,
) -> None:  # fmt: skip
    """Write the gradient of one output's inducing inputs and hyperparameters, given K's; dK is used up."""
    M, at, inputs = model.inducing, model.offsets[layer], len(unit.l2)
    for i in range(M):
        for j in range(M):
            dK[i, j] *= unit.K[i, j]
        dK[i, i] *= unit.s2 / unit.K[i, i]
    dlog_s += psi.covariance_back(unit.Zt, unit.l2, dK, dZt, dlog_l)
    group = o if model.groups[layer] > 1 else 0
    first = at[0] + group * inputs
    for j in range(inputs):
        gradient[first + j] += dlog_l[j]
    gradient[at[1] + group] += dlog_s
    gradient[at[2] + group] += dlog_noise
    Z = gradient[at[3] + o * M * inputs : at[3] + (o + 1) * M * inputs].reshape(M, inputs)
    copy_matrix(dZt.T, Z)
