"""A slow, obvious twin of moment matching in deep networks: appendix C, with derivatives by differences.

Layers as in ``plain_dgp``. The Gaussians on the inducing outputs, (m, V) of every output of every layer, are arguments
of log Z here, and derivatives with respect to them are differences in extended precision.
"""

from __future__ import annotations

import numpy as np

from tests.twins.plain_dgp import Real, conditional, eliminate, expected, gaussian, gram, log_z, outputs

STEP = Real(1e-4)


def cavities(layers, n, alpha):
    """(m, V) of every output of every layer."""
    return [[gaussian(out, (n - alpha) / Real(n)) for out in outputs(layer)] for layer in layers]


def forward(layers, gaussians, x, y, alpha, likelihood):
    """Return log Z of one data point."""
    below = None
    for index, (layer, given) in enumerate(zip(layers, gaussians, strict=True)):
        found = []
        for out, (m, V) in zip(outputs(layer), given, strict=True):
            K_inverse, _ = eliminate(gram(out))
            A, C = K_inverse @ m, K_inverse @ V @ K_inverse - K_inverse
            one = conditional(np.asarray(x, dtype=Real), out, A, C) if below is None else expected(*below, out, A, C)
            noise = out.sn**2 if index < len(layers) - 1 else Real(0)
            found.append((one[0], one[1] + noise))
        below = np.array([m for m, _ in found]), np.array([v for _, v in found])
    return log_z(likelihood, below[0], np.diag(below[1]), y, alpha, outputs(layers[-1])[0].sn)


def difference(function):
    """Return its derivative at 0, by differences of fourth order."""
    coarse, fine = ((function(h) - function(-h)) / (2 * h) for h in (2 * STEP, STEP))
    return (4 * fine - coarse) / 3


def slopes(layers, gaussians, place, x, y, alpha, likelihood):
    """d log Z / dm (M,) and d log Z / dV (M, M), symmetric, of the output ``place`` = (layer, output)."""
    l, o = place
    m, V = gaussians[l][o]
    M = len(m)

    def value(dm, dV):
        changed = [list(one) for one in gaussians]
        changed[l][o] = m + dm, V + dV
        return forward(layers, changed, x, y, alpha, likelihood)

    unit = np.eye(M, dtype=Real)
    by_m = np.array([difference(lambda h, e=e: value(h * e, 0 * V)) for e in unit])
    by_V = np.empty((M, M), dtype=Real)
    for i in range(M):
        for j in range(i + 1):
            change = (np.outer(unit[i], unit[j]) + np.outer(unit[j], unit[i])) / 2
            by_V[i, j] = by_V[j, i] = difference(lambda h, d=change: value(0 * m, h * d))
    return by_m, by_V


def matched(layers, place, X, y, n, alpha, likelihood="gaussian"):
    """Mean (B, M) and covariance (B, M, M) of u of an output after each data point: the updates of appendix C."""
    gaussians = cavities(layers, n, alpha)
    m, V = gaussians[place[0]][place[1]]
    means, covariances = [], []
    for row, target in zip(X, y, strict=True):
        g, G = slopes(layers, gaussians, place, row, target, alpha, likelihood)
        means.append(m + V @ g)
        covariances.append(V - V @ (np.outer(g, g) - 2 * G) @ V)
    return np.array(means), np.array(covariances)


def by_theta(layers, place, X, y, n, alpha, likelihood="gaussian"):
    """The derivatives of the tied energy by theta_2 (M,) and Theta_1 (M, M): q minus the average tilted moments.

    Setting appendix E's gradient in natural parameters to 0 gives section 4.2's average.
    """
    means, covariances = matched(layers, place, X, y, n, alpha, likelihood)
    m, V = gaussian(outputs(layers[place[0]])[place[1]], Real(1))
    second = np.mean(covariances + means[:, :, None] * means[:, None, :], axis=0)
    weight = (n - alpha) / alpha
    return weight * (m - means.mean(0)), -weight / 2 * (V + np.outer(m, m) - second)
