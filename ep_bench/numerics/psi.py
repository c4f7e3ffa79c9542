"""Expectations of an exponentiated quadratic covariance function over Gaussian inputs, and their gradients.

The covariance function is k(x, z) = s^2 exp(-sum_j (x_j - z_j)^2 / (2 l_j^2)); inputs are B Gaussians of means x and
variances v, independent over the D dimensions. With M points z (Titsias and Lawrence 2010),

    psi1(z)      = E k(x, z)             = s^2 prod_j sqrt(l^2 d) exp(-sum_j d (x - z)^2 / 2),     d = 1 / (l^2 + v)
    psi2(z, z')  = E k(x, z) k(x, z')    = s^4 rho exp(-sum_j (z - z')^2 / (4 l^2)) exp(-sum_j c (x - zbar)^2),
                                           c = 1 / (l^2 + 2 v),  rho = prod_j sqrt(l^2 c),  zbar = (z + z') / 2.

psi2 is only ever contracted with a symmetric matrix Q, which takes one exponential a pair of points and row. Pairs
(a, b), b <= a, stand row by row in vectors (P,), P = M (M + 1) / 2 and zeros up to whole chunks. With v = 0 psi1 is the
covariance itself.

x, v    (B, D or wider) means, variances   Zt     (D, M) the points, one row a dimension
l2      (D,) squared lengthscales          bars   (D, P) zbar of the pairs
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.exponential import fill_exponentials
from ep_bench.numerics.jit import FUSE, REORDER, jit

CHUNK = 256  # pairs whose exponentials of all rows are made and summed while they are in the cache


class Pairs(NamedTuple):
    """What all rows share of the pairs of M points."""

    bars: Any  # (D, P) middles
    bases: Any  # (P,) s^4 exp(-sum_j (z_a - z_b)^2 / (4 l^2))


class Contraction(NamedTuple):
    """What the backward pass needs of sum_ab Q_ab psi2_ab."""

    parts: Any  # (P / CHUNK, B, CHUNK) exp(-sum_j c (x - zbar)^2)
    weights: Any  # (1 + 2 D, P) Q's share of every pair, and that times zbar_j and zbar_j^2
    sums: Any  # (B, 1 + 2 D) of the parts, weighted
    rho: Any  # (B,)


@jit(relaxed=FUSE)
def covariance(Zt: Any, l2: Any, s2: float, out: Any) -> None:
    """Write the covariances (M, M) of the points."""
    D, M = Zt.shape
    for a in range(M):
        row = out[a]
        row[:] = 0.0
        for j in range(D):
            z, scale, others = Zt[j, a], -0.5 / l2[j], Zt[j]
            for b in range(M):
                gap = others[b] - z
                row[b] += scale * gap * gap
    flat = out.reshape(M * M)
    fill_exponentials(flat, flat)
    for a in range(M):
        row = out[a]
        for b in range(M):
            row[b] *= s2


@jit(relaxed=REORDER)
def covariance_back(Zt: Any, l2: Any, W: Any, dZt: Any, dlog_l: Any) -> float:
    """Add to the gradients of Zt (D, M) and of log l (D,); return that of log s.

    ``W`` (M, M) is the gradient of a symmetric K, symmetric itself, times K, element by element.
    """
    D, M = Zt.shape
    for j in range(D):
        points, into = Zt[j], dZt[j]
        inverse, total = 1.0 / l2[j], 0.0
        for a in range(M):
            z, row, pull = points[a], W[a], 0.0
            for b in range(M):
                gap = z - points[b]
                weighted = row[b] * gap
                pull += weighted
                total += weighted * gap
            into[a] -= 2.0 * inverse * pull
        dlog_l[j] += inverse * total
    whole = 0.0
    for a in range(M):
        row = W[a]
        for b in range(M):
            whole += row[b]
    return 2.0 * whole


@jit(relaxed=FUSE)
def psi1(x: Any, v: Any, Zt: Any, l2: Any, s2: float, out: Any) -> None:
    """Write psi1 (B, M)."""
    B = len(x)
    D, M = Zt.shape
    for n in range(B):
        row = out[n]
        shrinkage = 1.0
        for j in range(D):
            shrinkage *= 1.0 + v[n, j] / l2[j]
        row[:] = math.log(s2) - 0.5 * math.log(shrinkage)
        for j in range(D):
            at, scale, points = x[n, j], -0.5 / (l2[j] + v[n, j]), Zt[j]
            for m in range(M):
                gap = at - points[m]
                row[m] += scale * gap * gap
    flat = out.reshape(B * M)
    fill_exponentials(flat, flat)


@jit(relaxed=REORDER)
def psi1_back(x: Any, v: Any, Zt: Any, l2: Any, W: Any, dx: Any, dv: Any, dZt: Any, dlog_l: Any) -> float:
    """Add to the gradients of x, v (B, D), Zt (D, M) and log l (D,); return that of log s.

    ``W`` (B, M) is the gradient of psi1 times psi1, element by element.
    """
    B = len(x)
    D, M = Zt.shape
    whole = 0.0
    for n in range(B):
        row = W[n]
        mass = 0.0
        for m in range(M):
            mass += row[m]
        whole += mass
        for j in range(D):
            at, d, points, into = x[n, j], 1.0 / (l2[j] + v[n, j]), Zt[j], dZt[j]
            first, second = 0.0, 0.0
            for m in range(M):
                gap = at - points[m]
                weighted = row[m] * gap
                first += weighted
                second += weighted * gap
                into[m] += d * weighted
            dx[n, j] -= d * first
            dv[n, j] += 0.5 * d * (d * second - mass)
            dlog_l[j] += d * (v[n, j] * mass + l2[j] * d * second)
    return 2.0 * whole


@jit(relaxed=FUSE)
def pairs_of(Zt: Any, l2: Any, s2: float) -> Pairs:
    """Return the pairs of the points."""
    D, M = Zt.shape
    P = M * (M + 1) // 2
    whole = -(-P // CHUNK) * CHUNK
    bars, bases = np.zeros((D, whole)), np.zeros(whole)
    for j in range(D):
        points, row, scale = Zt[j], bars[j], -0.25 / l2[j]
        at = 0
        for a in range(M):
            z, segment, exponents = points[a], row[at : at + a + 1], bases[at : at + a + 1]
            for b in range(a + 1):
                gap = z - points[b]
                segment[b] = 0.5 * (z + points[b])
                exponents[b] += scale * gap * gap
            at += a + 1
    fill_exponentials(bases[:P], bases[:P])
    bases[:P] *= s2 * s2
    return Pairs(bars, bases)


@jit(relaxed=FUSE)
def contract_psi2(x: Any, v: Any, l2: Any, pairs: Pairs, Q: Any) -> Contraction:
    """Return sum_ab Q_ab psi2_ab of every row, for a symmetric Q (M, M), as ``rho * sums[:, 0]``."""
    B = len(x)
    D, P = pairs.bars.shape
    weights = np.zeros((1 + 2 * D, P))
    at = 0
    for a in range(len(Q)):
        for b in range(a):
            weights[0, at + b] = 2.0 * Q[a, b]
        weights[0, at + a] = Q[a, a]
        at += a + 1
    weights[0] *= pairs.bases
    for j in range(D):
        weights[1 + j] = weights[0] * pairs.bars[j]
        weights[1 + D + j] = weights[1 + j] * pairs.bars[j]
    parts, sums, rho = np.empty((P // CHUNK, B, CHUNK)), np.zeros((B, 1 + 2 * D)), np.ones(B)
    for n in range(B):
        for j in range(D):
            rho[n] *= 1.0 + 2.0 * v[n, j] / l2[j]
        rho[n] = 1.0 / math.sqrt(rho[n])
    for chunk in range(P // CHUNK):
        first, exponents = chunk * CHUNK, parts[chunk]
        for n in range(B):
            row = exponents[n]
            row[:] = 0.0
            for j in range(D):
                centre, c, bars = x[n, j], 1.0 / (l2[j] + 2.0 * v[n, j]), pairs.bars[j, first : first + CHUNK]
                for p in range(CHUNK):
                    gap = centre - bars[p]
                    row[p] -= c * gap * gap
            fill_exponentials(row, row)
        sums += np.dot(exponents, weights[:, first : first + CHUNK].copy().T)
    return Contraction(parts, weights, sums, rho)


@jit(relaxed=REORDER)
def contract_psi2_back(
    x: Any, v: Any, l2: Any, Zt: Any, pairs: Pairs, done: Contraction, g: Any,
    dx: Any, dv: Any, dZt: Any, dlog_l: Any, dQ: Any,
) -> float:  # fmt: skip
    """Add to the gradients of x, v, Zt, log l, write that of Q (M, M), symmetric; return that of log s.

    ``g`` (B,) is the gradient of what ``contract_psi2`` returned.
    """
    B, D = len(x), len(Zt)
    coefficients = np.empty((1 + 2 * D, B))
    whole = 0.0
    for n in range(B):
        kappa, s0 = g[n] * done.rho[n], done.sums[n, 0]
        coefficients[0, n] = kappa
        whole += kappa * s0
        for j in range(D):
            centre, c = x[n, j], 1.0 / (l2[j] + 2.0 * v[n, j])
            s1, s2 = done.sums[n, 1 + j], done.sums[n, 1 + D + j]
            square = kappa * (centre * (centre * s0 - 2.0 * s1) + s2)
            dx[n, j] -= 2.0 * c * kappa * (centre * s0 - s1)
            dv[n, j] += c * (2.0 * c * square - kappa * s0)
            dlog_l[j] += 2.0 * c * (l2[j] * c * square + v[n, j] * kappa * s0)
            coefficients[1 + j, n] = kappa * c
            coefficients[1 + D + j, n] = kappa * c * centre
    reduced = np.empty(done.weights.shape)
    for chunk in range(len(done.parts)):
        reduced[:, chunk * CHUNK : (chunk + 1) * CHUNK] = np.dot(coefficients, done.parts[chunk])
    _pairs_back(l2, Zt, pairs, done.weights[0], reduced, dZt, dlog_l)
    at = 0
    for a in range(len(dQ)):
        for b in range(a + 1):
            dQ[a, b] = pairs.bases[at + b] * reduced[0, at + b]
            dQ[b, a] = dQ[a, b]
        at += a + 1
    return 4.0 * whole


@jit(relaxed=REORDER)
def _pairs_back(l2: Any, Zt: Any, pairs: Pairs, weights: Any, reduced: Any, dZt: Any, dlog_l: Any) -> None:
    D, M = Zt.shape
    for j in range(D):
        points, into, half, total = Zt[j], dZt[j], 0.5 / l2[j], 0.0
        bars, slopes, moments = pairs.bars[j], reduced[1 + j], reduced[1 + D + j]
        at = 0
        for a in range(M):
            z, own = points[a], 0.0
            for b in range(a + 1):
                p = at + b
                gap = z - points[b]
                apart = half * gap * weights[p] * reduced[0, p]
                middle = weights[p] * (moments[p] - bars[p] * slopes[p])
                own += middle - apart
                into[b] += middle + apart
                total += gap * apart
            into[a] += own
            at += a + 1
        dlog_l[j] += total
