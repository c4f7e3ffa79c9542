"""Moments of a rectified Gaussian and their derivatives, for vectors and floats.

With a ~ N(m, v), alpha = m / sqrt(v), t = |alpha|, T = Phi(-t) and the overshoot e = phi(t) - t T, the moments of
max(a, 0) are, for either sign of alpha,

    mean      max(m, 0) + sqrt(v) e
    variance  v (Phi(alpha) - e (t + e))

These are equations (15) and (16) of Hernandez-Lobato and Adams (2015), without their ratio gamma = phi / Phi, which
needs a separate formula in the far tail. From d/dv E[f(a)] = E[f''(a)] / 2 the derivatives are

    d mean / dm      Phi(alpha)             d mean / dv      phi(alpha) / (2 sqrt(v))
    d variance / dm  2 mean Phi(-alpha)     d variance / dv  Phi(alpha) - mean phi(alpha) / sqrt(v)
"""

from __future__ import annotations

from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.normal import SHIFT, normal_tail
from ep_bench.numerics.simd.vector import absolute, select_above, square_root


@jit(relaxed=FUSE, inline=True)
def relu_scales(m: Any, v: Any) -> Any:
    """Return sqrt(v), 1 / sqrt(v) and 1 / (|alpha| + SHIFT) by one square root and one division; v > 0."""
    root = square_root(v)
    reach = absolute(m) + SHIFT * root
    inverse = 1.0 / (root * reach)
    return root, inverse * reach, inverse * v


@jit(relaxed=FUSE, inline=True)
def relu_moments(m: Any, v: Any, scales: Any) -> Any:
    """Return mean and variance of max(a, 0), a ~ N(m, v), and their derivatives; ``scales`` are ``relu_scales(m, v)``.

    The order is mean, variance, d mean / dm, d mean / dv, d variance / dm, d variance / dv; each a vector or a float.
    """
    root, inverse, shifted = scales
    alpha = m * inverse
    t = absolute(alpha)
    density, tail, overshoot = normal_tail(t, shifted)
    complement = 1.0 - tail
    cdf = select_above(alpha, 0.0, complement, tail)  # Phi(alpha)
    upper_tail = select_above(alpha, 0.0, tail, complement)  # Phi(-alpha)
    mean = 0.5 * (m + absolute(m)) + root * overshoot
    variance = v * (cdf - overshoot * (t + overshoot))
    density_by_sd = density * inverse
    return mean, variance, cdf, 0.5 * density_by_sd, 2.0 * (mean * upper_tail), cdf - mean * density_by_sd
