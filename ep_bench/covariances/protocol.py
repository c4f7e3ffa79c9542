"""The interface of covariance functions, and arrays for their matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ep_bench.numerics.simd.vector import aligned, padded
from ep_bench.numerics.symmetric import mirror, square
from ep_bench.types import Array


class Covariance(Protocol):
    """A covariance function k of points with d inputs.

    ``theta`` (P,) are the logarithms of its parameters. If ``Z`` is None, matrices (n, n) are those of the points X
    (n, d) with themselves: symmetric, stored as lower triangles (``numerics.symmetric``). Otherwise they are (n, m), of
    the points X with the points Z (m, d).
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each parameter: lengthscale, magnitude (a variance), bias_variance or weight_variance.

        In sums and products, names have the number of the part in front: 2.lengthscale.
        """

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        """Write the covariances k(x_i, z_j) to ``out``, a contiguous matrix."""

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Return k(x_i, x_i) (n,)."""

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        """Return sum_ij A_ij dk(x_i, z_j) / dtheta (P,), A as the matrices; a symmetric A counts both triangles."""

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        """Return sum_i a_i dk(x_i, x_i) / dtheta (P,), a (n,)."""

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        """Return the result of ``contract``, and sum_i A_ij dk(x_i, z_j) / dz_j (m, d); A (n, m) is contiguous."""


def matrix(covariance: Covariance, theta: Array, X: Array, Z: Array | None = None) -> Array:
    """Return the full matrix (n, m) of points X (n, d) with points Z (m, d), by default (n, n) of X with itself."""
    if Z is not None:
        out = rectangle(len(X), len(Z))
        covariance.fill(theta, X, out, Z)
        return out
    out = square(len(X))
    covariance.fill(theta, X, out)
    mirror(out)
    return out


def rectangle(n: int, m: int) -> Array:
    """Return a matrix (n, m) of zeros, aligned to a cache line."""
    return aligned(n * m).reshape(n, m)


def blocks(count: int, size: int, limit: int) -> Iterator[slice]:
    """Yield slices of ``count`` points, each with at most ``limit`` covariances with ``size`` others (or one point)."""
    rows = max(limit // size, 1)
    yield from (slice(start, start + rows) for start in range(0, count, rows))


def columns(rows: Array) -> Array:
    """Return points (n, d) as a flat vector, input by input, each padded with zeros to ``padded(n)`` numbers."""
    out = aligned(rows.shape[1] * padded(len(rows)))
    out.reshape(rows.shape[1], -1)[:, : len(rows)] = rows.T
    return out


def like(X: Array, Z: Array | None) -> Array:
    """Allocate the matrix of X with Z, or of X with itself."""
    return square(len(X)) if Z is None else rectangle(len(X), len(Z))
