"""Sums and products of covariances. Their parameters are those of the parts, concatenated in order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ep_bench.covariances.protocol import Covariance, like
from ep_bench.numerics import symmetric
from ep_bench.types import Array


@dataclass(frozen=True)
class _Compound:
    """A covariance made of several parts."""

    parts: tuple[Covariance, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{number}.{name}" for number, part in enumerate(self.parts, start=1) for name in part.names)

    def _split(self, theta: Array) -> Iterator[tuple[Covariance, Array]]:
        """Yield each part with its parameters."""
        at = 0
        for part in self.parts:
            size = len(part.names)
            yield part, theta[at : at + size]
            at += size


@dataclass(frozen=True)
class Sum(_Compound):
    """k = k_1 + k_2 + ..., the covariance of a sum of independent functions."""

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        (first, share), *others = self._split(theta)
        first.fill(share, X, out, Z)
        other = like(X, Z)
        for part, share in others:
            part.fill(share, X, other, Z)
            if Z is None:
                symmetric.add(out, other)
            else:
                out += other

    def diagonal(self, theta: Array, X: Array) -> Array:
        return np.asarray(sum(part.diagonal(share, X) for part, share in self._split(theta)))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        return np.concatenate([part.contract(share, X, A, Z) for part, share in self._split(theta)])

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        return np.concatenate([part.contract_diagonal(share, X, a) for part, share in self._split(theta)])

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        return _joined(part.contract_both(share, X, A, Z) for part, share in self._split(theta))


@dataclass(frozen=True)
class Product(_Compound):
    """k = k_1 k_2 ...; only the product of the magnitudes of several parts is identified by the data."""

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        (first, share), *others = self._split(theta)
        first.fill(share, X, out, Z)
        for part, share in others:
            _multiply(out, part, share, X, Z)

    def diagonal(self, theta: Array, X: Array) -> Array:
        return math.prod((part.diagonal(share, X) for part, share in self._split(theta)), start=np.ones(len(X)))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        parts = self._weighted(theta, X, A, Z)
        return np.concatenate([part.contract(share, X, weights, Z) for part, share, weights in parts])

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        pairs, gradients = list(self._split(theta)), []
        for at, (part, share) in enumerate(pairs):
            rest = (other.diagonal(theirs, X) for other, theirs in (*pairs[:at], *pairs[at + 1 :]))
            gradients.append(part.contract_diagonal(share, X, math.prod(rest, start=a)))
        return np.concatenate(gradients)

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        parts = self._weighted(theta, X, A, Z)
        return _joined(part.contract_both(share, X, weights, Z) for part, share, weights in parts)

    def _weighted(self, theta: Array, X: Array, A: Array, Z: Array | None) -> Iterator[tuple[Covariance, Array, Array]]:
        """Yield each part, its parameters, and A times the matrices of the other parts."""
        pairs = list(self._split(theta))
        for at, (part, share) in enumerate(pairs):
            weights = like(X, Z)
            weights[...] = A
            for other, theirs in (*pairs[:at], *pairs[at + 1 :]):
                _multiply(weights, other, theirs, X, Z)
            yield part, share, weights


def _joined(found: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the concatenated derivatives by the parameters, and the sum of those by the inputs."""
    by_theta, by_inputs = zip(*found, strict=True)
    return np.concatenate(by_theta), np.asarray(sum(by_inputs))


def _multiply(out: Array, part: Covariance, theta: Array, X: Array, Z: Array | None) -> None:
    """Multiply a matrix, or its lower triangle if Z is None, elementwise by that of a part, in place."""
    other = like(X, Z)
    part.fill(theta, X, other, Z)
    if Z is None:
        symmetric.multiply(out, other)
    else:
        out *= other
