"""The covariance of a network with infinitely many hidden units: Williams, Neural Computation 10 (1998), 1203.

Hidden units are erf(w_0 + sum_k w_k x_k) with independent Gaussian weights. w_0 has the variance ``bias_variance``, w_k
the ``weight_variance`` (one for all inputs, or one per input). The output weights give the magnitude m:

    k(x, z) = (2 m / pi) asin(2 u / sqrt(p q)),   u = x~' S z~,   p = 1 + 2 x~' S x~,   q = 1 + 2 z~' S z~,

x~ = (1, x) and S the diagonal of the variances: Williams' equation (11), Rasmussen and Williams (2006), equation
(4.29). The angle is computed as arctan(2 u / h), h^2 = p q - 4 u^2, since the arcsine loses half the digits where it is
steep. h^2 is the sum of 4 (x~'Sx~ z~'Sz~ - u^2), which is not negative, and p + q - 1. In the derivatives,

    dk / dlog S_k = (2 m / pi) / h (2 t_k v_k - 2 u (t_k^2 / p + v_k^2 / q)),   t = S^(1/2) x~,   v = S^(1/2) z~,

the last two terms need only sums over rows and columns; and dk / dv_k = (2 m / pi) / h (2 t_k - 4 u v_k / q).

Kernels take t as P (n, d + 1) and v as Q, ``columns`` of (m, d + 1), with their squares x~'Sx~ in p (n,) and q
(padded(m),).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ep_bench.covariances.protocol import columns
from ep_bench.numerics.arctangent import arctangent
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import WIDTH, load, padded, select_above, spread, square_root, store, total
from ep_bench.types import Array


@dataclass(frozen=True)
class NetworkCovariance:
    """Parameters: bias variance, weight variances (one per input, or a single one without ``ard``) and magnitude."""

    d: int
    ard: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return ("bias_variance", *("weight_variance",) * (self.d if self.ard else 1), "magnitude")

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        sides = _ScaledSides.of(self._scaled(theta, X), None if Z is None else self._scaled(theta, Z))
        scale = 2.0 / math.pi * float(np.exp(theta[-1]))
        _fill(sides.P, sides.Q, sides.p, sides.q, scale, Z is None, np.empty((2, len(sides.q))), out)

    def diagonal(self, theta: Array, X: Array) -> Array:
        twice = 2.0 * _squares(self._scaled(theta, X))
        return np.asarray(2.0 / math.pi * np.exp(theta[-1]) * np.arctan(twice / np.sqrt(1.0 + 2.0 * twice)))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        sides = _ScaledSides.of(self._scaled(theta, X), None if Z is None else self._scaled(theta, Z))
        return self._contracted(theta, sides, A, Z is None, np.zeros(0))[0]

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        sides = _ScaledSides.of(self._scaled(theta, X), self._scaled(theta, Z))
        out = np.zeros_like(sides.Q)
        gradient, ratios = self._contracted(theta, sides, A, False, out)
        by_scaled = 2.0 * (out - np.tile(ratios, self.d + 1) * sides.Q).reshape(self.d + 1, -1)[1:, : len(Z)]
        return gradient, 2.0 / math.pi * by_scaled.T * np.exp(theta[-1] + 0.5 * theta[1:-1])

    def _contracted(self, theta: Array, sides: _ScaledSides, A: Array, lower: bool, out: Array) -> tuple[Array, Array]:
        """Return the derivatives by the parameters, and the column sums (padded(m),) of 2 u A / h, divided by q."""
        gradient, by_column = np.zeros(self.d + 2), np.zeros(len(sides.q))
        _contract(*sides, lower, A, np.empty((3, len(sides.q))), by_column, gradient, out)
        ratios = by_column / (1.0 + 2.0 * sides.q)
        gradient[:-1] -= sides.Q.reshape(self.d + 1, -1) ** 2 @ ratios
        gradient *= 2.0 / math.pi * np.exp(theta[-1])
        return self._pooled(gradient), ratios

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:
        T = self._scaled(theta, X)
        twice = 2.0 * _squares(T)
        root = np.sqrt(1.0 + 2.0 * twice)
        angle = np.arctan(twice / root)
        # the derivative by log S_k at t = v
        by_variance = (2.0 * a / (root * (1.0 + twice))) @ T**2
        return self._pooled(2.0 / math.pi * np.exp(theta[-1]) * np.append(by_variance, a @ angle))

    def _scaled(self, theta: Array, X: Array) -> Array:
        """Return t (n, d + 1), with the bias first."""
        roots = np.exp(0.5 * theta[:-1])
        return np.column_stack([np.full(len(X), roots[0]), X * roots[1:]])

    def _pooled(self, gradient: Array) -> Array:
        if self.ard:
            return gradient
        return np.array([gradient[0], gradient[1:-1].sum(), gradient[-1]])


class _ScaledSides(NamedTuple):
    """The scaled points of both sides, with their squares, in the layout of the kernels."""

    P: Array  # (n, d + 1)
    Q: Array  # ((d + 1) * padded(m),)
    p: Array  # (n,)
    q: Array  # (padded(m),)

    @classmethod
    def of(cls, T: Array, V: Array | None) -> _ScaledSides:
        other = T if V is None else V
        q = np.zeros(padded(len(other)))
        q[: len(other)] = _squares(other)
        return cls(T, columns(other), _squares(T), q)


def _squares(T: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", T, T))


@jit(relaxed=FUSE)
def _fill(P: Any, Q: Any, p: Any, q: Any, scale: float, lower: bool, work: Any, out: Any) -> None:
    """Write covariances (n, m), or their lower triangle, to ``out``; ``work`` (2, padded(m)) is scratch."""
    twice, root = work[0], work[1]
    for i in range(P.shape[0]):
        count, row = i + 1 if lower else out.shape[1], out[i]
        _products(P[i], Q, p[i], q, count, twice, root)
        for j in range(0, count, WIDTH):
            store(root, j, arctangent(load(twice, j) / load(root, j)))
        for j in range(count):
            row[j] = scale * root[j]


@jit(relaxed=FUSE)
def _contract(
    P: Any, Q: Any, p: Any, q: Any, lower: bool, A: Any, work: Any, by_column: Any, gradient: Any, out: Any
) -> None:
    """Add the sums of A_ij times the derivatives, A (n, m), to gradient (d + 2,), for a magnitude of 1.

    The last entry gets the sum of A times the angles. The terms v_k^2 / q are left out; their weights are added to
    ``by_column`` (padded(m),). ``out``, empty or with the layout of Q, gets the sums over i of t_i A_ij / h_ij.
    ``work`` (3, padded(m)) is scratch.
    """
    twice, root, weight = work[0], work[1], work[2]
    factor = 2.0 if lower else 1.0
    for i in range(P.shape[0]):
        count, row = i + 1 if lower else A.shape[1], A[i]
        _products(P[i], Q, p[i], q, count, twice, root)
        for j in range(count):
            weight[j] = factor * row[j]
        if lower:
            weight[i] *= 0.5
        weight[count : (count + WIDTH - 1) // WIDTH * WIDTH] = 0.0
        angles, sums = spread(0.0), spread(0.0)
        for j in range(0, count, WIDTH):
            a, w, h = load(twice, j), load(weight, j), load(root, j)
            angles = angles + w * arctangent(a / h)
            w = w / h
            store(weight, j, w)
            w = w * a
            store(by_column, j, load(by_column, j) + w)
            sums = sums + w
        gradient[-1] += total(angles)
        _weigh_products(P[i], Q, weight, count, total(sums) / (1.0 + 2.0 * p[i]), gradient)
        for k in range(out.size // weight.size):
            t = P[i, k]
            for j in range(0, count, WIDTH):
                at = k * weight.size + j
                store(out, at, load(out, at) + load(weight, j) * t)


@jit(relaxed=FUSE, inline=True)
def _products(t: Any, Q: Any, p: float, q: Any, count: int, twice: Any, root: Any) -> None:
    """Write 2 u to twice (padded(m),) and h to root (padded(m),), of t (d + 1,) with ``count`` points of Q."""
    for j in range(0, count, WIDTH):
        u, other = spread(0.0), load(q, j)
        for k in range(t.size):
            u = u + load(Q, k * q.size + j) * t[k]
        gap = other * p - u * u
        gap = select_above(gap, 0.0, gap, 0.0)
        store(twice, j, u + u)
        store(root, j, square_root(4.0 * gap + (2.0 * (other + p) + 1.0)))


@jit(relaxed=FUSE, inline=True)
def _weigh_products(t: Any, Q: Any, weight: Any, count: int, by_row: float, gradient: Any) -> None:
    """Add 2 t_k sum_j w_j v_jk - t_k^2 by_row to gradient (d + 2,); weights (padded(m),) beyond ``count`` are 0."""
    for k in range(t.size):
        at, s = k * weight.size, spread(0.0)
        for j in range(0, count, WIDTH):
            s = s + load(weight, j) * load(Q, at + j)
        gradient[k] += t[k] * (2.0 * total(s) - t[k] * by_row)
