"""The standard normal's density phi and upper tail without a branch, for floats and for lanes.

Everything rests on Mills' ratio R(t) = Phi(-t) / phi(t), t >= 0, which falls slowly from sqrt(pi / 2) to 1 / t, so that one
polynomial serves the whole line: (t + 5) R(t) in the variable that runs linearly in 1 / (t + 5). Beyond t = 38,
where the polynomial ends, phi(t) is below the smallest double. The coefficients are made in decimal arithmetic by
``tests/numerics/mills_table.py``.
"""

from __future__ import annotations

from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.lanes import MAGIC, power_of_two, select_above

# (t + SHIFT) R(t) in powers of x = FIRST + SLOPE / (t + SHIFT), which is -1 at t = 0 and 1 at t = 38.
SHIFT = 5.0
FIRST = 1.0 + 2.0 / 43.0 / (1.0 / 5.0 - 1.0 / 43.0)
SLOPE = -2.0 / (1.0 / 5.0 - 1.0 / 43.0)
MILLS = (
    2.1401207940171703,
    -1.7597034788818524,
    1.2121548379946891,
    -0.6925091086000628,
    0.32039986862026093,
    -0.11401859099308674,
    0.027288298015530173,
    -0.0020870038187254416,
    -0.0012960148044105593,
    0.00047116018426707456,
    1.230140243735537e-05,
    -4.335862841334522e-05,
    4.340615259564427e-06,
    3.849312638377934e-06,
    -6.921096309964004e-07,
    -3.8818826441552894e-07,
    8.08761357760366e-08,
    4.508655053858525e-08,
    -7.960239879280744e-09,
    -5.2207922856684466e-09,
    5.903982968933449e-10,
    4.0542941032373484e-10,
    -2.2410782704638172e-11,
)

# exp(r) / sqrt(2 pi) in powers of r, |r| <= log(2) / 2; log(2) in two parts, the first with 32 bits.
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
SMALLEST = -708.0  # exp of it is still a normal double


@jit(relaxed=FUSE, inline=True)
def normal_density(t: Any) -> Any:
    """Return phi(t); 0 where it is below the smallest normal double, so that no denormal slows a kernel down."""
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
def normal_tail(t: Any) -> Any:
    """Return phi(t), Phi(-t) and the overshoot phi(t) - t Phi(-t) = E[max(w - t, 0)], w ~ N(0, 1), for t >= 0.

    The first two are good to a few units of rounding times 1 + t^2 (the rounding of t^2 in the exponent), the
    overshoot, a small difference, to 1 + t^2 of them more.
    """
    density = normal_density(t)
    inverse = 1.0 / (t + SHIFT)
    x = inverse * SLOPE + FIRST
    xx = x * x
    c = MILLS
    even = (((((c[22] * xx + c[20]) * xx + c[18]) * xx + c[16]) * xx + c[14]) * xx + c[12]) * xx + c[10]
    even = ((((even * xx + c[8]) * xx + c[6]) * xx + c[4]) * xx + c[2]) * xx + c[0]
    odd = ((((c[21] * xx + c[19]) * xx + c[17]) * xx + c[15]) * xx + c[13]) * xx + c[11]
    odd = ((((odd * xx + c[9]) * xx + c[7]) * xx + c[5]) * xx + c[3]) * xx + c[1]
    ratio = (odd * x + even) * inverse
    return density, density * ratio, density * (1.0 - t * ratio)
