"""Propagation that keeps the covariances of a layer's outputs: appendix G of Bui et al. (2015).

The outputs of the first layer are independent given their known inputs; those of later layers share inputs that are
Gaussians of means x and covariances C, and so depend on each other (eq. 22), with mu = psi1 A of each output,

    cov(o, p) = A_o' E[k_o k_p'] A_p - mu_o mu_p,    cov(o, o) = sn^2 + sf^2 + sum(Q o psi2) - mu^2.

With one hidden layer only the likelihood of several outputs sees what is kept. Deviation: these are differences of
large numbers, as the paper has them; where K is all but singular and the factor sharp they lose digits that
``network`` keeps, and a variance that comes out below 0 ends the fit. The expectations are those of
``numerics.psi_joint``; arrays of covariances are (L + 1, B, V, V), V the widest layer after the inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import factor, network
from ep_bench.methods.dgp_ep.network import DGPModel, Units
from ep_bench.numerics import psi, psi_joint
from ep_bench.numerics.jit import FUSE, jit


class JointLayerMoments(NamedTuple):
    """Means (L + 1, B, W) and covariances of every layer, and the energy's gradients with respect to them."""

    means: Any
    covariances: Any
    d_means: Any
    d_covariances: Any


class JointForwardPass(NamedTuple):
    """What the backward pass needs of the forward pass of U outputs, in the order of the layers."""

    moments: JointLayerMoments
    units: Units
    S: Any  # (U, M, M) as in ``factor``, also the next ones
    G: Any  # (U, M, M)
    H: Any  # (U, M, M)
    A: Any  # (U, M)
    mean: Any  # (U, M)
    e: Any  # (U, M)
    Ke: Any  # (U, M)
    k: Any  # (U, B, M) k of the first layer, psi1 of later ones
    Sk: Any  # (U, B, M) of the first layer


def passes(model: DGPModel, rows: int) -> JointForwardPass:
    """Return room for a pass of B rows."""
    U, M, V = int(model.dims[1:].sum()), model.inducing, model.dims[1:].max()
    means, covariances = (len(model.dims), rows, model.dims.max()), (len(model.dims), rows, V, V)
    square, vector = (U, M, M), (U, M)
    return JointForwardPass(
        JointLayerMoments(np.zeros(means), np.zeros(covariances), np.zeros(means), np.zeros(covariances)),
        network.units(model, U),
        np.empty(square), np.empty(square), np.empty(square),
        np.empty(vector), np.empty(vector), np.empty(vector), np.empty(vector),
        np.empty((U, rows, M)), np.empty((U, rows, M)),
    )  # fmt: skip


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, done: JointForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) but for the likelihood; write the moments of every layer.

    Those of the last layer are without noise. Moments and energy are nan where a matrix has no factor.
    """
    means, covariances = done.moments.means, done.moments.covariances
    L, i, value = len(model.dims) - 1, 0, 0.0
    network.place(X, means[0])
    covariances[:] = 0.0
    variances = np.empty((len(X), covariances.shape[2]))
    for layer in range(L):
        first, m, C = i, means[layer + 1], covariances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = network.unit_of(model, theta, layer, o, done.units, i)
            own = factor.cavity(unit.K, unit.R, unit.theta_2, model.power.beta)
            tied = factor.tie(unit.K, unit.R, unit.theta_2, model.power, own)
            value += tied.energy
            if layer == 0:
                Sk = network.known_inputs(unit, own, means[0], m, variances, o, done.k[i])
                for n in range(len(X)):
                    C[n, o, o] = variances[n, o]
            else:
                Sk = done.Sk[i]
                psi_joint.psi1(means[layer], covariances[layer], unit.Zt, unit.l2, unit.s2, done.k[i])
                mean = np.dot(done.k[i], own.A)
                for n in range(len(X)):
                    m[n, o] = mean[n]
            if np.isnan(own.log_determinant):
                m[:, o] = np.nan
            network.keep(own, tied, Sk, done, i)
            i += 1
        if layer > 0:
            _covariances(done, first, i - first, model.dims[layer], means[layer], covariances[layer], m, C)
        if layer < L - 1:
            for o in range(i - first):
                for n in range(len(X)):
                    C[n, o, o] += done.units.noise[first + o]
    return value


@jit(relaxed=FUSE)
def _couples(done: JointForwardPass, one: int, other: int, D: int) -> tuple[Any, Any]:
    """Return the couples of two outputs' inducing inputs, and what their expectations are contracted with."""
    a, b = network.unit_at(done.units, one, D), network.unit_at(done.units, other, D)
    T = network.outer(done.A[one], done.A[other])
    if one == other:
        T -= done.G[one]
    return psi_joint.couples_of(a.Zt, a.l2, b.Zt, b.l2, a.s2 * b.s2), T


@jit(relaxed=FUSE)
def _covariances(done: JointForwardPass, first: int, width: int, D: int, x: Any, C: Any, m: Any, out: Any) -> None:
    """Write one later layer's covariances without noise, from inputs of means x and covariances C."""
    for o in range(width):
        for p in range(o + 1):
            couples, T = _couples(done, first + o, first + p, D)
            found = psi_joint.contract(x, C, couples, T)
            for n in range(len(x)):
                out[n, o, p] = found[n] - m[n, o] * m[n, p]
                if o == p:
                    out[n, o, o] += done.units.s2[first + o]
                else:
                    out[n, p, o] = out[n, o, p]


@jit(relaxed=FUSE)
def backward(model: DGPModel, done: JointForwardPass, gradient: Any) -> None:
    """Add to the gradient (P,), given that of the last layer's moments; those of the layers before come on the way."""
    first = len(done.A)
    for layer in range(len(model.dims) - 2, -1, -1):
        first -= model.dims[layer + 1]
        _layer_back(model, layer, done, first, gradient)


@jit(relaxed=FUSE)
def _layer_back(model: DGPModel, layer: int, done: JointForwardPass, first: int, gradient: Any) -> None:
    """Write one layer's gradient and those of its inputs' moments."""
    M, D, width, last = model.inducing, model.dims[layer], model.dims[layer + 1], layer == len(model.dims) - 2
    moments = done.moments
    x, C, dx, dC = (
        moments.means[layer],
        moments.covariances[layer],
        moments.d_means[layer],
        moments.d_covariances[layer],
    )
    m, gC = moments.means[layer + 1], moments.d_covariances[layer + 1]
    dZ, dlog_l, dlog_s = np.zeros((width, D, M)), np.zeros((width, D)), np.zeros(width)
    a, G = np.zeros((width, M)), np.zeros((width, M, M))
    gm = moments.d_means[layer + 1].copy()
    if layer > 0:
        for o in range(width):
            for p in range(width):
                for n in range(len(x)):
                    gm[n, o] -= (gC[n, o, p] + gC[n, p, o]) * m[n, p]
        _covariances_back(done, first, x, C, gC, dx, dC, dZ, dlog_l, dlog_s, a, G)
    for o in range(width):
        i, gv, g = first + o, gC[:, o, o].copy(), gm[:, o].copy()
        unit = network.unit_at(done.units, i, D)
        if layer == 0:
            pull, weights = network.back_from_k(done.S[i], done.A[i], done.k[i], done.Sk[i], g, gv, G[o])
            none, unused = np.zeros(x.shape), np.zeros(x.shape)
            dlog_s[o] += psi.psi1_back(x, none, unit.Zt, unit.l2, weights, dx, unused, dZ[o], dlog_l[o])
        else:
            pull, weights = np.dot(g, done.k[i]), network.outer(g, done.A[i]) * done.k[i]
            dlog_s[o] += psi_joint.psi1_back(x, C, unit.Zt, unit.l2, weights, dx, dC, dZ[o], dlog_l[o])
        noise = 0.0 if last else 2.0 * unit.noise * gv.sum()
        dlog_s[o] += 2.0 * unit.s2 * gv.sum()
        network.unit_back(
            model, unit, network.factor_at(done, i), layer, o, G[o], a[o] + pull, dZ[o], dlog_l[o], dlog_s[o], noise,
            gradient,
        )  # fmt: skip


@jit(relaxed=FUSE)
def _covariances_back(
    done: JointForwardPass,
    first: int,
    x: Any,
    C: Any,
    gC: Any,
    dx: Any,
    dC: Any,
    dZ: Any,
    dlog_l: Any,
    dlog_s: Any,
    a: Any,
    G: Any,
) -> None:
    """Add to the gradients of what a later layer's covariances rest on, but for the products of means."""
    width, D, M = dlog_l.shape[0], dlog_l.shape[1], a.shape[1]
    dT, g = np.empty((M, M)), np.empty(len(x))
    for o in range(width):
        for p in range(o + 1):
            one = network.unit_at(done.units, first + o, D)
            other = network.unit_at(done.units, first + p, D)
            couples, T = _couples(done, first + o, first + p, D)
            for n in range(len(x)):
                g[n] = gC[n, o, p] + gC[n, p, o] if o != p else gC[n, o, o]
            slope = psi_joint.contract_back(
                x, C, one.Zt, one.l2, other.Zt, other.l2, couples, T, g,
                dx, dC, dZ[o], dlog_l[o], dZ[p], dlog_l[p], dT,
            )  # fmt: skip
            dlog_s[o] += slope
            dlog_s[p] += slope
            a[o] += np.dot(dT, done.A[first + p])
            a[p] += np.dot(dT.T, done.A[first + o])
            if o == p:
                for i in range(M):
                    for j in range(M):
                        G[o, i, j] -= 0.5 * (dT[i, j] + dT[j, i])
