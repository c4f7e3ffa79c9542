"""The exponential in registers, and of whole vectors."""

from __future__ import annotations

import math
from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import MAGIC, WIDTH, load, power_of_two, select_above, store

LOWEST, HIGHEST = -708.0, 709.0  # where exp is a normal double; what lies beyond, and NaN, is taken to be at the end
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # their sum is log 2, the first has 33 bits
_INVERSE_LOG_2 = 1.0 / math.log(2.0)


@jit(relaxed=FUSE)
def fill_exponentials(x: Any, out: Any) -> None:
    """Write exp(x) for vectors (n,), to 2 units in the last place."""
    whole = x.size - x.size % WIDTH
    for i in range(0, whole, WIDTH):
        store(out, i, exponential(load(x, i)))
    for i in range(whole, x.size):
        known = x[i] > LOWEST  # not so of NaN
        out[i] = math.exp(min(x[i], HIGHEST)) if known else math.exp(LOWEST)


@jit(relaxed=FUSE)
def fill_excesses(x: Any, out: Any) -> None:
    """Write exp(x) - 1 for vectors (n,), to a few units in the last place of the greater of 1 and the result.

    Near 0 it keeps its digits, but for the vector's last few, which are ``math.expm1``'s.
    """
    whole = x.size - x.size % WIDTH
    for i in range(0, whole, WIDTH):
        scale, rest = _halves(load(x, i))
        store(out, i, scale * rest + (scale - 1.0))
    for i in range(whole, x.size):
        known = x[i] > LOWEST  # not so of NaN
        out[i] = math.expm1(min(x[i], HIGHEST)) if known else -1.0


@jit(relaxed=FUSE, inline=True)
def exponential(x: Any) -> Any:
    """Return exp(x) for lanes or a float."""
    scale, rest = _halves(x)
    return (1.0 + rest) * scale


@jit(relaxed=FUSE, inline=True)
def _halves(x: Any) -> Any:
    """Return 2^k and exp(r) - 1 of x = k log 2 + r, |r| at most log(2) / 2, the latter by its series."""
    x = select_above(x, LOWEST, x, LOWEST)
    x = select_above(x, HIGHEST, HIGHEST, x)
    shifted = x * _INVERSE_LOG_2 + MAGIC
    k = shifted - MAGIC
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    p = 1.0 / 39916800.0 + r * p
    p = 1.0 / 3628800.0 + r * p
    p = 1.0 / 362880.0 + r * p
    p = 1.0 / 40320.0 + r * p
    p = 1.0 / 5040.0 + r * p
    p = 1.0 / 720.0 + r * p
    p = 1.0 / 120.0 + r * p
    p = 1.0 / 24.0 + r * p
    p = 1.0 / 6.0 + r * p
    p = 0.5 + r * p
    return power_of_two(shifted), r + (r * r) * p
