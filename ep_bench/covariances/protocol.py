"""What every covariance function can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ep_bench.numerics.simd.vector import aligned, padded
from ep_bench.numerics.symmetric import mirror, square
from ep_bench.types import Array


class Covariance(Protocol):
    """A covariance function k of rows of d inputs.

    ``theta`` (P,) holds the logarithms of its parameters. Where ``Z`` is None, matrices are those of the rows X (n, d)
    with themselves, symmetric and given by their lower triangle (``numerics.symmetric``); else they are (n, m), of the
    rows X with the rows Z (m, d).
    """

    @property
    def names(self) -> tuple[str, ...]:
        """What each parameter is: lengthscale, magnitude (a variance), bias_variance or weight_variance.

        Those of a sum's or product's parts have the part's number in front: 2.lengthscale.
        """

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        """Write the covariances k(x_i, z_j) to ``out``, a contiguous matrix."""

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Return k(x_i, x_i) (n,)."""

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        """Return sum_ij A_ij dk(x_i, z_j) / dtheta (P,), for a symmetric A the sum over both triangles."""

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        """Return sum_i a_i dk(x_i, x_i) / dtheta (P,), a (n,)."""

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        """Return what ``contract`` does, and sum_i A_ij dk(x_i, z_j) / dz_j (m, d); A (n, m) is contiguous."""


def matrix(covariance: Covariance, theta: Array, X: Array, Z: Array | None = None) -> Array:
    """Return the matrix (n, m) of rows X (n, d) with rows Z (m, d), by default (n, n) of X with itself, in full."""
    if Z is not None:
        out = rectangle(len(X), len(Z))
        covariance.fill(theta, X, out, Z)
        return out
    out = square(len(X))
    covariance.fill(theta, X, out)
    mirror(out)
    return out


def rectangle(n: int, m: int) -> Array:
    """Return a matrix (n, m) of zeros from a cache line on."""
    return aligned(n * m).reshape(n, m)


def blocks(count: int, size: int, most: int) -> Iterator[slice]:
    """Yield slices of ``count`` rows with at most ``most`` covariances with ``size`` others, or single ones."""
    rows = max(most // size, 1)
    yield from (slice(start, start + rows) for start in range(0, count, rows))


def columns(rows: Array) -> Array:
    """Return rows (n, d) input by input, each of ``padded(n)`` numbers, the last ones 0: a flat vector."""
    out = aligned(rows.shape[1] * padded(len(rows)))
    out.reshape(rows.shape[1], -1)[:, : len(rows)] = rows.T
    return out


def like(X: Array, Z: Array | None) -> Array:
    """Return room for the matrix of X with Z."""
    return square(len(X)) if Z is None else rectangle(len(X), len(Z))
