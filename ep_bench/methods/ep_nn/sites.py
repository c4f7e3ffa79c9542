"""Sites of all terms, the posterior that they define, and options and statistics of a sweep.

Symbols, for data point i, unit k and input j (the constant 1 of the bias is the last of D = d + 1 inputs):

    tau, nu        precision and location of the likelihood's site of h_ik = x_i' w_k, equation (19)
    alpha, beta    its site of v = (v_1, ..., v_K, v_0): precision sign * alpha alpha', location beta
    theta, phi_l   logarithms of the noise variance and of the prior variances of the groups l of weights
    eta, delta     fraction and damping
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ep_bench.types import Array

# Indices of ``SweepRecord.counts``.
SKIPPED_ROWS, SKIPPED_SITES, SHORTENED, NEGATIVE, CLIPPED, SKIPPED_PRIORS, NEGATIVE_PRIORS = range(7)
COUNTS = 7
# Groups of sites: indices of ``SweepRecord.steps`` and ``SweepRecord.min_cavity``.
INPUT, OUTPUT, NOISE, WEIGHT_PRIOR, SCALE, OUTPUT_PRIOR = range(6)
GROUPS = ("input", "output", "noise", "weight_prior", "scale", "output_prior")


class LikelihoodSites(NamedTuple):
    """Sites of the likelihood terms, equations (12) and (19)."""

    tau: Array  # (n, K)
    nu: Array  # (n, K)
    alpha: Array  # (n, K + 1), the last entry not negative, because alpha and -alpha give the same site
    beta: Array  # (n, K + 1)
    noise_precision: Array  # (n,) of theta
    noise_location: Array  # (n,)
    sign: Array  # (n,) 1 or -1


class PriorSites(NamedTuple):
    """Sites of the prior terms, equations (13) and (14): precisions and locations."""

    tau: Array  # (K, D) of w
    nu: Array  # (K, D)
    scale_precision: Array  # (K, D) of phi
    scale_location: Array  # (K, D)
    output_tau: Array  # (K + 1,) of v; the last one is the Gaussian prior of v_0
    output_nu: Array  # (K + 1,)


class NetworkPosterior(NamedTuple):
    """q(w_k), q(v), q(theta) and q(phi_l)."""

    weight_mean: Array  # (K, D)
    weight_covariance: Array  # (K, D, D)
    output_mean: Array  # (K + 1,)
    output_covariance: Array  # (K + 1, K + 1)
    noise: Array  # (2,) mean and variance of theta; variance 0 means that theta is fixed
    scales: Array  # (2, L) precisions and locations of phi


class SweepOptions(NamedTuple):
    """Options of a sweep over the data points."""

    fraction: float  # eta
    damping: float  # delta of the input sites
    output_damping: float  # delta of the output sites
    noise_damping: float  # delta of the sites of theta; 0 fixes them
    sequential: bool  # update q(w_k) and q(theta) after each data point
    clip: bool  # set negative tau to 0
    probit: bool  # targets are classes, -1 or 1


class SweepRecord(NamedTuple):
    """Statistics of a sweep."""

    counts: Array  # (COUNTS,)
    steps: Array  # (6, 2) per group, sums of squares of undamped steps and of new values
    min_cavity: Array  # (6,) per group, minimum precision of a cavity relative to the marginal; for v, along alpha


def empty(n: int, K: int, D: int) -> tuple[Array, LikelihoodSites, PriorSites]:
    """Return a zero vector of all site parameters except the signs, and sites that are views of it."""
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
    """Return the record of a sweep before its first update."""
    return SweepRecord(np.zeros(COUNTS), np.zeros((len(GROUPS), 2)), np.ones(len(GROUPS)))
