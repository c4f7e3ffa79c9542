"""The numbers that EP works on: sites of all terms, the posterior that they make, and what a sweep is told and tells.

Symbols, of row i, unit k, input j (the constant 1 of the bias is the last of D = d + 1 inputs):

    tau, nu        precision and location of the likelihood's site of h_ik = x_i' w_k, equation (19)
    alpha, beta    of its site of v = (v_1, ..., v_K, v_0): precision sign * alpha alpha', location beta
    theta, phi_l   logarithms of the noise variance and of the prior variances of the groups l of weights
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.types import Array

# What is counted, by place in ``SweepRecord.counts``.
SKIPPED_ROWS, SKIPPED_SITES, SHORTENED, NEGATIVE, CLIPPED, SKIPPED_PRIORS, NEGATIVE_PRIORS = range(7)
COUNTS = 7
# Groups of sites, by place in ``SweepRecord.steps`` and ``SweepRecord.least`` (of a cavity of v its precision along
# alpha).
INPUT, OUTPUT, NOISE, WEIGHT_PRIOR, SCALE, OUTPUT_PRIOR = range(6)
GROUPS = ("input", "output", "noise", "weight_prior", "scale", "output_prior")


class LikelihoodSites(NamedTuple):
    """Sites of the likelihood's terms, equations (12) and (19)."""

    tau: Array  # (n, K)
    nu: Array  # (n, K)
    alpha: Array  # (n, K + 1); its last entry is 0 or above: alpha and -alpha are the same site
    beta: Array  # (n, K + 1)
    noise_precision: Array  # (n,) of theta
    noise_location: Array  # (n,)
    sign: Array  # (n,) 1 or -1


class PriorSites(NamedTuple):
    """Sites of the priors' terms, equations (13) and (14); precisions and locations."""

    tau: Array  # (K, D) of w
    nu: Array  # (K, D)
    scale_precision: Array  # (K, D) of phi
    scale_location: Array  # (K, D)
    output_tau: Array  # (K + 1,) of v, the last one the Gaussian prior of v_0
    output_nu: Array  # (K + 1,)


class NetworkPosterior(NamedTuple):
    """q(w_k), q(v), q(theta) and q(phi_l)."""

    weight_mean: Array  # (K, D)
    weight_covariance: Array  # (K, D, D)
    output_mean: Array  # (K + 1,)
    output_covariance: Array  # (K + 1, K + 1)
    noise: Array  # (2,) mean and variance of theta; a variance of 0 is a known theta
    scales: Array  # (2, L) precisions and locations of phi


class SweepOptions(NamedTuple):
    """What a sweep over the rows is told."""

    fraction: float  # eta
    damping: float  # delta of the input sites
    output_damping: float
    noise_damping: float  # 0 leaves the sites of theta alone
    sequential: bool
    clip: bool  # keep tau at 0 or above


class SweepRecord(NamedTuple):
    """What a sweep tells."""

    counts: Array  # (COUNTS,)
    steps: Array  # (6, 2) of each group sums of squares of undamped steps and of new values
    least: Array  # (6,) smallest precision of a cavity as a part of the marginal's, by group


def empty(n: int, K: int, D: int) -> tuple[Array, LikelihoodSites, PriorSites]:
    """Return a vector of all site parameters but the signs, all 0, and sites that are views of it."""
    shapes = [(n, K), (n, K), (n, K + 1), (n, K + 1), (n,), (n,), *[(K, D)] * 4, (K + 1,), (K + 1,)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    vector = np.zeros(sum(sizes))
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    views = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    return (
        vector,
        LikelihoodSites(views[0], views[1], views[2], views[3], views[4], views[5], np.ones(n)),
        PriorSites(*views[6:]),
    )


def record() -> SweepRecord:
    """Return an empty record."""
    return SweepRecord(np.zeros(COUNTS), np.zeros((len(GROUPS), 2)), np.ones(len(GROUPS)))
