"""Slow, obvious twins of the non-diagonal propagation (appendix G), in closed form and by sums over a grid.

Moments of the outputs of a layer whose input is N(mean, covariance) with a covariance that need not be diagonal: the
outputs are independent given the input, and correlated without. Layers as in ``plain_dgp``; double precision here.
"""

from __future__ import annotations

import numpy as np

from tests.twins.plain_dgp import (
    Real,
    conditional,
    divergence,
    divergences,
    expected_log,
    grid,
    log_z,
    outputs,
    weights,
)


def floats(out):
    return type(out)(*(np.asarray(part, dtype=float) for part in out))


def gaussian_expectation(mean, covariance, c, S):
    """E exp(-(h - c)' S^-1 (h - c) / 2), h ~ N(mean, covariance): a ratio of determinants and an exponential."""
    total = S + covariance
    ratio = np.linalg.det(S) / np.linalg.det(total)
    return np.sqrt(ratio) * np.exp(-0.5 * (mean - c) @ np.linalg.solve(total, mean - c))


def psi1(mean, covariance, z, out):
    """E k(h, z)."""
    return out.sf**2 * gaussian_expectation(mean, covariance, z, np.diag(out.l**2))


def psi2(mean, covariance, za, first, zb, second):
    """E k(h, za) k'(h, zb), the kernels of two outputs: their product is a Gaussian centred between za and zb."""
    La, Lb = np.diag(first.l**2), np.diag(second.l**2)
    S = np.linalg.inv(np.linalg.inv(La) + np.linalg.inv(Lb))
    centre = S @ (np.linalg.solve(La, za) + np.linalg.solve(Lb, zb))
    height = np.exp(-0.5 * (za - zb) @ np.linalg.solve(La + Lb, za - zb))
    return first.sf**2 * second.sf**2 * height * gaussian_expectation(mean, covariance, centre, S)


def expected(mean, covariance, outs, parts):
    """Means (D,) and covariance (D, D) of the outputs, without noise: equations (23) and (24)."""
    first = [np.array([psi1(mean, covariance, z, out) for z in out.Z]) for out in outs]
    means = np.array([k @ A for k, (A, _) in zip(first, parts, strict=True)])
    found = np.empty((len(outs), len(outs)))
    for i, one in enumerate(outs):
        for j, other in enumerate(outs):
            second = np.array([[psi2(mean, covariance, a, one, b, other) for b in other.Z] for a in one.Z])
            found[i, j] = parts[i][0] @ second @ parts[j][0] - means[i] * means[j]
            if i == j:
                found[i, i] += one.sf**2 + np.sum(parts[i][1] * second)
    return means, found


def expected_by_grid(mean, covariance, outs, parts, **options):
    """The same, by the trapezoidal rule over the input: equations (21) and (22)."""
    points, w = grid(mean, covariance, **options)
    means, variances = [], []
    for out, (A, C) in zip(outs, parts, strict=True):
        k = out.sf**2 * np.exp(-0.5 * (((points[:, None] - out.Z) / out.l) ** 2).sum(-1))
        means.append(k @ A)
        variances.append(out.sf**2 + np.sum((k @ C) * k, axis=1))
    means, variances = np.array(means), np.array(variances)
    m = means @ w
    return m, np.diag(variances @ w) + (means - m[:, None]) * w @ (means - m[:, None]).T


def moments(layers, X, beta, *, latent=False, rule=expected):
    """Means (n, D_out) and covariances (n, D_out, D_out) of every layer; ``latent`` omits the noise of the last one."""
    found, below = [], None
    for index, layer in enumerate(layers):
        outs = outputs(layer)
        parts = [weights(out, Real(beta)) for out in outs]
        means, covariances = np.empty((len(X), len(outs))), np.empty((len(X), len(outs), len(outs)))
        for row in range(len(X)):
            if below is None:
                x = np.asarray(X[row], dtype=Real)
                one = np.array([conditional(x, o, *p) for o, p in zip(outs, parts, strict=True)], dtype=float)
                means[row], covariances[row] = one[:, 0], np.diag(one[:, 1])
            else:
                plain = [tuple(np.asarray(one, dtype=float) for one in p) for p in parts]
                one = rule(below[0][row], below[1][row], [floats(out) for out in outs], plain)
                means[row], covariances[row] = one
        if not (latent and index == len(layers) - 1):
            covariances = covariances + np.diag([float(out.sn) ** 2 for out in outs])
        below = means, covariances
        found.append(below)
    return found


def energy(layers, X, y, n, alpha=1.0, likelihood="gaussian", noise=None):
    """Tied power EP with non-diagonal propagation; alpha = 0 is the limit."""
    means, covariances = moments(layers, X, (n - alpha) / n, latent=True)[-1]
    sn, rows = float(outputs(layers[-1])[0].sn), list(zip(means, covariances, y, strict=True))
    if alpha == 0:
        fit = sum(expected_log(likelihood, m, C, one, sn, noise) for m, C, one in rows)
        return float(divergence(layers) - n / len(y) * fit)
    total = sum(log_z(likelihood, m, C, one, alpha, sn, noise) for m, C, one in rows)
    return float(divergences(layers, n, alpha) - n / (alpha * len(y)) * total)
