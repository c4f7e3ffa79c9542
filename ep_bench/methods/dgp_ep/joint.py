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

from ep_bench.methods.dgp_ep import factor, likelihoods, network
from ep_bench.methods.dgp_ep.network import Model, Unit
from ep_bench.numerics import psi, psi_joint
from ep_bench.numerics.jit import FUSE, jit


class Passage(NamedTuple):
    """One output's state after the forward pass."""

    unit: Unit
    own: factor.Cavity
    k: Any  # (B, M) k of the first layer, psi1 of later ones
    Sk: Any  # (B, M) of the first layer


@jit(relaxed=FUSE)
def forward(model: Model, theta: Any, X: Any, beta: float, means: Any, covariances: Any) -> list[Passage]:
    """Write the moments of every layer, the last without noise; return all outputs' states, layer by layer."""
    L, V = len(model.dims) - 1, covariances.shape[2]
    network.place(X, means[0])
    covariances[:] = 0.0
    variances = np.empty((len(X), V))
    passages: list[Passage] = []
    for layer in range(L):
        first, m, C = len(passages), means[layer + 1], covariances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = network.unit_of(model, theta, layer, o)
            own = factor.cavity(unit.K, unit.R, unit.theta_2, beta)
            if layer == 0:
                psis = network.first_layer(unit, own, means[0], m, variances, o)
                C[:, o, o] = variances[:, o]
                passages.append(Passage(unit, own, psis.k, psis.Sk))
            else:
                k = np.empty((len(X), model.inducing))
                psi_joint.psi1(means[layer], covariances[layer], unit.Zt, unit.l2, unit.s2, k)
                m[:, o] = np.dot(k, own.A)
                passages.append(Passage(unit, own, k, np.empty((0, 0))))
            if np.isnan(own.log_determinant):
                m[:, o] = np.nan
        if layer > 0:
            _covariances(passages[first:], means[layer], covariances[layer], m, C)
        if layer < L - 1:
            for o in range(model.dims[layer + 1]):
                C[:, o, o] += passages[first + o].unit.noise
    return passages


@jit(relaxed=FUSE)
def _couples(one: Passage, other: Passage, same: bool) -> tuple[Any, Any]:
    """Return the couples of two outputs' inducing inputs, and what their expectations are contracted with."""
    a, b = one.unit, other.unit
    T = network.outer(one.own.A, other.own.A)
    if same:
        T -= one.own.G
    return psi_joint.couples_of(a.Zt, a.l2, b.Zt, b.l2, a.s2 * b.s2), T


@jit(relaxed=FUSE)
def _covariances(layer: Any, x: Any, C: Any, m: Any, out: Any) -> None:
    """Write one later layer's covariances without noise, from inputs of means x and covariances C."""
    for o in range(len(layer)):
        for p in range(o + 1):
            couples, T = _couples(layer[o], layer[p], o == p)
            out[:, o, p] = psi_joint.contract(x, C, couples, T) - m[:, o] * m[:, p]
            if o == p:
                out[:, o, o] += layer[o].unit.s2
            else:
                out[:, p, o] = out[:, o, p]


@jit(relaxed=FUSE)
def value_and_gradient(model: Model, theta: Any, X: Any, y: Any, noise: Any, gradient: Any) -> float:
    """Return the energy of a minibatch and write its gradient, as ``network.value_and_gradient`` does."""
    L = len(model.dims) - 1
    V = model.dims[1:].max()
    means, covariances = np.zeros((L + 1, len(X), model.dims.max())), np.zeros((L + 1, len(X), V, V))
    passages = forward(model, theta, X, model.power.beta, means, covariances)
    value, ties = 0.0, []
    for i in range(len(passages)):
        unit = passages[i].unit
        tied = factor.tie(unit.K, unit.R, unit.theta_2, model.power, passages[i].own)
        value += tied.energy
        ties.append(tied)
    gradient[:] = 0.0
    d_means, d_covariances = np.zeros(means.shape), np.zeros(covariances.shape)
    value += _likelihood(
        model,
        model.softmax,
        passages[-1].unit.noise,
        means[L],
        covariances[L],
        y,
        noise,
        d_means[L],
        d_covariances[L],
        gradient,
    )
    if not np.isfinite(value):
        return np.nan
    first = len(passages)
    for layer in range(L - 1, -1, -1):
        first -= model.dims[layer + 1]
        last = first + model.dims[layer + 1]
        _layer_back(
            model, layer, passages[first:last], ties[first:last], means, covariances, d_means, d_covariances, gradient
        )
    return value


@jit(relaxed=FUSE)
def _likelihood(
    model: Model, softmax: Any, s: float, m: Any, C: Any, y: Any, noise: Any, dm: Any, dC: Any, gradient: Any
) -> float:
    """Return the energy's last term and write the gradients of what it rests on."""
    if softmax is not None:
        weight = -model.power.n / len(y)
        return weight * likelihoods.joint_softmax(m, C, y, model.power.alpha, noise, weight, dm, dC)
    v, dv = C[:, :, 0].copy(), np.zeros((len(y), C.shape[1]))
    value = network.likelihood_term(model, s, m, v, y, noise, dm, dv, gradient)
    dC[:, 0, 0] += dv[:, 0]
    return value


@jit(relaxed=FUSE)
def _layer_back(
    model: Model, layer: int, passages: Any, ties: Any, means: Any, covariances: Any, d_means: Any, d_covariances: Any,
    gradient: Any,
) -> None:  # fmt: skip
    """Write one layer's gradient and those of its inputs' moments."""
    M, D, width, last = model.inducing, model.dims[layer], len(passages), layer == len(model.dims) - 2
    x, C, dx, dC = means[layer], covariances[layer], d_means[layer], d_covariances[layer]
    m, gC = means[layer + 1], d_covariances[layer + 1]
    dZ, dlog_l, dlog_s = np.zeros((width, D, M)), np.zeros((width, D)), np.zeros(width)
    a, G = np.zeros((width, M)), np.zeros((width, M, M))
    gm = d_means[layer + 1].copy()
    if layer > 0:
        for o in range(width):
            for p in range(width):
                gm[:, o] -= (gC[:, o, p] + gC[:, p, o]) * m[:, p]
        _covariances_back(passages, x, C, gC, dx, dC, dZ, dlog_l, dlog_s, a, G)
    for o in range(width):
        done, gv = passages[o], gC[:, o, o].copy()
        unit, g = done.unit, gm[:, o].copy()
        if layer == 0:
            pull, weights = network.back_from_k(done.own, done.k, done.Sk, g, gv, G[o])
            none, unused = np.zeros(x.shape), np.zeros(x.shape)
            dlog_s[o] += psi.psi1_back(x, none, unit.Zt, unit.l2, weights, dx, unused, dZ[o], dlog_l[o])
        else:
            pull, weights = np.dot(g, done.k), network.outer(g, done.own.A) * done.k
            dlog_s[o] += psi_joint.psi1_back(x, C, unit.Zt, unit.l2, weights, dx, dC, dZ[o], dlog_l[o])
        noise = 0.0 if last else 2.0 * unit.noise * gv.sum()
        dlog_s[o] += 2.0 * unit.s2 * gv.sum()
        network.unit_back(
            model, unit, done.own, ties[o], layer, o, G[o], a[o] + pull, dZ[o], dlog_l[o], dlog_s[o], noise, gradient
        )


@jit(relaxed=FUSE)
def _covariances_back(
    layer: Any, x: Any, C: Any, gC: Any, dx: Any, dC: Any, dZ: Any, dlog_l: Any, dlog_s: Any, a: Any, G: Any
) -> None:
    """Add to the gradients of what a later layer's covariances rest on, but for the products of means."""
    dT = np.empty(G[0].shape)
    for o in range(len(layer)):
        for p in range(o + 1):
            one, other = layer[o], layer[p]
            couples, T = _couples(one, other, o == p)
            g = gC[:, o, p] + gC[:, p, o] if o != p else gC[:, o, o].copy()
            slope = psi_joint.contract_back(
                x, C, one.unit.Zt, one.unit.l2, other.unit.Zt, other.unit.l2, couples, T, g,
                dx, dC, dZ[o], dlog_l[o], dZ[p], dlog_l[p], dT,
            )  # fmt: skip
            dlog_s[o] += slope
            dlog_s[p] += slope
            a[o] += np.dot(dT, other.own.A)
            a[p] += np.dot(dT.T, one.own.A)
            if o == p:
                G[o] -= 0.5 * (dT + dT.T)
