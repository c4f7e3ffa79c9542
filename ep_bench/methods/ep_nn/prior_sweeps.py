"""EP on the prior terms with fixed sites of the likelihood (section 3.2.1).

Arguments of the kernels: ``prior``, ``post`` and ``record`` are the named tuples of module ``sites``; ``groups``
(K, D); ``eta`` the fraction; ``kind`` is ``priors.LAPLACE`` or ``GAUSSIAN``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.methods.ep_nn.posterior import outputs
from ep_bench.methods.ep_nn.priors import SCALE_NODES, output_moments, weight_moments
from ep_bench.methods.ep_nn.sites import (
    NEGATIVE_PRIORS,
    OUTPUT_PRIOR,
    SCALE,
    SHORTENED,
    SKIPPED_PRIORS,
    WEIGHT_PRIOR,
)
from ep_bench.methods.ep_nn.sweeps import MIN_PRECISION_RATIO, rank_one
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import FUSE, jit


@jit(relaxed=FUSE)
def weight_priors(groups: Any, prior: Any, post: Any, eta: float, damping: float, kind: int, record: Any) -> None:
    """Update the sites of all weights and scales one after the other, (26) to (30), with q(w_k) and q(phi_l)."""
    K, D = groups.shape
    workspace = np.empty(SCALE_NODES), np.empty(SCALE_NODES), np.empty(SCALE_NODES)
    column = np.empty(D)
    for k in range(K):
        for j in range(D):
            _weight_prior(k, j, groups[k, j], prior, post, eta, damping, kind, record, workspace, column)


@jit(relaxed=FUSE, merged=True)
def _weight_prior(
    k: int, j: int, l: int, prior: Any, post: Any, eta: float, damping: float, kind: int, record: Any, workspace: Any,
    column: Any,
) -> None:  # fmt: skip
    """Update the sites of weight j of unit k and of its scale l; ``column`` (D,) is a workspace."""
    mean, S, scales = post.weight_mean[k], post.weight_covariance[k], post.scales
    m, V = mean[j], S[j, j]
    ratio = 1.0 - eta * prior.tau[k, j] * V
    precision = scales[0, l] - eta * prior.scale_precision[k, j]
    record.min_cavity[WEIGHT_PRIOR] = min(record.min_cavity[WEIGHT_PRIOR], ratio)
    record.min_cavity[SCALE] = min(record.min_cavity[SCALE], precision / scales[0, l])
    if not (ratio > 0.0 and precision > 0.0):
        record.counts[SKIPPED_PRIORS] += 1
        return
    cavity_m, cavity_V = (m - eta * prior.nu[k, j] * V) / ratio, V / ratio
    phi = (scales[1, l] - eta * prior.scale_location[k, j]) / precision
    _, m_hat, V_hat, phi_hat, phi_V = weight_moments(
        cavity_m, cavity_V, phi, 1.0 / precision, eta, kind, workspace[0], workspace[1], workspace[2]
    )
    if not (V_hat > 1e-12 * cavity_V and phi_V * precision > 1e-12):
        record.counts[SKIPPED_PRIORS] += 1
        return
    tau, nu = (1.0 / V_hat - 1.0 / cavity_V) / eta, (m_hat / V_hat - cavity_m / cavity_V) / eta
    t, r = (1.0 / phi_V - precision) / eta, (phi_hat / phi_V - precision * phi) / eta
    record.counts[NEGATIVE_PRIORS] += 1 if tau < 0.0 or t < 0.0 else 0
    record.steps[WEIGHT_PRIOR, 1] += tau * tau + nu * nu
    record.steps[SCALE, 1] += t * t + r * r
    tau, nu = tau - prior.tau[k, j], nu - prior.nu[k, j]
    t, r = t - prior.scale_precision[k, j], r - prior.scale_location[k, j]
    record.steps[WEIGHT_PRIOR, 0] += tau * tau + nu * nu
    record.steps[SCALE, 0] += t * t + r * r
    part = damping
    while (
        not (
            1.0 + part * tau * V > MIN_PRECISION_RATIO and scales[0, l] + part * t > MIN_PRECISION_RATIO * scales[0, l]
        )
        and part > 1e-12
    ):
        record.counts[SHORTENED] += 1
        part *= 0.5
    ratio = 1.0 + part * tau * V
    copy_vector(S[:, j], column)
    rank_one(mean, S, column, part * tau / ratio, part * (nu - tau * m) / ratio)
    prior.tau[k, j] += part * tau
    prior.nu[k, j] += part * nu
    prior.scale_precision[k, j] += part * t
    prior.scale_location[k, j] += part * r
    scales[0, l] += part * t
    scales[1, l] += part * r


@jit(relaxed=FUSE)
def output_priors(
    P: Any, r: Any, prior: Any, post: Any, eta: float, freedom: float, variance: float, sweeps: int, tolerance: float,
    record: Any,
) -> bool:  # fmt: skip
    """Run EP on the truncated priors of v_1, ..., v_K to convergence; return whether q(v) is proper.

    P (K + 1, K + 1) and r (K + 1,) are the sums of the likelihood's sites. The record includes the steps of the first
    sweep. The prior has ``freedom`` degrees of freedom and squared scale ``variance``.
    """
    if not outputs(P, r, prior.output_tau, prior.output_nu, post.output_mean, post.output_covariance):
        return False
    for turn in range(sweeps):
        step, value = _output_sweep(prior, post, eta, freedom, variance, record)
        if turn == 0:
            record.steps[OUTPUT_PRIOR, 0] += step
            record.steps[OUTPUT_PRIOR, 1] += value
        if not outputs(P, r, prior.output_tau, prior.output_nu, post.output_mean, post.output_covariance):
            return False
        if step <= tolerance * tolerance * value:
            break
    return True


@jit(relaxed=FUSE)
def _output_sweep(
    prior: Any, post: Any, eta: float, freedom: float, variance: float, record: Any
) -> tuple[float, float]:
    """Update the sites of v_1, ..., v_K one after the other; return sums of squares of steps and of new values."""
    tau, nu, mean, S = prior.output_tau, prior.output_nu, post.output_mean, post.output_covariance
    step, value, column = 0.0, 0.0, np.empty(tau.size)
    for k in range(tau.size - 1):
        m, V = mean[k], S[k, k]
        ratio = 1.0 - eta * tau[k] * V
        record.min_cavity[OUTPUT_PRIOR] = min(record.min_cavity[OUTPUT_PRIOR], ratio)
        if not ratio > 0.0:
            record.counts[SKIPPED_PRIORS] += 1
            continue
        cavity_m, cavity_V = (m - eta * nu[k] * V) / ratio, V / ratio
        _, m_hat, V_hat = output_moments(cavity_m, cavity_V, eta, freedom, variance)
        if not V_hat > 1e-12 * cavity_V:
            record.counts[SKIPPED_PRIORS] += 1
            continue
        new_tau, new_nu = (1.0 / V_hat - 1.0 / cavity_V) / eta, (m_hat / V_hat - cavity_m / cavity_V) / eta
        value += new_tau**2 + new_nu**2
        step_tau, step_nu = new_tau - tau[k], new_nu - nu[k]
        step += step_tau**2 + step_nu**2
        while not 1.0 + step_tau * V > MIN_PRECISION_RATIO:
            record.counts[SHORTENED] += 1
            step_tau, step_nu = 0.5 * step_tau, 0.5 * step_nu
        ratio = 1.0 + step_tau * V
        copy_vector(S[:, k], column)
        rank_one(mean, S, column, step_tau / ratio, (step_nu - step_tau * m) / ratio)
        tau[k] += step_tau
        nu[k] += step_nu
    return step, value
