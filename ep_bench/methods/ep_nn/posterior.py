"""q(w_k), q(v), q(theta) and q(phi_l) from their sites, equations (17), (21) and (22)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from ep_bench.methods.ep_nn.sites import LikelihoodSites, PriorSites
from ep_bench.numerics.cholesky import factorise, invert_lower
from ep_bench.numerics.copying import copy_matrix
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array, Indices


def marginals(X: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return means and variances (n, K) of h_k = x' w_k at inputs X (n, D); mean (K, D), covariance (K, D, D)."""
    variances = np.empty((len(X), len(mean)))
    for k, S in enumerate(covariance):
        variances[:, k] = np.einsum("na,na->n", X @ S, X)
    return X @ mean.T, variances


def weights(X: Array, sites: LikelihoodSites, prior: PriorSites, mean: Array, covariance: Array) -> bool:
    """Write means (K, D) and covariances (K, D, D) of q(w_k), (21); return whether all are proper."""
    found = np.empty_like(covariance)
    for k in range(len(mean)):
        precision = _weighted_products(X, sites.tau[:, k])
        np.einsum("aa->a", precision)[:] += prior.tau[k]
        factor, failed = lapack.dpotrf(precision, lower=1, overwrite_a=1)
        if failed:
            return False
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        _mirror(inverse.T, found[k])
    covariance[...] = found
    locations = sites.nu.T @ X + prior.nu
    mean[...] = np.einsum("kab,kb->ka", covariance, locations)
    return bool(np.isfinite(mean).all())


def _weighted_products(X: Array, tau: Array) -> Array:
    """Return X' diag(tau) X (D, D), at least its lower triangle, column-major; tau (n,)."""
    if (tau >= 0.0).all():
        return np.asarray(blas.dsyrk(1.0, (X * np.sqrt(tau)[:, None]).T, lower=1))
    return np.asfortranarray((X * tau[:, None]).T @ X)


@jit(relaxed=FUSE)
def _mirror(upper: Any, whole: Any) -> None:
    """Write a symmetric matrix ``whole`` (D, D) from its upper triangle (D, D), block by block."""
    D, width = len(upper), 32
    for top in range(0, D, width):
        for left in range(top, D, width):
            for a in range(top, min(top + width, D)):
                for b in range(max(a, left), min(left + width, D)):
                    whole[a, b] = upper[a, b]
                    whole[b, a] = upper[a, b]


def output_sums(sites: LikelihoodSites) -> tuple[Array, Array]:
    """Return the sums of precisions (K + 1, K + 1) and locations (K + 1,) of the likelihood's sites of v."""
    return (sites.alpha * sites.sign[:, None]).T @ sites.alpha, sites.beta.sum(axis=0)


@jit(relaxed=FUSE)
def outputs(P: Any, r: Any, tau: Any, nu: Any, mean: Any, S: Any) -> bool:
    """Write mean (K + 1,) and covariance S of q(v), (22); return whether it is proper.

    P (K + 1, K + 1) and r (K + 1,) are the sums of the likelihood's sites, tau and nu (K + 1,) the prior sites.
    """
    K1 = r.size
    whole = P.copy()
    for j in range(K1):
        whole[j, j] += tau[j]
    if not math.isfinite(factorise(whole)):
        return False
    for j in range(K1):
        whole[j, j + 1 :] = 0.0
    R = invert_lower(whole)
    copy_matrix(np.dot(R.T, R), S)
    for j in range(K1):
        mean[j] = 0.0
        for l in range(K1):
            mean[j] += S[j, l] * (r[l] + nu[l])
    return True


def noise(sites: LikelihoodSites, mean: float, variance: float) -> Array:
    """Return mean and variance (2,) of q(theta), (17), from the sites and the prior N(mean, variance)."""
    precision = sites.noise_precision.sum() + 1.0 / variance
    return np.array([(sites.noise_location.sum() + mean / variance) / precision, 1.0 / precision])


def scales(prior: PriorSites, groups: Indices, count: int, mean: float, variance: float) -> Array:
    """Return precisions and locations (2, L) of q(phi_l) from the sites and the prior N(mean, variance)."""
    found = np.array([np.full(count, 1.0 / variance), np.full(count, mean / variance)])
    np.add.at(found[0], groups, prior.scale_precision)
    np.add.at(found[1], groups, prior.scale_location)
    return found
