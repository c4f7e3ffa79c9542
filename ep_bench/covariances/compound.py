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
        (first, own_theta), *others = self._split(theta)
        first.fill(own_theta, X, out, Z)
        other = like(X, Z)
        for part, own_theta in others:
            part.fill(own_theta, X, other, Z)
            if Z is None:
                symmetric.add(out, other)
            else:
                out += other

    def diagonal(self, theta: Array, X: Array) -> Array:
        return np.asarray(sum(part.diagonal(own_theta, X) for part, own_theta in self._split(theta)))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        return np.concatenate([part.contract(own_theta, X, A, Z) for part, own_theta in self._split(theta)])

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        return np.concatenate([part.contract_diagonal(own_theta, X, a) for part, own_theta in self._split(theta)])

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        return _joined(part.contract_both(own_theta, X, A, Z) for part, own_theta in self._split(theta))


@dataclass(frozen=True)
class Product(_Compound):
    """k = k_1 k_2 ...; only the product of the magnitudes of several parts is identified by the data."""

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        (first, own_theta), *others = self._split(theta)
        first.fill(own_theta, X, out, Z)
        for part, own_theta in others:
            _multiply(out, part, own_theta, X, Z)

    def diagonal(self, theta: Array, X: Array) -> Array:
        return math.prod((part.diagonal(own_theta, X) for part, own_theta in self._split(theta)), start=np.ones(len(X)))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        parts = self._weighted(theta, X, A, Z)
        return np.concatenate([part.contract(own_theta, X, weights, Z) for part, own_theta, weights in parts])

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        pairs, gradients = list(self._split(theta)), []
        for at, (part, own_theta) in enumerate(pairs):
            rest = (other.diagonal(other_theta, X) for other, other_theta in (*pairs[:at], *pairs[at + 1 :]))
            gradients.append(part.contract_diagonal(own_theta, X, math.prod(rest, start=a)))
        return np.concatenate(gradients)

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        parts = self._weighted(theta, X, A, Z)
        return _joined(part.contract_both(own_theta, X, weights, Z) for part, own_theta, weights in parts)

    def _weighted(self, theta: Array, X: Array, A: Array, Z: Array | None) -> Iterator[tuple[Covariance, Array, Array]]:
        """Yield each part, its parameters, and A times the matrices of the other parts."""
        pairs = list(self._split(theta))
        for at, (part, own_theta) in enumerate(pairs):
            weights = like(X, Z)
            weights[...] = A
            for other, other_theta in (*pairs[:at], *pairs[at + 1 :]):
                _multiply(weights, other, other_theta, X, Z)
            yield part, own_theta, weights


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
