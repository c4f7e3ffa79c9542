"""Linear and constant covariances: f = sum_k w_k x_k, w_k ~ N(0, v_k), and f = w, w ~ N(0, m)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ep_bench.numerics import symmetric
from ep_bench.types import Array


@dataclass(frozen=True)
class Linear:
    """k(x, z) = sum_k v_k x_k z_k. Parameters: weight variances v, one per input, or a single one without ``ard``."""

    d: int
    ard: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return ("weight_variance",) * (self.d if self.ard else 1)

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        np.dot(X * np.exp(theta), (X if Z is None else Z).T, out=out)

    def diagonal(self, theta: Array, X: Array) -> Array:
        return np.asarray((X**2 * np.exp(theta)).sum(axis=1))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        product = symmetric.times(A, X) if Z is None else A @ Z
        return self._pooled(np.exp(theta) * np.einsum("ik,ik->k", X, product))

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        return self._pooled(np.exp(theta) * (a @ X**2))

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        return self.contract(theta, X, A, Z), (A.T @ X) * np.exp(theta)

    def _pooled(self, gradient: Array) -> Array:
        return gradient if self.ard else gradient.sum(keepdims=True)


@dataclass(frozen=True)
class Constant:
    """k(x, z) = m. Parameter: the magnitude m, a variance."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("magnitude",)

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:  # noqa: ARG002
        out[...] = np.exp(theta[0])

    def diagonal(self, theta: Array, X: Array) -> Array:
        return np.full(len(X), np.exp(theta[0]))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:  # noqa: ARG002
        return np.asarray(np.exp(theta) * (symmetric.total(A) if Z is None else A.sum()))

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:  # noqa: ARG002
        return np.asarray(np.exp(theta) * a.sum())

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        return self.contract(theta, X, A, Z), np.zeros_like(Z)
