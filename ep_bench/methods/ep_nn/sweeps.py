"""One sweep over the likelihood terms: cavities (appendix A), tilted moments, new sites (appendix E), damping.

Arguments of the kernels: ``sites``, ``post``, ``options`` and ``record`` are the named tuples of module ``sites``.
``m`` and ``V`` are means and variances of h under q, (n, K), or (K,) for one data point. ``vectors`` (11, K + 1) is a
workspace; ``linear`` (K,) are flags; ``scale`` is 1 / sqrt(K).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.ep_nn.outputs import damp_output, inner, output_cavity, output_site
from ep_bench.methods.ep_nn.sites import (
    CLIPPED,
    INPUT,
    NEGATIVE,
    NOISE,
    OUTPUT,
    SHORTENED,
    SKIPPED_ROWS,
    SKIPPED_SITES,
)
from ep_bench.methods.ep_nn.tilted import MAX_NODES, activation_moments, class_moments, noise_moments, tilted_activation
from ep_bench.numerics.jit import FUSE, jit

MIN_VARIANCE_RATIO = 1e-6  # of tilted and cavity variance; a site below it is skipped
MIN_PRECISION_RATIO = 0.05  # of new and old precision; a step that gives less is shortened

# Rows of the workspace ``vectors``.
_M_G, _V_G, _CAVITY_M, _CAVITY_V, _MU, _SPREAD, _CROSS, _U, _NEW, _B, _SPARE = range(11)


@jit(relaxed=FUSE)
def sweep(
    X: Any, y: Any, order: Any, linear: Any, m: Any, V: Any, sites: Any, post: Any, options: Any, record: Any
) -> None:
    """Update the sites of the data points ``order`` (B,) of X (n, D), y (n,).

    Sequential sweeps also update q(w_k) and q(theta) after each data point, and overwrite m and V.
    """
    K, D = post.weight_mean.shape
    scale = 1.0 / math.sqrt(K)
    workspace = np.empty(MAX_NODES), np.empty(MAX_NODES), np.empty((K, D)), np.empty((11, K + 1))
    for place in range(order.size):
        i = order[place]
        if options.sequential:
            for k in range(K):
                m[i, k], V[i, k] = project(X[i], post.weight_mean[k], post.weight_covariance[k], workspace[2][k])
        _update_data_point(y[i], i, linear, scale, m[i], V[i], sites, post, options, record, workspace)


@jit(relaxed=FUSE)
def project(x: Any, mean: Any, S: Any, Sx: Any) -> tuple[float, float]:
    """Return mean and variance of x' w for w ~ N(mean, S); write S x to ``Sx``. Vectors are (D,), S is (D, D)."""
    D = x.size
    for a in range(D):
        Sx[a] = 0.0
    for a in range(D):
        c, row = x[a], S[a]
        for b in range(D):
            Sx[b] += c * row[b]
    return inner(x, mean), inner(x, Sx)


@jit(relaxed=FUSE, merged=True)
def _update_data_point(
    y: float, i: int, linear: Any, scale: float, m: Any, V: Any, sites: Any, post: Any, options: Any, record: Any,
    workspace: Any,
) -> None:  # fmt: skip
    """Update all sites of data point i."""
    logs, roots, Sx, vectors = workspace
    K, eta = m.size, options.fraction
    if not _input_cavities(i, eta, linear, scale, m, V, sites, record, vectors):
        record.counts[SKIPPED_ROWS] += 1
        return
    m_g, V_g, mu, spread, cross = vectors[_M_G], vectors[_V_G], vectors[_MU], vectors[_SPREAD], vectors[_CROSS]
    s, _ = output_cavity(
        eta, sites.alpha[i], sites.sign[i], sites.beta[i], post.output_mean, post.output_covariance, m_g, mu, spread,
        cross, vectors[_U],
    )  # fmt: skip
    relative = 1.0 - eta * sites.noise_precision[i] * post.noise[1]
    record.min_cavity[OUTPUT] = min(record.min_cavity[OUTPUT], eta * s)
    record.min_cavity[NOISE] = min(record.min_cavity[NOISE], relative)
    if not (s > 0.0 and relative > 0.0):
        record.counts[SKIPPED_ROWS] += 1
        return
    m_f, parallel, V_f = inner(mu, m_g), inner(m_g, cross), 0.0
    for k in range(K):
        V_f += V_g[k] * (spread[k] + mu[k] * mu[k])
    V_f += parallel
    noise_m = (post.noise[0] - eta * sites.noise_location[i] * post.noise[1]) / relative
    noise_V = post.noise[1] / relative
    _, theta, theta_V, ratio, ratio_V = noise_moments(y, m_f, V_f, eta, noise_m, noise_V)
    noise, label, residual, target = math.exp(theta) / eta, 0.0, y - m_f, y
    if options.probit:
        label, target, ratio_V = y, 0.0, 0.0
        _, residual, ratio = class_moments(label, m_f, V_f)
    for k in range(K):
        rest = V_f - V_g[k] * (spread[k] + mu[k] * mu[k])
        m_hat, V_hat = tilted_activation(
            label, target - m_f, noise, vectors[_CAVITY_M, k], vectors[_CAVITY_V, k], m_g[k], mu[k], spread[k],
            cross[k], rest, scale, linear[k], logs, roots,
        )  # fmt: skip
        _input_site(i, k, m_hat, V_hat, m[k], V[k], sites, post, options, record, vectors, Sx[k])
    alpha, beta, sign = output_site(eta, residual, ratio, ratio_V, parallel, inner(mu, m_g))
    _write_output(i, alpha, beta, sign, s, sites, post, options, record, vectors)
    if options.noise_damping > 0.0:
        _noise_site(i, theta, theta_V, noise_m, noise_V, sites, post, options, record)


@jit(relaxed=FUSE, merged=True)
def _input_cavities(
    i: int, eta: float, linear: Any, scale: float, m: Any, V: Any, sites: Any, record: Any, vectors: Any
) -> bool:
    """Write moments of h and g(h) under the cavities, (31), to ``vectors``; return whether all are proper."""
    K = m.size
    for k in range(K):
        relative = 1.0 - eta * sites.tau[i, k] * V[k]
        record.min_cavity[INPUT] = min(record.min_cavity[INPUT], relative)
        if not (relative > 0.0 and V[k] > 0.0):
            return False
        vectors[_CAVITY_V, k] = V[k] / relative
        vectors[_CAVITY_M, k] = (m[k] - eta * sites.nu[i, k] * V[k]) / relative
        vectors[_M_G, k], vectors[_V_G, k] = activation_moments(
            vectors[_CAVITY_M, k], vectors[_CAVITY_V, k], scale, linear[k]
        )
    vectors[_M_G, K], vectors[_V_G, K] = 1.0, 0.0
    return True


@jit(relaxed=FUSE)
def _input_site(
    i: int, k: int, m_hat: float, V_hat: float, m: float, V: float, sites: Any, post: Any, options: Any, record: Any,
    vectors: Any, Sx: Any,
) -> None:  # fmt: skip
    """Update tau and nu of unit k, equation (46), and q(w_k) in sequential sweeps.

    h has tilted moments m_hat, V_hat and moments m, V under q; Sx (D,) is S x.
    """
    eta, cavity_m, cavity_V = options.fraction, vectors[_CAVITY_M, k], vectors[_CAVITY_V, k]
    if not (V_hat > MIN_VARIANCE_RATIO * cavity_V and math.isfinite(m_hat)):
        record.counts[SKIPPED_SITES] += 1
        return
    tau = (1.0 / V_hat - 1.0 / cavity_V) / eta
    nu = (m_hat / V_hat - cavity_m / cavity_V) / eta
    if tau < 0.0:
        record.counts[NEGATIVE] += 1
        if options.clip:  # the location that gives the tilted mean
            record.counts[CLIPPED] += 1
            tau, nu = 0.0, (m_hat - cavity_m) / cavity_V / eta
    record.steps[INPUT, 0] += (tau - sites.tau[i, k]) ** 2 + (nu - sites.nu[i, k]) ** 2
    record.steps[INPUT, 1] += tau * tau + nu * nu
    part = _shortened(options.damping, (tau - sites.tau[i, k]) * V, options.sequential, record)
    step_tau, step_nu = part * (tau - sites.tau[i, k]), part * (nu - sites.nu[i, k])
    if options.sequential:
        relative = 1.0 + step_tau * V
        rank_one(
            post.weight_mean[k],
            post.weight_covariance[k],
            Sx,
            step_tau / relative,
            (step_nu - step_tau * m) / relative,
        )
    sites.tau[i, k] += step_tau
    sites.nu[i, k] += step_nu


@jit(relaxed=FUSE)
def _shortened(part: float, change: float, sequential: bool, record: Any) -> float:
    """Return the damping ``part``, halved until the new precision relative to the old one is large enough.

    The full step changes this ratio by ``change``. Parallel updates are not shortened.
    """
    while sequential and not 1.0 + part * change > MIN_PRECISION_RATIO and part > 1e-12:
        record.counts[SHORTENED] += 1
        part *= 0.5
    return part


@jit(relaxed=FUSE)
def rank_one(mean: Any, S: Any, Sx: Any, factor: float, shift: float) -> None:
    """Add shift S x to the mean (D,) and -factor S x x' S to the covariance S (D, D), in place; Sx (D,) is S x."""
    for a in range(mean.size):
        mean[a] += shift * Sx[a]
        c, row = factor * Sx[a], S[a]
        for b in range(mean.size):
            row[b] -= c * Sx[b]


@jit(relaxed=FUSE, merged=True)
def _write_output(
    i: int, alpha: float, beta: float, sign: float, s: float, sites: Any, post: Any, options: Any, record: Any,
    vectors: Any,
) -> None:  # fmt: skip
    """Write the damped site of v of data point i; the undamped one has alpha m_g and beta m_g."""
    m_g, new, b = vectors[_M_G], vectors[_NEW], vectors[_B]
    old, agree = sites.alpha[i], (1.0 if sign == sites.sign[i] else -1.0)
    for j in range(new.size):
        new[j] = alpha * m_g[j]
        location = beta * m_g[j]
        record.steps[OUTPUT, 0] += (new[j] - agree * old[j]) ** 2 + (location - sites.beta[i, j]) ** 2
        record.steps[OUTPUT, 1] += new[j] ** 2 + location**2
        b[j] = sites.beta[i, j] + options.output_damping * (location - sites.beta[i, j])
    sites.sign[i] = damp_output(
        options.fraction,
        options.output_damping,
        old,
        sites.sign[i],
        new,
        sign,
        b,
        vectors[_MU],
        post.output_covariance,
        vectors[_U],
        s,
        sites.alpha[i],
        sites.beta[i],
        vectors[_SPARE],
    )


@jit(relaxed=FUSE, merged=True)
def _noise_site(
    i: int,
    theta: float,
    theta_V: float,
    cavity_m: float,
    cavity_V: float,
    sites: Any,
    post: Any,
    options: Any,
    record: Any,
) -> None:
    """Update the site of theta by matching moments, and q(theta) in sequential sweeps."""
    if not theta_V > 0.0:
        record.counts[SKIPPED_SITES] += 1
        return
    precision = (1.0 / theta_V - 1.0 / cavity_V) / options.fraction
    location = (theta / theta_V - cavity_m / cavity_V) / options.fraction
    step_p, step_l = precision - sites.noise_precision[i], location - sites.noise_location[i]
    record.steps[NOISE, 0] += step_p * step_p + step_l * step_l
    record.steps[NOISE, 1] += precision * precision + location * location
    part = _shortened(options.noise_damping, step_p * post.noise[1], options.sequential, record)
    if options.sequential:
        relative = 1.0 + part * step_p * post.noise[1]
        post.noise[0] = (post.noise[0] + part * step_l * post.noise[1]) / relative
        post.noise[1] = post.noise[1] / relative
    sites.noise_precision[i] += part * step_p
    sites.noise_location[i] += part * step_l
