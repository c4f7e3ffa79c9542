"""The expectations of ``psi`` for Gaussian inputs with correlated dimensions: means x, covariances C.

With points z of one covariance function (l, s) and z' of another (l', s'), both with D inputs,

    E k(x, z)              = s^2 |L|^(1/2) |L + C|^(-1/2) exp(-(x - z)' (L + C)^-1 (x - z) / 2),     L = diag(l^2)
    E k(x, z) k'(x, z')    = s^2 s'^2 exp(-sum_j (z - z')^2 / (2 (l^2 + l'^2)))
                             |T|^(1/2) |T + C|^(-1/2) exp(-(x - c)' (T + C)^-1 (x - c) / 2)

with T = diag(l^2 l'^2 / (l^2 + l'^2)) and c = (l'^2 z + l^2 z') / (l^2 + l'^2). The second gives the cross-moments of
two outputs of a layer (appendix G of Bui et al. 2015). It is contracted with any matrix (M, M) and recomputed in the
backward pass.

Symbols and array arguments:

    x, C       means (B, D or more columns) and covariances (B, D or more, the same) of the inputs
    Zt, Za, Zb the points, (D, M)
    l2, la, lb squared lengthscales, (D,); ``psi1`` also takes the signal variance s2
    Gamma      (L + C)^-1 or (T + C)^-1, (D, D)
    y          Gamma (x - z) or Gamma (x - c), (D, P), with P = M or M^2
    d...       gradients, each of the shape of its argument; dlog_l, dlog_la, dlog_lb (D,) with respect to log l
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.cholesky import factorise, invert_lower
from ep_bench.numerics.copying import add_vector, copy_matrix
from ep_bench.numerics.exponential import fill_exponentials
from ep_bench.numerics.jit import FUSE, REORDER, jit


class PointPairs(NamedTuple):
    """Terms of the M^2 pairs of points of two functions that do not depend on the inputs."""

    centres: Any  # (D, M^2) c
    bases: Any  # (M^2,) s^2 s'^2 exp(-sum_j (z - z')^2 / (2 (l^2 + l'^2)))
    tilt: Any  # (D,) the diagonal of T


@jit(relaxed=FUSE)
def precision(diagonal: Any, C: Any, Gamma: Any) -> float:
    """Write (diag + C)^-1 to ``Gamma`` (D, D) for a diagonal (D,) and C (D or more, the same).

    Returns sqrt(|diag| / |diag + C|).
    """
    D = len(diagonal)
    matrix = C[:D, :D].copy()
    log_ratio = 0.0
    for j in range(D):
        matrix[j, j] += diagonal[j]
        log_ratio += math.log(diagonal[j])
    log_ratio -= factorise(matrix)
    inverse = invert_lower(matrix)
    copy_matrix(np.dot(inverse.T, inverse), Gamma)
    return math.exp(0.5 * log_ratio)


@jit(relaxed=FUSE)
def _exponents(gaps: Any, Gamma: Any, y: Any, out: Any) -> None:
    """Write Gamma times gaps to ``y`` (D, P), and exp(-gap' Gamma gap / 2) to ``out`` (P,)."""
    D = len(gaps)
    copy_matrix(np.dot(Gamma, gaps), y)
    out[:] = 0.0
    for j in range(D):
        for p in range(len(out)):
            out[p] -= 0.5 * gaps[j, p] * y[j, p]
    fill_exponentials(out, out)


@jit(relaxed=FUSE)
def psi1(x: Any, C: Any, Zt: Any, l2: Any, s2: float, out: Any) -> None:
    """Write E k(x, z) to ``out`` (B, M)."""
    D, M = Zt.shape
    Gamma, gaps, y = np.empty((D, D)), np.empty((D, M)), np.empty((D, M))
    for n in range(len(x)):
        scale = s2 * precision(l2, C[n], Gamma)
        for j in range(D):
            for m in range(M):
                gaps[j, m] = x[n, j] - Zt[j, m]
        _exponents(gaps, Gamma, y, out[n])
        for m in range(M):
            out[n, m] *= scale


@jit(relaxed=REORDER)
def psi1_back(x: Any, C: Any, Zt: Any, l2: Any, W: Any, dx: Any, dC: Any, dZt: Any, dlog_l: Any) -> float:
    """Add to the gradients of x, C, Zt and log l; return the gradient with respect to log s.

    ``W`` (B, M) is the gradient with respect to psi1, times psi1 element by element.
    """
    D, M = Zt.shape
    Gamma, gaps, y, unused = np.empty((D, D)), np.empty((D, M)), np.empty((D, M)), np.empty(M)
    whole = 0.0
    for n in range(len(x)):
        precision(l2, C[n], Gamma)
        for j in range(D):
            for m in range(M):
                gaps[j, m] = x[n, j] - Zt[j, m]
        _exponents(gaps, Gamma, y, unused)
        whole += _add_gradients(W[n], y, Gamma, l2, dx[n], dC[n], dZt, dlog_l, l2)
    return 2.0 * whole


@jit(relaxed=REORDER)
def _add_gradients(
    w: Any, y: Any, Gamma: Any, diagonal: Any, dx: Any, dC: Any, d_points: Any, d_diagonal: Any, scale: Any
) -> float:
    """Add the gradients of one data point for weights w (P,): of x (D,), C (D, D), points (D, P) and diagonal (D,).

    The gradient of the diagonal is multiplied by 2 ``scale`` (D,). Returns the sum of w.
    """
    D = len(y)
    mass = w.sum()
    for j in range(D):
        weighted = w * y[j]
        dx[j] -= weighted.sum()
        add_vector(weighted, d_points[j])
        for k in range(D):
            dC[j, k] += 0.5 * (np.dot(weighted, y[k]) - mass * Gamma[j, k])
        d_diagonal[j] += scale[j] * (np.dot(weighted, y[j]) + mass * (1.0 / diagonal[j] - Gamma[j, j]))
    return mass


@jit(relaxed=FUSE)
def point_pairs(Za: Any, la: Any, Zb: Any, lb: Any, scale: float) -> PointPairs:
    """Return the pairs of points of two functions; ``scale`` is s^2 s'^2."""
    D, M = Za.shape
    centres, bases = np.empty((D, M * M)), np.zeros(M * M)
    for j in range(D):
        total = la[j] + lb[j]
        for a in range(M):
            for b in range(M):
                gap, p = Za[j, a] - Zb[j, b], a * M + b
                centres[j, p] = (lb[j] * Za[j, a] + la[j] * Zb[j, b]) / total
                bases[p] -= 0.5 * gap * gap / total
    fill_exponentials(bases, bases)
    return PointPairs(centres, scale * bases, la * lb / (la + lb))


@jit(relaxed=FUSE)
def contract(x: Any, C: Any, pairs: PointPairs, T: Any) -> Any:
    """Return sum_ab T_ab E k(x, z_a) k'(x, z'_b) per data point, (B,), for a matrix T (M, M)."""
    D, P = pairs.centres.shape
    Gamma, gaps, y, parts = np.empty((D, D)), np.empty((D, P)), np.empty((D, P)), np.empty(P)
    weights, sums = T.copy().reshape(P) * pairs.bases, np.empty(len(x))
    for n in range(len(x)):
        scale = precision(pairs.tilt, C[n], Gamma)
        for j in range(D):
            for p in range(P):
                gaps[j, p] = x[n, j] - pairs.centres[j, p]
        _exponents(gaps, Gamma, y, parts)
        sums[n] = scale * np.dot(weights, parts)
    return sums


@jit(relaxed=REORDER)
def contract_back(
    x: Any, C: Any, Za: Any, la: Any, Zb: Any, lb: Any, pairs: PointPairs, T: Any, g: Any,
    dx: Any, dC: Any, dZa: Any, dlog_la: Any, dZb: Any, dlog_lb: Any, dT: Any,
) -> float:  # fmt: skip
    """Add to the gradients of all arguments, and write that of T, dT (M, M).

    ``g`` (B,) is the gradient with respect to the values that ``contract`` returns. Returns the gradients with respect
    to log s and to log s', which are equal.
    """
    D, P = pairs.centres.shape
    Gamma, gaps, y, parts = np.empty((D, D)), np.empty((D, P)), np.empty((D, P)), np.empty(P)
    flat, d_flat, mass = T.copy().reshape(P), np.zeros(P), np.zeros(P)
    d_centres, d_tilt, ones = np.zeros((D, P)), np.zeros(D), np.full(D, 0.5)
    whole = 0.0
    for n in range(len(x)):
        scale = g[n] * precision(pairs.tilt, C[n], Gamma)
        for j in range(D):
            for p in range(P):
                gaps[j, p] = x[n, j] - pairs.centres[j, p]
        _exponents(gaps, Gamma, y, parts)
        parts *= scale * pairs.bases
        d_flat += parts
        parts *= flat
        mass += parts
        whole += _add_gradients(parts, y, Gamma, pairs.tilt, dx[n], dC[n], d_centres, d_tilt, ones)
    _pairs_back(Za, la, Zb, lb, pairs, mass, d_centres, d_tilt, dZa, dlog_la, dZb, dlog_lb)
    copy_matrix(d_flat.reshape(T.shape), dT)
    return 2.0 * whole


@jit(relaxed=REORDER)
def _pairs_back(
    Za: Any, la: Any, Zb: Any, lb: Any, pairs: PointPairs, mass: Any, d_centres: Any, d_tilt: Any,
    dZa: Any, dlog_la: Any, dZb: Any, dlog_lb: Any,
) -> None:  # fmt: skip
    """Add the gradients of the points and lengthscales from those of the pairs.

    ``mass`` (M^2,), ``d_centres`` (D, M^2) and ``d_tilt`` (D,) are sums over the data points.
    """
    D, M = Za.shape
    for j in range(D):
        total = la[j] + lb[j]
        da, db = d_tilt[j] * (lb[j] / total) ** 2, d_tilt[j] * (la[j] / total) ** 2
        for a in range(M):
            for b in range(M):
                p = a * M + b
                gap, centre, slope = Za[j, a] - Zb[j, b], pairs.centres[j, p], d_centres[j, p] / total
                apart = mass[p] * gap / total
                dZa[j, a] += lb[j] * slope - apart
                dZb[j, b] += la[j] * slope + apart
                da += slope * (Zb[j, b] - centre) + 0.5 * apart * gap / total
                db += slope * (Za[j, a] - centre) + 0.5 * apart * gap / total
        dlog_la[j] += 2.0 * la[j] * da
        dlog_lb[j] += 2.0 * lb[j] * db
