"""Density, upper tail and log distribution function of the standard normal distribution.

Density and tail are for vectors and floats and have no branches. Both use Mills' ratio R(t) = Phi(-t) / phi(t), t >= 0,
which decreases from sqrt(pi / 2) towards 1 / t. One polynomial approximates (t + 5) R(t) for all t, in a variable that
is linear in 1 / (t + 5). It ends at t = 38, where phi(t) is below the smallest normal double.
``tests/numerics/mills_table.py`` computes the coefficients in decimal arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import MAGIC, power_of_two, select_above

# Coefficients of (t + SHIFT) R(t) in x = FIRST + SLOPE / (t + SHIFT), which is -1 at t = 0 and 1 at t = 38.
SHIFT = 5.0
FIRST = 1.0 + 2.0 / 43.0 / (1.0 / 5.0 - 1.0 / 43.0)
SLOPE = -2.0 / (1.0 / 5.0 - 1.0 / 43.0)
MILLS = (
    2.1401207940171703,
    -1.7597034788818606,
    1.2121548379946896,
    -0.6925091085994522,
    0.32039986862022907,
    -0.1140185910062112,
    0.027288298016222585,
    -0.0020870036892399225,
    -0.0012960148113058823,
    0.00047115948164879747,
    1.2301440147952693e-05,
    -4.335633558349398e-05,
    4.340491372147137e-06,
    3.844621267254931e-06,
    -6.91854672177534e-07,
    -3.8212532509523814e-07,
    8.054496805539543e-08,
    4.0281357085225696e-08,
    -7.696602124823252e-09,
    -3.0889127100391717e-09,
    4.729698308896745e-10,
)

# Coefficients of exp(r) / sqrt(2 pi) in r, |r| <= log(2) / 2; log(2) is split, and the first part has 32 bits.
DENSITY = (
    0.3989422804014327,
    0.3989422804014327,
    0.19947114020071707,
    0.0664903800669055,
    0.016622595016655122,
    0.003324519003339794,
    0.0005540865030878721,
    7.91552145599568e-05,
    9.894361175663156e-06,
    1.0993748533629565e-06,
    1.102382827111005e-07,
    1.001745566348892e-08,
)
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
SMALLEST = -708.0  # its exponential is still a normal double
TAIL = 37.0  # standard deviations beyond which log Phi is computed from its asymptotic series


@jit(relaxed=FUSE, inline=True)
def normal_density(t: Any) -> Any:
    """Return phi(t) of a vector or a float; 0 below the smallest normal double, because denormals are slow."""
    y = -0.5 * (t * t)
    shifted = y * LOG2_E + MAGIC
    k = shifted - MAGIC
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    rr = r * r
    c = DENSITY
    even = ((((c[10] * rr + c[8]) * rr + c[6]) * rr + c[4]) * rr + c[2]) * rr + c[0]
    odd = ((((c[11] * rr + c[9]) * rr + c[7]) * rr + c[5]) * rr + c[3]) * rr + c[1]
    return select_above(y, SMALLEST, (odd * r + even) * power_of_two(shifted), 0.0)


@jit(relaxed=FUSE, inline=True)
def normal_tail(t: Any, inverse: Any) -> Any:
    """Return phi(t), Phi(-t) and the overshoot phi(t) - t Phi(-t) = E[max(w - t, 0)], w ~ N(0, 1).

    The arguments are t >= 0 and ``inverse`` = 1 / (t + SHIFT), both vectors or floats; callers can combine the division
    with others. The relative error of phi and Phi is a few units of rounding times 1 + t^2, from the rounding of t^2 in
    the exponent. The error of the overshoot, a small difference, is larger by another factor 1 + t^2.
    """
    density = normal_density(t)
    x = inverse * SLOPE + FIRST
    xx = x * x
    c = MILLS
    even = ((((c[20] * xx + c[18]) * xx + c[16]) * xx + c[14]) * xx + c[12]) * xx + c[10]
    even = ((((even * xx + c[8]) * xx + c[6]) * xx + c[4]) * xx + c[2]) * xx + c[0]
    odd = (((c[19] * xx + c[17]) * xx + c[15]) * xx + c[13]) * xx + c[11]
    odd = ((((odd * xx + c[9]) * xx + c[7]) * xx + c[5]) * xx + c[3]) * xx + c[1]
    ratio = (odd * x + even) * inverse
    return density, density * ratio, density * (1.0 - t * ratio)


@jit()
def log_normal_cdf(z: float) -> tuple[float, float]:
    """Return log Phi(z), the log-likelihood of a probit model, and its derivative, accurate in both tails."""
    if z > -TAIL:
        cdf = 0.5 * math.erfc(-z * math.sqrt(0.5))
        log_cdf = math.log(cdf) if z < 0.0 else math.log1p(-0.5 * math.erfc(z * math.sqrt(0.5)))
        return log_cdf, math.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * cdf)
    # Mills' ratio Phi(z) / phi(z) = (1 - 1 / z^2 + 3 / z^4 - 15 / z^6 ...) / |z|
    w = 1.0 / (z * z)
    ratio = (1.0 - w * (1.0 - w * (3.0 - w * (15.0 - w * 105.0)))) / -z
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) + math.log(ratio), 1.0 / ratio
