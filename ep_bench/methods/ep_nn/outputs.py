"""The site of one likelihood term for the output weights v: cavity (32), new site (42, 43), damping (44, 45).

Vectors are (K + 1,) and matrices (K + 1, K + 1) unless stated otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.numerics.jit import FUSE, jit


@jit(relaxed=FUSE)
def times(S: Any, vector: Any, out: Any) -> None:
    """Write S vector to ``out``; S is symmetric."""
    for j in range(vector.size):
        out[j] = 0.0
    for l in range(vector.size):
        c, row = vector[l], S[l]
        for j in range(vector.size):
            out[j] += c * row[j]


@jit(relaxed=FUSE)
def inner(a: Any, b: Any) -> float:
    """Return a' b."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@jit(relaxed=FUSE)
def output_cavity(
    eta: float,
    alpha: Any,
    sign: float,
    beta: Any,
    mean: Any,
    S: Any,
    m_g: Any,
    mu: Any,
    spread: Any,
    cross: Any,
    u: Any,
) -> tuple[float, float]:
    """Write mean, variances and Sigma m_g of the cavity of v, equation (32), to mu, spread and cross; S alpha to u.

    ``mean`` and ``S`` are those of q(v), ``m_g`` the means of g(h). Returns s = 1 / eta - sign alpha' S alpha, positive
    if the cavity is proper, and Psi(cavity) - Psi(marginal).
    """
    times(S, alpha, u)
    times(S, beta, cross)
    s = 1.0 / eta - sign * inner(alpha, u)
    first, locations = 0.0, 0.0
    for j in range(alpha.size):
        mu[j] = mean[j] - eta * cross[j]
        first += alpha[j] * mu[j]
        locations += beta[j] * (mean[j] + mu[j])
    if not s > 0.0:
        return s, np.nan
    factor = sign / s
    times(S, m_g, cross)
    along = inner(u, m_g)
    for j in range(alpha.size):
        mu[j] += factor * first * u[j]
        spread[j] = S[j, j] + factor * u[j] * u[j]
        cross[j] += factor * along * u[j]
    return s, 0.5 * (factor * first * first - math.log(eta * s) - eta * locations)


@jit(relaxed=FUSE)
def output_site(
    eta: float, residual: float, ratio: float, ratio_V: float, parallel: float, along: float
) -> tuple[float, float, float]:
    """Return the factors of m_g in alpha and beta, and the sign of the precision, equations (42) and (43).

    Parameters
    ----------
    residual : y - m_f
    ratio, ratio_V : mean and variance of 1 / V_y
    parallel, along : m_g' Sigma m_g and m_g' mu under the cavity
    """
    a_hat = ratio - residual * residual * ratio_V
    rest = 1.0 - a_hat * parallel
    alpha = math.sqrt(abs(a_hat) / (rest * eta))
    return alpha, (a_hat * along + ratio * residual) / (rest * eta), (1.0 if a_hat >= 0.0 else -1.0)


@jit(relaxed=FUSE)
def dominant_eigenpair(a: float, b: float, c: float, d: float) -> tuple[float, float, float]:
    """Return the eigenvalue of largest magnitude of [[a, b], [c, d]], and an eigenvector. Eigenvalues must be real."""
    half = 0.5 * (a + d)
    root = math.sqrt(max(half * half - (a * d - b * c), 0.0))
    value = half + root if half >= 0.0 else half - root
    if abs(a - value) + abs(b) > abs(d - value) + abs(c):
        return value, -b, a - value
    if d - value == 0.0 and c == 0.0:
        return value, 1.0, 0.0
    return value, d - value, -c


@jit(relaxed=FUSE)
def damp_output(
    eta: float, damping: float, old: Any, old_sign: float, new: Any, sign: float, b: Any, mu: Any, S: Any, u: Any,
    s: float, alpha: Any, beta: Any, workspace: Any,
) -> float:  # fmt: skip
    """Write the rank-one site nearest to (1 - delta) old + delta new whose posterior mean is the same, (44) and (45).

    ``b`` is the damped location, ``mu`` the mean of the cavity, ``S`` the covariance of the marginal, ``u`` S old, and
    ``s`` as ``output_cavity`` returns it. Writes to ``alpha``, which may be ``old``, and ``beta``. With A = [old, new],
    weighted, and D their signs, the damped precision is A D A'. Returns its sign.
    """
    wo, wn = math.sqrt(1.0 - damping), math.sqrt(damping)
    oo, on, nn = wo * wo * inner(old, old), wo * wn * inner(old, new), wn * wn * inner(new, new)
    value, zo, zn = dominant_eigenpair(old_sign * oo, old_sign * on, sign * on, sign * nn)
    norm = math.sqrt(max(zo * zo * oo + 2.0 * zo * zn * on + zn * zn * nn, 0.0))
    length = math.sqrt(abs(value)) / norm if norm > 0.0 else 0.0
    if zo * wo * old[old.size - 1] + zn * wn * new[old.size - 1] < 0.0:
        length = -length
    zo, zn, merged = zo * length, zn * length, (1.0 if value >= 0.0 else -1.0)
    eo, en = _means(eta, wo, wn, old, old_sign, new, sign, b, mu, S, u, s, workspace)
    along = merged * (zo * eo + zn * en)
    for j in range(old.size):
        direction = zo * wo * old[j] + zn * wn * new[j]
        beta[j] = b[j] + along * direction - wo * old_sign * eo * old[j] - wn * sign * en * new[j]
        alpha[j] = direction
    return merged


@jit(relaxed=FUSE)
def _means(
    eta: float, wo: float, wn: float, old: Any, old_sign: float, new: Any, sign: float, b: Any, mu: Any, S: Any,
    u: Any, s: float, workspace: Any,
) -> tuple[float, float]:  # fmt: skip
    """Return A' mu*, mu* the mean under the cavity times the rank-two site: (I + eta A' C A D)^-1 A' (mu + eta C b)."""
    factor = old_sign / s
    along_new, along_b = inner(u, new), inner(u, b)
    oo = inner(old, u)
    oo += factor * oo * oo
    on = along_new * (1.0 + factor * inner(old, u))
    times(S, new, workspace)
    nn = inner(new, workspace) + factor * along_new * along_new
    first = inner(old, mu) + eta * along_b * (1.0 + factor * inner(old, u))
    second = inner(new, mu) + eta * (inner(b, workspace) + factor * along_b * along_new)
    t00, t01 = 1.0 + eta * wo * wo * oo * old_sign, eta * wo * wn * on * sign
    t10, t11 = eta * wo * wn * on * old_sign, 1.0 + eta * wn * wn * nn * sign
    determinant = t00 * t11 - t01 * t10
    first *= wo
    second *= wn
    return (t11 * first - t01 * second) / determinant, (t00 * second - t10 * first) / determinant
