"""Moments of an exponentiated quadratic covariance function over Gaussian inputs, and their gradients.

The covariance function is k(x, z) = s^2 exp(-sum_j (x_j - z_j)^2 / (2 l_j^2)). The inputs are B Gaussians with means x
and variances v, independent over the D dimensions. With M points z (Titsias and Lawrence 2010, who call the second
moment psi2),

    psi1(z)           = E k(x, z) = s^2 prod_j sqrt(l^2 / (l^2 + v)) exp(-sum_j u^2 / (2 (l^2 + v))),  u = x - z,
    cov(k(z), k(z'))  = psi2(z, z') - psi1(z) psi1(z') = psi1(z) psi1(z') (exp(delta) - 1),
    delta             = sum_j alpha + beta (r (u^2 + u'^2) - (u - u')^2) / 2,      r = l^2 / (l^2 + v),
                        alpha = log(1 + v^2 / (l^2 (l^2 + 2 v))) / 2,        beta = v / (l^2 (l^2 + 2 v)).

Delta and the covariance are of order v. This form has no difference of large numbers; psi2 - psi1 psi1' would lose the
digits. The covariances are contracted with a symmetric matrix Q, at one exponential per data point and pair of points.
Pairs (a, b), b <= a, are stored row by row in vectors (P,), P = M (M + 1) / 2. For v = 0, psi1 is the covariance
function itself.

Symbols and array arguments:

    x, v       means and variances of the inputs, (B, D or more columns)
    Zt         the points z, (D, M), one row per dimension
    l2, s2     squared lengthscales (D,) and signal variance s^2
    psi        psi1, (B, M)
    Q          symmetric weights of the pairs, (M, M)
    excesses   exp(delta) - 1 of each pair, (B, P)
    d...       gradients, each of the shape of its argument; dlog_l (D,) with respect to log l
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.exponential import fill_excesses, fill_exponentials
from ep_bench.numerics.jit import FUSE, REORDER, jit

HALF_MAX_DELTA = 175.0  # half of the largest delta; psi2 is below s^4 exp(-delta)


@jit(relaxed=FUSE)
def covariance(Zt: Any, l2: Any, s2: float, out: Any) -> None:
    """Write the covariance matrix of the points to ``out`` (M, M)."""
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
    """Add to the gradients of Zt (D, M) and log l (D,); return the gradient with respect to log s.

    ``W`` (M, M), symmetric, is the gradient with respect to the covariance matrix K, times K element by element.
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
    """Write psi1 to ``out`` (B, M)."""
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
    """Add to the gradients of x, v (B, D), Zt (D, M) and log l (D,); return the gradient with respect to log s.

    ``W`` (B, M) is the gradient with respect to psi1, times psi1 element by element.
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


@jit(relaxed=REORDER)
def contract_spread(x: Any, v: Any, Zt: Any, l2: Any, psi: Any, Q: Any, excesses: Any) -> Any:
    """Return sum_ab Q_ab cov(k_a, k_b) per data point, (B,); write the excesses (B, P)."""
    B, M = psi.shape
    gaps, beta, own = np.empty(Zt.shape), np.empty(len(Zt)), np.empty(M)
    sums = np.empty(B)
    for n in range(B):
        _coefficients(x[n], v[n], Zt, l2, gaps, beta, own)
        row, weights, at, total = excesses[n], psi[n], 0, 0.0
        for a in range(M):
            segment = row[at : at + a + 1]
            for b in range(a + 1):
                segment[b] = own[a] + own[b]
            for j in range(len(Zt)):
                u, half, others = gaps[j, a], 0.5 * beta[j], gaps[j]
                for b in range(a + 1):
                    apart = u - others[b]
                    segment[b] -= half * apart * apart
            at += a + 1
        fill_excesses(row, row)
        at = 0
        for a in range(M):
            segment, line, part = row[at : at + a + 1], Q[a], 0.0
            for b in range(a + 1):
                part += line[b] * segment[b] * weights[b]
            total += weights[a] * (2.0 * part - line[a] * segment[a] * weights[a])
            at += a + 1
        sums[n] = total
    return sums


@jit(relaxed=FUSE)
def _coefficients(x: Any, v: Any, Zt: Any, l2: Any, gaps: Any, beta: Any, own: Any) -> None:
    """Write u = x - z (D, M), beta (D,) and the part ``own`` (M,) of delta that depends on one point of a pair.

    x and v (D or more,) are those of one data point.
    """
    own[:] = 0.0
    for j in range(len(Zt)):
        ratio = v[j] / l2[j]
        beta[j], r = ratio / (l2[j] + 2.0 * v[j]), l2[j] / (l2[j] + v[j])
        alpha = 0.25 * math.log1p(ratio * ratio / (1.0 + 2.0 * ratio))
        for m in range(len(own)):
            u = x[j] - Zt[j, m]
            gaps[j, m] = u
            own[m] += alpha + 0.5 * beta[j] * r * u * u
    for m in range(len(own)):
        own[m] = min(own[m], HALF_MAX_DELTA)


@jit(relaxed=REORDER)
def contract_spread_back(
    x: Any, v: Any, Zt: Any, l2: Any, psi: Any, Q: Any, excesses: Any, g: Any,
    dx: Any, dv: Any, dZt: Any, dlog_l: Any, dpsi: Any, dQ: Any,
) -> None:  # fmt: skip
    """Add to the gradients of x, v, Zt and log l; write those of psi1, dpsi (B, M), and Q, dQ (M, M), symmetric.

    ``g`` (B,) is the gradient with respect to the values that ``contract_spread`` returns. These depend on log s only
    through psi1.
    """
    B, M = psi.shape
    D = len(Zt)
    gaps, beta, own = np.empty((D, M)), np.empty(D), np.empty(M)
    pulls, mass, into = np.empty((D, M)), np.empty(M), np.zeros(excesses.shape[1])
    for n in range(B):
        _coefficients(x[n], v[n], Zt, l2, gaps, beta, own)
        pulls[:] = 0.0
        mass[:] = 0.0
        dpsi[n] = 0.0
        _pairs_back(psi[n], Q, excesses[n], g[n], gaps, pulls, mass, into, dpsi[n])
        for j in range(D):
            _dimension_back(j, v[n], l2, gaps[j], pulls[j], mass, dx[n], dv[n], dZt[j], dlog_l)
    at = 0
    for a in range(M):
        for b in range(a + 1):
            dQ[a, b] = into[at + b]
            dQ[b, a] = into[at + b]
        at += a + 1


@jit(relaxed=REORDER)
def _pairs_back(
    psi: Any, Q: Any, excess: Any, g: float, gaps: Any, pulls: Any, mass: Any, into: Any, dpsi: Any
) -> None:
    """Add the gradients of one data point with respect to psi1, dpsi (M,), and Q, ``into`` (P,).

    Also adds the sums over pairs of w = g Q psi psi' exp(delta), ``mass`` (M,), and of w (u - u'), ``pulls`` (D, M).
    ``psi`` (M,), ``excess`` (P,), ``gaps`` (D, M) u. Pairs off the diagonal count twice.
    """
    M, D, at = len(psi), len(gaps), 0
    w = np.empty(M)
    for a in range(M):
        line, segment, target = Q[a], excess[at : at + a + 1], into[at : at + a + 1]
        scale, whole, slope = g * psi[a], 0.0, 0.0
        for b in range(a):
            part = line[b] * segment[b]
            target[b] += scale * psi[b] * segment[b]
            slope += part * psi[b]
            dpsi[b] += 2.0 * scale * part
            w[b] = scale * psi[b] * (line[b] + part)
            whole += w[b]
            mass[b] += w[b]
        own = scale * psi[a] * segment[a]
        target[a] += own
        dpsi[a] += 2.0 * (g * slope + scale * line[a] * segment[a])
        w[a] = line[a] * (scale * psi[a] + own)
        mass[a] += whole + w[a]
        for j in range(D):
            pull, u, others, partners = 0.0, gaps[j, a], gaps[j], pulls[j]
            for b in range(a):
                weighted = w[b] * (u - others[b])
                pull += weighted
                partners[b] -= weighted
            partners[a] += pull
        at += a + 1


@jit(relaxed=REORDER)
def _dimension_back(
    j: int, v: Any, l2: Any, u: Any, pulls: Any, mass: Any, dx: Any, dv: Any, dzt: Any, dlog_l: Any
) -> None:
    """Add the gradient through delta of dimension j of one data point.

    v, dx and dv (D or more,); u, ``pulls``, ``mass`` and dzt (M,).
    """
    L, V = l2[j], v[j]
    beta, r = V / (L * (L + 2.0 * V)), L / (L + V)
    d_alpha, cross, square, shift = 0.0, 0.0, 0.0, 0.0
    for a in range(len(u)):
        d_alpha += mass[a]
        cross += u[a] * pulls[a]
        square += u[a] * u[a] * mass[a]
        du = 2.0 * beta * (r * u[a] * mass[a] - pulls[a])
        shift += du
        dzt[a] -= du
    dx[j] += shift
    d_beta, d_r = r * square - cross, beta * square
    dv[j] += d_beta / (L + 2.0 * V) ** 2 - d_r * r / (L + V) + d_alpha * V / ((L + V) * (L + 2.0 * V))
    down = d_beta * 2.0 * beta * (L + V) / (L + 2.0 * V) - d_r * r * V / (L + V) + d_alpha * beta * V / (L + V) * L
    dlog_l[j] -= 2.0 * down
