"""Propagation that includes the covariances of the outputs of a layer: appendix G of Bui et al. (2015).

The outputs of the first layer are independent given their known inputs. Those of later layers depend on each other
through their common inputs, Gaussians of means x and covariances C (eq. 22). With mu = psi1 A of each output,

    cov(o, p) = A_o' E[k_o k_p'] A_p - mu_o mu_p,    cov(o, o) = sn^2 + sf^2 + sum(Q o psi2) - mu^2.

With one hidden layer only a likelihood of several outputs depends on these covariances.

Deviation: these are differences of large numbers, as in the paper. If K is almost singular and the factor narrow, they
lose digits that ``network`` keeps. A variance below 0 ends the fit.

The expectations are those of ``numerics.psi_joint``. Arrays of covariances are (L + 1, B, V, V), V the widest layer
after the inputs. Other symbols are those of ``network``; gC (B, V, V) are gradients with respect to covariances.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import factor, network, outputs
from ep_bench.methods.dgp_ep.network import ForwardPass
from ep_bench.methods.dgp_ep.outputs import DGPModel
from ep_bench.numerics import psi, psi_joint
from ep_bench.numerics.copying import add_vector
from ep_bench.numerics.jit import FUSE, jit


class JointLayerMoments(NamedTuple):
    """Means and covariances of every layer, and the gradients of the energy with respect to them."""

    means: Any  # (L + 1, B, W)
    covariances: Any  # (L + 1, B, V, V)
    d_means: Any  # (L + 1, B, W)
    d_covariances: Any  # (L + 1, B, V, V)


def allocate_pass(model: DGPModel, rows: int) -> ForwardPass:
    """Allocate the arrays for a pass of ``rows`` data points; its moments are ``JointLayerMoments``."""
    V = model.dims[1:].max()
    means, covariances = (len(model.dims), rows, model.dims.max()), (len(model.dims), rows, V, V)
    moments = JointLayerMoments(np.zeros(means), np.zeros(covariances), np.zeros(means), np.zeros(covariances))
    return network.allocate_results(model, rows, moments, 0)


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, saved: ForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) without its likelihood term, nats; write the moments of every layer.

    They include noise except for the last layer. Moments and energy are nan if a matrix has no Cholesky factor.
    """
    means, covariances = saved.moments.means, saved.moments.covariances
    L, i, value = len(model.dims) - 1, 0, 0.0
    network.copy_inputs(X, means[0])
    covariances[:] = 0.0
    variances = np.empty((len(X), covariances.shape[2]))
    for layer in range(L):
        first, m, C = i, means[layer + 1], covariances[layer + 1]
        for o in range(model.dims[layer + 1]):
            gp = outputs.unpack_output(model, theta, layer, o, saved.parameters, i)
            cavity = factor.cavity(gp.K, gp.R, gp.theta_2, model.power.beta)
            tied = factor.tied_terms(gp.K, gp.R, gp.theta_2, model.power, cavity)
            value += tied.energy
            if layer == 0:
                Sk = network.moments_at_known_inputs(gp, cavity, means[0], m, variances, o, saved.k[i])
                for n in range(len(X)):
                    C[n, o, o] = variances[n, o]
            else:
                Sk = saved.Sk[i]
                psi_joint.psi1(means[layer], covariances[layer], gp.Zt, gp.l2, gp.s2, saved.k[i])
                mean = np.dot(saved.k[i], cavity.A)
                for n in range(len(X)):
                    m[n, o] = mean[n]
            if np.isnan(cavity.log_determinant):
                m[:, o] = np.nan
            network.save(cavity, tied, Sk, saved, i)
            i += 1
        if layer > 0:
            _covariances(saved, first, i - first, model.dims[layer], means[layer], covariances[layer], m, C)
        if layer < L - 1:
            for o in range(i - first):
                for n in range(len(X)):
                    C[n, o, o] += saved.parameters.noise[first + o]
    return value


@jit(relaxed=FUSE)
def _point_pairs(saved: ForwardPass, one: int, other: int, D: int) -> tuple[Any, Any]:
    """Return the pairs of inducing inputs of two outputs, and the weights (M, M) of their expectations."""
    a, b = outputs.output_at(saved.parameters, one, D), outputs.output_at(saved.parameters, other, D)
    T = network.outer(saved.A[one], saved.A[other])
    if one == other:
        T -= saved.G[one]
    return psi_joint.point_pairs(a.Zt, a.l2, b.Zt, b.l2, a.s2 * b.s2), T


@jit(relaxed=FUSE, merged=True)
def _covariances(saved: ForwardPass, first: int, width: int, D: int, x: Any, C: Any, m: Any, out: Any) -> None:
    """Write the covariances of a later layer, without noise, to ``out`` (B, V, V).

    Its inputs have means x (B, W) and covariances C (B, V, V); m (B, W) are the means of its outputs.
    """
    for o in range(width):
        for p in range(o + 1):
            pairs, T = _point_pairs(saved, first + o, first + p, D)
            found = psi_joint.contract(x, C, pairs, T)
            for n in range(len(x)):
                out[n, o, p] = found[n] - m[n, o] * m[n, p]
                if o == p:
                    out[n, o, o] += saved.parameters.s2[first + o]
                else:
                    out[n, p, o] = out[n, o, p]


@jit(relaxed=FUSE)
def backward(model: DGPModel, saved: ForwardPass, gradient: Any) -> None:
    """Add to the gradient (P,) from the gradients of the last layer's moments; write those of the other layers."""
    first = len(saved.A)
    for layer in range(len(model.dims) - 2, -1, -1):
        first -= model.dims[layer + 1]
        _layer_back(model, layer, saved, first, gradient)


@jit(relaxed=FUSE, merged=True)
def _layer_back(model: DGPModel, layer: int, saved: ForwardPass, first: int, gradient: Any) -> None:
    """Write the gradient of the parameters of one layer and of the moments of its inputs."""
    M, D, width, last = model.inducing, model.dims[layer], model.dims[layer + 1], layer == len(model.dims) - 2
    moments = saved.moments
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
        _covariances_back(saved, first, x, C, gC, dx, dC, dZ, dlog_l, dlog_s, a, G)
    for o in range(width):
        i, gv, g = first + o, gC[:, o, o].copy(), gm[:, o].copy()
        gp = outputs.output_at(saved.parameters, i, D)
        if layer == 0:
            by_A, weights = network.back_from_k(saved.S[i], saved.A[i], saved.k[i], saved.Sk[i], g, gv, G[o])
            none, unused = np.zeros(x.shape), np.zeros(x.shape)
            dlog_s[o] += psi.psi1_back(x, none, gp.Zt, gp.l2, weights, dx, unused, dZ[o], dlog_l[o])
        else:
            by_A, weights = np.dot(g, saved.k[i]), network.outer(g, saved.A[i]) * saved.k[i]
            dlog_s[o] += psi_joint.psi1_back(x, C, gp.Zt, gp.l2, weights, dx, dC, dZ[o], dlog_l[o])
        noise = 0.0 if last else 2.0 * gp.noise * gv.sum()
        dlog_s[o] += 2.0 * gp.s2 * gv.sum()
        network.output_back(
            model, gp, network.factor_at(saved, i), layer, o, G[o], a[o] + by_A, dZ[o], dlog_l[o], dlog_s[o], noise,
            gradient,
        )  # fmt: skip


@jit(relaxed=FUSE, merged=True)
def _covariances_back(
    saved: ForwardPass,
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
    """Add the gradients of the covariances of a later layer, without the products of means.

    x, dx (B, W); C, gC, dC (B, V, V); dZ (D_out, D, M); dlog_l (D_out, D); dlog_s (D_out,); a (D_out, M) and G
    (D_out, M, M) are the gradients with respect to A and G.
    """
    width, D, M = dlog_l.shape[0], dlog_l.shape[1], a.shape[1]
    dT, g = np.empty((M, M)), np.empty(len(x))
    for o in range(width):
        for p in range(o + 1):
            one = outputs.output_at(saved.parameters, first + o, D)
            other = outputs.output_at(saved.parameters, first + p, D)
            pairs, T = _point_pairs(saved, first + o, first + p, D)
            for n in range(len(x)):
                g[n] = gC[n, o, p] + gC[n, p, o] if o != p else gC[n, o, o]
            slope = psi_joint.contract_back(
                x, C, one.Zt, one.l2, other.Zt, other.l2, pairs, T, g,
                dx, dC, dZ[o], dlog_l[o], dZ[p], dlog_l[p], dT,
            )  # fmt: skip
            dlog_s[o] += slope
            dlog_s[p] += slope
            add_vector(np.dot(dT, saved.A[first + p]), a[o])
            add_vector(np.dot(dT.T, saved.A[first + o]), a[p])
            if o == p:
                for i in range(M):
                    for j in range(M):
                        G[o, i, j] -= 0.5 * (dT[i, j] + dT[j, i])
