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

from ep_bench.methods.dgp_ep import factor, likelihoods
from ep_bench.methods.dgp_ep.factor import Power
from ep_bench.numerics import psi
from ep_bench.numerics.copying import copy_matrix
from ep_bench.numerics.jit import FUSE, jit

JITTER = 1e-6  # on the diagonal of K, absolute; not a function of the parameters


class Model(NamedTuple):
    """What a step needs beside parameters and rows."""

    dims: Any  # (L + 1,) inputs, hidden layers, outputs
    offsets: Any  # (L, 6) of each layer's parameters, as in ``layout``
    groups: Any  # (L,) of hyperparameters
    inducing: int
    power: Power
    nodes: Any  # (2, Q) quadrature of the probit's powers; None for other likelihoods
    softmax: int | None  # 1 for the softmax, None for other likelihoods


class Unit(NamedTuple):
    """One output's parameters, unpacked."""

    Zt: Any  # (D, M)
    l2: Any  # (D,)
    s2: float
    noise: float  # variance
    theta_2: Any  # (M,)
    K: Any  # (M, M) with its jitter
    R: Any  # (M, M)


@jit(relaxed=FUSE, merged=True)
def unit_of(model: Model, theta: Any, layer: int, output: int) -> Unit:
    """Return one output's parameters."""
    M, at = model.inducing, model.offsets[layer]
    R, packed = np.empty((M, M)), M * (M + 1) // 2
    factor.unpack(theta[at[4] + output * packed : at[4] + (output + 1) * packed], R)
    return unit_with(model, theta, layer, output, R)


@jit(relaxed=FUSE, merged=True)
def unit_with(model: Model, theta: Any, layer: int, output: int, R: Any) -> Unit:
    """Return one output's parameters, whose factor is unpacked."""
    D, M, at = model.dims[layer], model.inducing, model.offsets[layer]
    group = output if model.groups[layer] > 1 else 0
    l2 = np.exp(2.0 * theta[at[0] + group * D : at[0] + (group + 1) * D])
    s2, noise = math.exp(2.0 * theta[at[1] + group]), math.exp(2.0 * theta[at[2] + group])
    first = at[3] + output * M * D
    Zt = theta[first : first + M * D].reshape(M, D).T.copy()
    K = np.empty((M, M))
    psi.covariance(Zt, l2, s2, K)
    for i in range(M):
        K[i, i] += JITTER
    return Unit(Zt, l2, s2, noise, theta[at[5] + output * M : at[5] + (output + 1) * M].copy(), K, R)


class Psis(NamedTuple):
    """What the backward pass needs of one output's forward pass."""

    k: Any  # (B, M) k of the first layer, psi1 of later ones
    Sk: Any  # (B, M)
    Q: Any  # (M, M) of later layers
    excesses: Any  # (B, P) of later layers, as in ``numerics.psi``


class Passage(NamedTuple):
    """One output's state after the forward pass."""

    unit: Unit
    own: factor.Cavity
    tied: factor.Tied
    psis: Psis


@jit(relaxed=FUSE, merged=True)
def first_layer(unit: Unit, own: factor.Cavity, X: Any, m: Any, v: Any, o: int) -> Psis:
    """Write mean and variance of output o, without noise, at inputs X (B, d or wider)."""
    k = np.empty((len(X), len(unit.K)))
    psi.psi1(X, np.zeros(X.shape), unit.Zt, unit.l2, unit.s2, k)
    none = np.empty((0, 0))
    return Psis(k, _given_k(unit, own, k, m, v, o), none, none)


@jit(relaxed=FUSE, merged=True)
def later_layer(unit: Unit, own: factor.Cavity, x: Any, w: Any, m: Any, v: Any, o: int) -> Psis:
    """Write mean and variance of output o, without noise, from inputs of means x and variances w."""
    k = np.empty((len(x), len(unit.K)))
    psi.psi1(x, w, unit.Zt, unit.l2, unit.s2, k)
    Sk = _given_k(unit, own, k, m, v, o)
    Q, excesses = add_spread(unit, own, k, x, w, v, o)
    return Psis(k, Sk, Q, excesses)


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
def add_spread(unit: Unit, own: factor.Cavity, k: Any, x: Any, w: Any, v: Any, o: int) -> tuple[Any, Any]:
    """Add to output o's variance what the inputs' variances w make of it; return Q and the pairs' excesses."""
    Q = outer(own.A, own.A)
    Q -= own.G
    sums, excesses = psi.contract_spread(x, w, unit.Zt, unit.l2, k, Q)
    for n in range(len(x)):
        v[n, o] += sums[n]
    return Q, excesses


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


@jit(relaxed=FUSE, merged=True)
def widest(dims: Any) -> int:
    """Return the number of units of the widest layer."""
    found = 0
    for width in dims:
        found = max(found, width)
    return found


@jit(relaxed=FUSE)
def propagate(model: Model, theta: Any, X: Any, beta: float, means: Any, variances: Any) -> None:
    """Write the moments (L + 1, B, W) of every layer with a share beta of the tied factors, the last without noise."""
    L = len(model.dims) - 1
    place(X, means[0])
    variances[0] = 0.0
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = unit_of(model, theta, layer, o)
            own = factor.cavity(unit.K, unit.R, unit.theta_2, beta)
            if layer == 0:
                first_layer(unit, own, means[0], m, v, o)
            else:
                later_layer(unit, own, means[layer], variances[layer], m, v, o)
            if np.isnan(own.log_determinant):
                m[:, o] = np.nan
            if layer < L - 1:
                add_noise(unit.noise, v, o)


@jit(relaxed=FUSE)
def layer_moments(model: Model, theta: Any, layer: int, x: Any, beta: float, m: Any, v: Any) -> None:
    """Write one layer's moments (B, D_out) at inputs x (B, D_in) that are known; the last layer's without noise."""
    for o in range(model.dims[layer + 1]):
        unit = unit_of(model, theta, layer, o)
        own = factor.cavity(unit.K, unit.R, unit.theta_2, beta)
        first_layer(unit, own, x, m, v, o)
        if layer < len(model.dims) - 2:
            add_noise(unit.noise, v, o)


@jit(relaxed=FUSE)
def value_and_gradient(model: Model, theta: Any, X: Any, y: Any, noise: Any, gradient: Any) -> float:
    """Return the energy of a minibatch X (B, d), y (B,), and write its gradient (P,).

    ``noise`` (S, C) are the draws of the softmax. The value is nan where a matrix has no factor.
    """
    L, W = len(model.dims) - 1, widest(model.dims)
    means, variances = np.zeros((L + 1, len(X), W)), np.zeros((L + 1, len(X), W))
    place(X, means[0])
    value, passages = _forward(model, theta, means, variances)
    gradient[:] = 0.0
    d_means, d_variances = np.zeros(means.shape), np.zeros(means.shape)
    value += likelihood_term(
        model, passages[-1].unit.noise, means[L], variances[L], y, noise, d_means[L], d_variances[L], gradient
    )
    if np.isfinite(value):
        _backward(model, passages, means, variances, d_means, d_variances, gradient)
        return value
    return np.nan


@jit(relaxed=FUSE, merged=True)
def _forward(model: Model, theta: Any, means: Any, variances: Any) -> tuple[float, list[Passage]]:
    """Return the energy but for the likelihood, and all outputs' states, layer by layer; write the moments."""
    L = len(model.dims) - 1
    value, passages = 0.0, []
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = unit_of(model, theta, layer, o)
            own = factor.cavity(unit.K, unit.R, unit.theta_2, model.power.beta)
            tied = factor.tie(unit.K, unit.R, unit.theta_2, model.power, own)
            value += tied.energy
            if layer == 0:
                psis = first_layer(unit, own, means[0], m, v, o)
            else:
                psis = later_layer(unit, own, means[layer], variances[layer], m, v, o)
            if layer < L - 1:
                add_noise(unit.noise, v, o)
            passages.append(Passage(unit, own, tied, psis))
    return value, passages


@jit(relaxed=FUSE, merged=True)
def _backward(
    model: Model, passages: Any, means: Any, variances: Any, d_means: Any, d_variances: Any, gradient: Any
) -> None:
    """Write the gradient, given that of the last layer's moments; those of the layers before come on the way."""
    L, M, i = len(model.dims) - 1, model.inducing, len(passages)
    D = np.empty((M, M))
    for layer in range(L - 1, -1, -1):
        x, w, dx, dw = means[layer], variances[layer], d_means[layer], d_variances[layer]
        for o in range(model.dims[layer + 1] - 1, -1, -1):
            i -= 1
            done = passages[i]
            unit, psis = done.unit, done.psis
            gm, gv = d_means[layer + 1, :, o].copy(), d_variances[layer + 1, :, o].copy()
            dZt, dlog_l = np.zeros(unit.Zt.shape), np.zeros(len(unit.l2))
            a, weights = back_from_k(done.own, psis.k, psis.Sk, gm, gv, D)
            dlog_s = 2.0 * unit.s2 * gv.sum()
            if layer > 0:
                dQ = spread_back(unit, psis, x, w, gv, dx, dw, dZt, dlog_l, weights)
                a += 2.0 * np.dot(dQ, done.own.A)
                D -= dQ
            noise = 2.0 * unit.noise * gv.sum() if layer < L - 1 else 0.0
            dlog_s += psi.psi1_back(x, w, unit.Zt, unit.l2, weights, dx, dw, dZt, dlog_l)
            unit_back(model, unit, done.own, done.tied, layer, o, D, a, dZt, dlog_l, dlog_s, noise, gradient)


@jit(relaxed=FUSE, merged=True)
def likelihood_term(
    model: Model, s: float, m: Any, v: Any, y: Any, noise: Any, dm: Any, dv: Any, gradient: Any
) -> float:
    """Return the energy's last term and write the gradients of what it rests on."""
    return _likelihood_term(model, model.softmax, model.nodes, s, m, v, y, noise, dm, dv, gradient)


@jit(relaxed=FUSE)
def _likelihood_term(
    model: Model, softmax: Any, nodes: Any, s: float, m: Any, v: Any, y: Any, noise: Any, dm: Any, dv: Any,
    gradient: Any,
) -> float:  # fmt: skip
    # The compiler leaves out the branches that an argument of type None rules out.
    alpha, weight = model.power.alpha, -model.power.n / len(y)
    if softmax is not None:
        value = likelihoods.softmax(m, v, y, alpha, noise, weight, dm, dv)
    elif nodes is not None:
        value = likelihoods.probit(m, v, y, alpha, nodes, weight, dm, dv)
    else:
        value, ds = likelihoods.gaussian(m, v, y, s, alpha, weight, dm, dv)
        gradient[model.offsets[-1, 2]] += 2.0 * s * ds
    return weight * value


@jit(relaxed=FUSE, merged=True)
def back_from_k(own: factor.Cavity, k: Any, Sk: Any, gm: Any, gv: Any, D: Any) -> tuple[Any, Any]:
    """Return the gradient with respect to A, and k times that with respect to k (B, M); write that of G."""
    kG = np.dot(Sk, own.S)
    scaled = np.empty(k.shape)
    for n in range(len(k)):
        minus, twice = -gv[n], 2.0 * gv[n]
        for i in range(k.shape[1]):
            scaled[n, i] = minus * k[n, i]
            kG[n, i] = (gm[n] * own.A[i] - twice * kG[n, i]) * k[n, i]
    copy_matrix(np.dot(k.T, scaled), D)
    return np.dot(gm, k), kG


@jit(relaxed=FUSE, merged=True)
def spread_back(
    unit: Unit, psis: Psis, x: Any, w: Any, gv: Any, dx: Any, dw: Any, dZt: Any, dlog_l: Any, weights: Any
) -> Any:
    """Return the gradient of Q by what the inputs' variances add, and add psi1 times that of psi1 to the weights."""
    dk, dQ = np.empty(psis.k.shape), np.empty(psis.Q.shape)
    psi.contract_spread_back(x, w, unit.Zt, unit.l2, psis.k, psis.Q, psis.excesses, gv, dx, dw, dZt, dlog_l, dk, dQ)
    weights += dk * psis.k
    return dQ


@jit(relaxed=FUSE, merged=True)
def unit_back(
    model: Model, unit: Unit, own: factor.Cavity, tied: factor.Tied, layer: int, o: int, D: Any, a: Any, dZt: Any,
    dlog_l: Any, dlog_s: float, dlog_noise: float, gradient: Any,
) -> None:  # fmt: skip
    """Write one output's gradient, from that of its propagation."""
    M, at = model.inducing, model.offsets[layer]
    packed = M * (M + 1) // 2
    dK = np.empty((M, M))
    factor.back(
        unit.K, unit.R, model.power, own, tied, D, a, dK,
        gradient[at[5] + o * M : at[5] + (o + 1) * M], gradient[at[4] + o * packed : at[4] + (o + 1) * packed],
    )  # fmt: skip
    covariance_back(model, unit, layer, o, dK, dZt, dlog_l, dlog_s, dlog_noise, gradient)


@jit(relaxed=FUSE, merged=True)
def covariance_back(
    model: Model, unit: Unit, layer: int, o: int, dK: Any, dZt: Any, dlog_l: Any, dlog_s: float, dlog_noise: float,
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
