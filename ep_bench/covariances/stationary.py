"""Squared exponential and Matern covariances, with one lengthscale for all inputs or one per input (ARD).

s      squared distance sum_k (x_k - z_k)^2 / l_k^2
m      magnitude, the variance k(x, x)
se     m exp(-s / 2)                                      Jylanki et al. (2011), equation (2)
3/2    m (1 + r) exp(-r), r = sqrt(3 s)                   Rasmussen and Williams (2006), equation (4.17)
5/2    m (1 + r + r^2 / 3) exp(-r), r = sqrt(5 s)         the same

By the chain rule dk / dlog l_k = m f(s) (x_k - z_k)^2 / l_k^2 and dk / dz_k = m f(s) (x_k - z_k) / l_k^2 with
f = -2 dk / ds / m, here called the slope: exp(-s / 2), 3 exp(-r) and 5 / 3 (1 + r) exp(-r), all finite at s = 0.

Kernels take inputs divided by the lengthscales: P (n, d), and Q, the points of the other side as ``columns`` (a flat
vector of d times padded(m) numbers). A row of covariances is computed in registers, without a matrix of distances.
Differences are squared one by one, because an expansion into products would lose digits for near neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ep_bench.covariances.protocol import columns
from ep_bench.numerics.exponential import exponential
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import WIDTH, load, select_above, spread, square_root, store, total
from ep_bench.types import Array

Kind = Literal["se", "matern32", "matern52"]
SE, MATERN32, MATERN52 = 0, 1, 2
FAR = 138.0  # exp(-FAR) is 1e-60; smaller values are set to 0: subnormal numbers made a factorisation 30 times slower
KINDS = {"se": SE, "matern32": MATERN32, "matern52": MATERN52}


@dataclass(frozen=True)
class Stationary:
    """Parameters: the lengthscales, one per input, or a single one without ``ard``, and the magnitude."""

    kind: Kind
    d: int
    ard: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return ("lengthscale",) * (self.d if self.ard else 1) + ("magnitude",)

    def fill(self, theta: Array, X: Array, out: Array, Z: Array | None = None) -> None:
        P, Q = self._scaled(theta, X, Z)
        _fill(P, Q, KINDS[self.kind], float(np.exp(theta[-1])), Z is None, np.empty((2, len(Q) // self.d)), out)

    def diagonal(self, theta: Array, X: Array) -> Array:
        return np.full(len(X), np.exp(theta[-1]))

    def contract(self, theta: Array, X: Array, A: Array, Z: Array | None = None) -> Array:
        P, Q = self._scaled(theta, X, Z)
        gradient = np.zeros(self.d + 1)
        _contract(P, Q, KINDS[self.kind], Z is None, A, np.empty((3, len(Q) // self.d)), gradient)
        return self._pooled(theta, gradient)

    def contract_diagonal(self, theta: Array, X: Array, a: Array) -> Array:  # noqa: ARG002
        return np.append(np.zeros(len(theta) - 1), np.exp(theta[-1]) * a.sum())

    def contract_both(self, theta: Array, X: Array, A: Array, Z: Array) -> tuple[Array, Array]:
        P, Q = self._scaled(theta, X, Z)
        gradient, out = np.zeros(self.d + 1), np.zeros_like(Q)
        _contract_both(P, Q, KINDS[self.kind], A, np.empty((3, len(Q) // self.d)), gradient, out)
        by_inputs = out.reshape(self.d, -1)[:, : len(Z)].T * np.exp(theta[-1] - theta[:-1])
        return self._pooled(theta, gradient), by_inputs

    def _pooled(self, theta: Array, gradient: Array) -> Array:
        gradient = gradient * np.exp(theta[-1])
        return gradient if self.ard else np.array([gradient[:-1].sum(), gradient[-1]])

    def _scaled(self, theta: Array, X: Array, Z: Array | None) -> tuple[Array, Array]:
        inverse = np.exp(-theta[:-1])
        P = np.ascontiguousarray(X * inverse)
        return P, columns(P if Z is None else Z * inverse)


@jit(relaxed=FUSE)
def _fill(P: Any, Q: Any, kind: int, magnitude: float, lower: bool, work: Any, out: Any) -> None:
    """Write covariances (n, m), or their lower triangle, to ``out``; ``work`` (2, padded(m)) is scratch."""
    value, slope = work[0], work[1]
    for i in range(P.shape[0]):
        count, row = i + 1 if lower else out.shape[1], out[i]
        _profile(P[i], Q, kind, count, value, slope)
        for j in range(count):
            row[j] = magnitude * value[j]


@jit(relaxed=FUSE)
def _contract(P: Any, Q: Any, kind: int, lower: bool, A: Any, work: Any, gradient: Any) -> None:
    """Add to gradient (d + 1,) the sums of A_ij times the derivatives by the log lengthscales and by the magnitude.

    A is (n, m), ``work`` (3, padded(m)) is scratch.
    """
    value, slope, weight = work[0], work[1], work[2]
    factor = 2.0 if lower else 1.0
    for i in range(P.shape[0]):
        count, row = i + 1 if lower else A.shape[1], A[i]
        _profile(P[i], Q, kind, count, value, slope)
        for j in range(count):
            weight[j] = factor * row[j]
        if lower:
            weight[i] *= 0.5
        weight[count : padded_(count)] = 0.0
        gradient[-1] += _dot(weight, value, count)
        for j in range(count):
            weight[j] *= slope[j]
        _weigh_squares(P[i], Q, weight, count, gradient)


@jit(relaxed=FUSE)
def _contract_both(P: Any, Q: Any, kind: int, A: Any, work: Any, gradient: Any, out: Any) -> None:
    """Do as ``_contract``, and add the sums over i of A_ij f (p_i - q_j) to ``out``, which has the layout of Q."""
    value, slope, weight = work[0], work[1], work[2]
    count, width = A.shape[1], padded_(A.shape[1])
    weight[count:width] = 0.0
    for i in range(P.shape[0]):
        row, p = A[i], P[i]
        _profile(p, Q, kind, count, value, slope)
        for j in range(count):
            weight[j] = row[j]
        gradient[-1] += _dot(weight, value, count)
        for j in range(0, count, WIDTH):
            store(slope, j, load(slope, j) * load(weight, j))
        for k in range(p.size):
            at, x, s = k * width, p[k], spread(0.0)
            for j in range(0, count, WIDTH):
                t = x - load(Q, at + j)
                w = load(slope, j) * t
                s = s + w * t
                store(out, at + j, load(out, at + j) + w)
            gradient[k] += total(s)


@jit(relaxed=FUSE, inline=True)
def padded_(n: int) -> int:
    """Return n rounded up to whole registers."""
    return (n + WIDTH - 1) // WIDTH * WIDTH


@jit(relaxed=FUSE)
def _profile(p: Any, Q: Any, kind: int, count: int, value: Any, slope: Any) -> None:
    """Write k / m to value (padded(m),) and f to slope (padded(m),), of a point p (d,) with ``count`` points of Q."""
    if kind == SE:
        for j in range(0, count, WIDTH):
            k = _exp_minus(0.5 * _square(p, Q, value.size, j))
            store(value, j, k)
            store(slope, j, k)
    elif kind == MATERN32:
        for j in range(0, count, WIDTH):
            r = _clipped(square_root(3.0 * _square(p, Q, value.size, j)))
            e = _exp_minus(r)
            store(value, j, e + r * e)
            store(slope, j, 3.0 * e)
    else:
        for j in range(0, count, WIDTH):
            r = _clipped(square_root(5.0 * _square(p, Q, value.size, j)))
            e = _exp_minus(r)
            near = e + r * e
            store(value, j, near + (r * r) * (e * (1.0 / 3.0)))
            store(slope, j, near * (5.0 / 3.0))


@jit(relaxed=FUSE, inline=True)
def _square(p: Any, Q: Any, stride: int, j: int) -> Any:
    """Return the squared distances of p (d,) from WIDTH points, from the j-th on; ``stride`` is padded(m)."""
    s = spread(0.0)
    for k in range(p.size):
        t = load(Q, k * stride + j) - p[k]
        s = s + t * t
    return s


@jit(relaxed=FUSE, inline=True)
def _exp_minus(r: Any) -> Any:
    """Return exp(-r) of a register r, 0 beyond FAR."""
    return select_above(r, FAR, 0.0, exponential(-r))


@jit(relaxed=FUSE, inline=True)
def _clipped(r: Any) -> Any:
    """Return a register of distances with those beyond FAR set to 2 FAR, because 0 times infinity is NaN."""
    return select_above(r, FAR, 2.0 * FAR, r)


@jit(relaxed=FUSE, inline=True)
def _dot(a: Any, b: Any, count: int) -> float:
    """Return the inner product of the first ``count`` entries, rounded up to whole registers."""
    s = spread(0.0)
    for j in range(0, count, WIDTH):
        s = s + load(a, j) * load(b, j)
    return total(s)


@jit(relaxed=FUSE, inline=True)
def _weigh_squares(p: Any, Q: Any, weight: Any, count: int, gradient: Any) -> None:
    """Add the weighted squares of the differences to gradient (d + 1,); weights (padded(m),) beyond ``count`` are 0."""
    for k in range(p.size):
        at, x, s = k * weight.size, p[k], spread(0.0)
        for j in range(0, count, WIDTH):
            t = load(Q, at + j) - x
            s = s + load(weight, j) * (t * t)
        gradient[k] += total(s)
