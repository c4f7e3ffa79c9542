"""EP on the prior terms, the likelihood's sites given (section 3.2.1)."""

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
from ep_bench.methods.ep_nn.sweeps import SHORTEST, rank_one
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import FUSE, jit


@jit(relaxed=FUSE)
def weight_priors(groups: Any, prior: Any, post: Any, eta: float, damping: float, kind: int, record: Any) -> None:
    """Update the sites of all weights and scales one after the other, (26) to (30), q(w_k) and q(phi_l) with them."""
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
    """Update the site of one weight and its scale."""
    mean, S, scales = post.weight_mean[k], post.weight_covariance[k], post.scales
    m, V = mean[j], S[j, j]
    share = 1.0 - eta * prior.tau[k, j] * V
    precision = scales[0, l] - eta * prior.scale_precision[k, j]
    record.least[WEIGHT_PRIOR] = min(record.least[WEIGHT_PRIOR], share)
    record.least[SCALE] = min(record.least[SCALE], precision / scales[0, l])
    if not (share > 0.0 and precision > 0.0):
        record.counts[SKIPPED_PRIORS] += 1
        return
    cavity_m, cavity_V = (m - eta * prior.nu[k, j] * V) / share, V / share
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
    while not (1.0 + part * tau * V > SHORTEST and scales[0, l] + part * t > SHORTEST * scales[0, l]) and part > 1e-12:
        record.counts[SHORTENED] += 1
        part *= 0.5
    share = 1.0 + part * tau * V
    copy_vector(S[:, j], column)
    rank_one(mean, S, column, part * tau / share, part * (nu - tau * m) / share)
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
    """Run EP on the truncated priors of v_1, ..., v_K to convergence; P and r are the sums of the likelihood's sites.

    Returns whether q(v) exists. The record gets the steps of the first sweep.
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
    """Update the sites of v_1, ..., v_K one after the other; return squares of steps and values."""
    tau, nu, mean, S = prior.output_tau, prior.output_nu, post.output_mean, post.output_covariance
    step, value, column = 0.0, 0.0, np.empty(tau.size)
    for k in range(tau.size - 1):
        m, V = mean[k], S[k, k]
        share = 1.0 - eta * tau[k] * V
        record.least[OUTPUT_PRIOR] = min(record.least[OUTPUT_PRIOR], share)
        if not share > 0.0:
            record.counts[SKIPPED_PRIORS] += 1
            continue
        cavity_m, cavity_V = (m - eta * nu[k] * V) / share, V / share
        _, m_hat, V_hat = output_moments(cavity_m, cavity_V, eta, freedom, variance)
        if not V_hat > 1e-12 * cavity_V:
            record.counts[SKIPPED_PRIORS] += 1
            continue
        new_tau, new_nu = (1.0 / V_hat - 1.0 / cavity_V) / eta, (m_hat / V_hat - cavity_m / cavity_V) / eta
        value += new_tau**2 + new_nu**2
        step_tau, step_nu = new_tau - tau[k], new_nu - nu[k]
        step += step_tau**2 + step_nu**2
        while not 1.0 + step_tau * V > SHORTEST:
            record.counts[SHORTENED] += 1
            step_tau, step_nu = 0.5 * step_tau, 0.5 * step_nu
        share = 1.0 + step_tau * V
        copy_vector(S[:, k], column)
        rank_one(mean, S, column, step_tau / share, (step_nu - step_tau * m) / share)
        tau[k] += step_tau
        nu[k] += step_nu
    return step, value
