"""Moment-matching update of a gamma distribution by one Gaussian residual of unknown precision.

Hernandez-Lobato and Adams (2015), equations (9) and (10): with Z_k = N(residual | 0, s_k), s_k = v + b / (a - 1 + k),

    a_new = [Z Z_2 Z_1^-2 (a + 1) / a - 1]^-1
    b_new = [Z_2 Z_1^-1 (a + 1) / b - Z_1 Z^-1 a / b]^-1

For large a, both are small differences of numbers near 1 and lose as many digits as a has. With rho = Z Z_2 / Z_1^2,
q = Z_1 / Z and D = 1 + (a + 1) (rho - 1), they are a_new = a / D and b_new = b / (q D). The differences s_0 - s_1 and
s_1 - s_2 have closed forms and give rho - 1 without cancellation.
"""

from __future__ import annotations

import math

from ep_bench.numerics.jit import FUSE, jit

NEAR_0 = 0.3  # range of the series
# 1 / n! for n = 2, 3, ...
SERIES = tuple(1.0 / math.factorial(n) for n in range(2, 13))


@jit(relaxed=FUSE, inline=True)
def expm1_series(x: float) -> float:
    """Return exp(x) - 1 for |x| < NEAR_0 by its series, without a function call."""
    c = SERIES
    xx = x * x
    even = (((((c[10] * xx + c[8]) * xx + c[6]) * xx + c[4]) * xx) + c[2]) * xx + c[0]
    odd = (((c[9] * xx + c[7]) * xx + c[5]) * xx + c[3]) * xx + c[1]
    return (odd * x + even) * xx + x


@jit(relaxed=FUSE, inline=True)
def gamma_update(a: float, b: float, variance: float, square: float) -> tuple[float, float]:
    """Return the updated shape and rate.

    Parameters
    ----------
    a, b : shape and rate of the precision's distribution before the update, a > 1
    variance : v, variance of the mean of the residual
    square : the squared residual
    """
    unit = b / (a * (a * a - 1.0))
    d0, d2 = unit * (a + 1.0), unit * (a - 1.0)  # s_0 - s_1, s_1 - s_2
    s1 = variance + unit * (a * a - 1.0)
    s0, s2 = s1 + d0, s1 - d2
    inverse = 1.0 / (s0 * s1 * s2)
    i0, i1 = s1 * s2 * inverse, s0 * s2 * inverse  # 1 / s_0, 1 / s_1
    first, second = 2.0 * unit * s1, d0 * d2  # s_1 (s_0 + s_2 - 2 s_1), (s_0 - s_1) (s_1 - s_2)
    delta = (first - second) * i1 * i1  # s_0 s_2 / s_1^2 - 1
    root = math.sqrt(1.0 + delta)
    scale_part = -delta / (root * (1.0 + root))  # s_1 / sqrt(s_0 s_2) - 1
    x = 0.5 * square * (first - 2.0 * second) * inverse
    residual_part = expm1_series(x) if abs(x) < NEAR_0 else math.expm1(x)
    rho_minus_1 = scale_part + residual_part + scale_part * residual_part
    d = 1.0 + (a + 1.0) * rho_minus_1
    x = -0.5 * square * d0 * i0 * i1
    q = math.sqrt(s0 * i1) * (1.0 + expm1_series(x) if abs(x) < NEAR_0 else math.exp(x))
    over = 1.0 / (q * d)
    return a * q * over, b * over
