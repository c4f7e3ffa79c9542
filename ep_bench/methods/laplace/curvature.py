"""The Hessian of M in four forms, and the Gaussian approximations of the posterior that they give.

    A = alpha + beta H,   H is J'J = sum_n grad f_n grad f_n' (Levenberg-Marquardt, Gauss-Newton) or a part of it

    diag   the diagonal of J'J
    full   J'J
    last   the block of the last layer's weights; all other weights are treated as known
    kron   one factorisation per layer, no curvature between layers: sum_n a a' (x) sum_n s s' / N, where J_ij = a_i s_j
           (``network``); exact for the last layer. In the eigenvectors u_i, v_j of both factors, with eigenvalues
           p_i, q_j, A = alpha + beta p_i q_j is diagonal

Shapes: P weights, of which the form covers the last Q; L layers; N data points, B of them in a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

from ep_bench.methods.laplace.network import JacobianFactors, aligned_matrix, blocks, factors, gram
from ep_bench.models import mlp
from ep_bench.models.residuals import RELU
from ep_bench.types import Array

Form = Literal["diag", "full", "kron", "last"]


class WeightPosterior(Protocol):
    """Gaussian over the covered weights, centred on the most probable weights."""

    @property
    def log_det(self) -> float:
        """The log determinant of the precision A."""

    @property
    def variances(self) -> Array:
        """The variances (Q,) of the weights, the diagonal of A^-1."""

    def output_variance(self, parts: JacobianFactors) -> Array:
        """Return the variances (B,) of the linearised outputs, without noise."""

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return draws (count, Q), relative to the most probable weights."""


class Hessian(Protocol):
    """H of a network on its training data."""

    @property
    def first(self) -> int:
        """Index of the first covered layer."""

    def posterior(self, alpha: Array, beta: float) -> WeightPosterior:
        """Return the Gaussian with precision alpha + beta H; alpha (L,) are the prior precisions of the layers."""


def cholesky(product: Array, ridge: Array) -> Array:
    """Return the upper triangle R (Q, Q) with R'R = product + diag(ridge).

    Only the upper triangle of ``product`` (Q, Q) is read; ``ridge`` is (Q,). Raises FloatingPointError if the matrix is
    not positive definite or not finite.
    """
    total = aligned_matrix(*product.shape)
    total[...] = product
    total[np.diag_indices_from(total)] += ridge
    root, failed = lapack.dpotrf(total, lower=0, clean=1, overwrite_a=1)
    if failed or not np.isfinite(root).all():
        raise FloatingPointError("the Hessian is not positive definite, or not finite")
    return np.asarray(root)


def spread_over(layers: Any, by_layer: Array, first: int = 0) -> Array:
    """Repeat the values by_layer (L,) for each weight of the layers from ``first`` on: (Q,)."""
    sizes = [(n_in + 1) * n_out for _, n_in, n_out in layers[first:].tolist()]
    return np.repeat(by_layer[first:], sizes)


@dataclass(frozen=True, eq=False)
class DiagonalPosterior:
    """Independent Gaussians, one per weight."""

    variances: Array  # (P,)

    @property
    def log_det(self) -> float:
        return -float(np.log(self.variances).sum())

    def output_variance(self, parts: JacobianFactors) -> Array:
        total, at = np.zeros(len(parts.inputs[0])), 0
        for a, s in zip(parts.inputs, parts.slopes, strict=True):
            V = self.variances[at : at + a.shape[1] * s.shape[1]].reshape(a.shape[1], s.shape[1])
            total += np.sum((a**2 @ V) * s**2, axis=1)
            at += V.size
        return total

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return np.sqrt(self.variances) * rng.standard_normal((count, len(self.variances)))


@dataclass(frozen=True, eq=False)
class DiagonalHessian:
    """The diagonal of J'J."""

    layers: Any
    diagonal: Array  # (P,)
    first: int = 0

    @classmethod
    def of(cls, X: Array, w: Array, layers: Any, kind: int) -> DiagonalHessian:
        total = np.zeros(len(w))
        for block in blocks(X, layers, 1):
            parts = factors(X[block], w, layers, kind)[1]
            squares = [(a**2).T @ s**2 for a, s in zip(parts.inputs, parts.slopes, strict=True)]
            total += np.concatenate([one.ravel() for one in squares])
        return cls(layers, total)

    def posterior(self, alpha: Array, beta: float) -> DiagonalPosterior:
        return DiagonalPosterior(1.0 / (spread_over(self.layers, alpha) + beta * self.diagonal))


@dataclass(frozen=True, eq=False)
class DensePosterior:
    """Joint Gaussian over all covered weights with covariance S S'."""

    root: Array  # (Q, Q) upper triangle S
    log_det: float
    first: int

    @property
    def variances(self) -> Array:
        return np.einsum("ij,ij->i", self.root, self.root)

    def output_variance(self, parts: JacobianFactors) -> Array:
        return np.sum((parts.jacobian(self.first) @ self.root) ** 2, axis=1)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((count, len(self.root))) @ self.root.T


@dataclass(frozen=True, eq=False)
class DenseHessian:
    """J'J for the layers from ``first`` on."""

    layers: Any
    product: Array  # (Q, Q) upper triangle
    first: int

    @classmethod
    def of(cls, X: Array, w: Array, layers: Any, first: int, kind: int) -> DenseHessian:
        return cls(layers, gram(X, w, layers, first, kind), first)

    def posterior(self, alpha: Array, beta: float) -> DensePosterior:
        root = cholesky(beta * self.product, spread_over(self.layers, alpha, self.first))
        log_det = 2.0 * float(np.log(np.diag(root)).sum())
        inverse, _ = lapack.dtrtri(root, lower=0, overwrite_c=1)
        return DensePosterior(np.asarray(inverse), log_det, self.first)


@dataclass(frozen=True, eq=False)
class KroneckerPosterior:
    """Independent layers; the covariance of each is diagonal in a product of two bases."""

    bases: list[tuple[Array, Array]]  # (n_in + 1, n_in + 1) U and (n_out, n_out) V, eigenvectors in columns
    spectra: list[Array]  # (n_in + 1, n_out) variances in these bases

    @property
    def log_det(self) -> float:
        return -sum(float(np.log(spectrum).sum()) for spectrum in self.spectra)

    @property
    def variances(self) -> Array:
        both = zip(self.bases, self.spectra, strict=True)
        return np.concatenate([(U**2 @ spectrum @ (V**2).T).ravel() for (U, V), spectrum in both])

    def output_variance(self, parts: JacobianFactors) -> Array:
        total = np.zeros(len(parts.inputs[0]))
        for a, s, (U, V), spectrum in zip(parts.inputs, parts.slopes, self.bases, self.spectra, strict=True):
            total += np.sum(((a @ U) ** 2 @ spectrum) * (s @ V) ** 2, axis=1)
        return total

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        drawn = []
        for (U, V), spectrum in zip(self.bases, self.spectra, strict=True):
            noise = rng.standard_normal((count, *spectrum.shape)) * np.sqrt(spectrum)
            drawn.append((U @ noise @ V.T).reshape(count, -1))
        return np.concatenate(drawn, axis=1)


@dataclass(frozen=True, eq=False)
class KroneckerHessian:
    """Kronecker product of two factors per layer."""

    bases: list[tuple[Array, Array]]  # as in ``KroneckerPosterior``
    spectra: list[Array]  # (n_in + 1, n_out) p_i q_j
    first: int = 0

    @classmethod
    def of(cls, X: Array, w: Array, layers: Any, kind: int) -> KroneckerHessian:
        sizes = [(n_in + 1, n_out) for _, n_in, n_out in layers.tolist()]
        lefts, rights = [np.zeros((n, n)) for n, _ in sizes], [np.zeros((n, n)) for _, n in sizes]
        for block in blocks(X, layers, 1):
            parts = factors(X[block], w, layers, kind)[1]
            for l, (a, s) in enumerate(zip(parts.inputs, parts.slopes, strict=True)):
                lefts[l] += a.T @ a
                rights[l] += s.T @ s
        both = [(_eigen(left), _eigen(right / len(X))) for left, right in zip(lefts, rights, strict=True)]
        return cls([(U, V) for (_, U), (_, V) in both], [np.outer(p, q) for (p, _), (q, _) in both])

    def posterior(self, alpha: Array, beta: float) -> KroneckerPosterior:
        precisions = [a + beta * spectrum for a, spectrum in zip(alpha, self.spectra, strict=True)]
        return KroneckerPosterior(self.bases, [1.0 / precision for precision in precisions])


def _eigen(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues (n,), at least 0, and eigenvectors (n, n) of a positive semidefinite matrix (n, n)."""
    try:
        values, vectors = np.linalg.eigh(matrix)
    except LinAlgError:
        raise FloatingPointError("a factor of the Hessian is not finite") from None
    return np.maximum(values, 0.0), vectors


def curvature(form: Form, X: Array, w: Array, layers: Any, kind: int = RELU) -> Hessian:
    """Return H in the given form at weights w (P,) and inputs X (N, d)."""
    if form == "diag":
        return DiagonalHessian.of(X, w, layers, kind)
    if form == "kron":
        return KroneckerHessian.of(X, w, layers, kind)
    return DenseHessian.of(X, w, layers, 0 if form == "full" else len(layers) - 1, kind)


def linearised(posterior: WeightPosterior, X: Array, w: Array, layers: Any, kind: int = RELU) -> tuple[Array, Array]:
    """Return means and variances (N,) of the outputs at X (N, d), linearised in the weights, without noise."""
    mean, variance = np.empty(len(X)), np.empty(len(X))
    for block in blocks(X, layers, mlp.count(layers)):
        mean[block], parts = factors(X[block], w, layers, kind)
        variance[block] = posterior.output_variance(parts)
    return mean, variance
