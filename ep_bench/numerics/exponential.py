"""The exponential function in vector registers, and of whole arrays."""

from __future__ import annotations

import math
from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import MAGIC, WIDTH, load, power_of_two, select_above, store

LOWEST, HIGHEST = -708.0, 709.0  # range in which exp is a normal double; arguments are clipped, NaN becomes LOWEST
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # their sum is log 2; the first has 33 bits
_INVERSE_LOG_2 = 1.0 / math.log(2.0)


@jit(relaxed=FUSE)
def fill_exponentials(x: Any, out: Any) -> None:
    """Write exp(x) to ``out``, both (n,), accurate to 2 units in the last place."""
    whole = x.size - x.size % WIDTH
    for i in range(0, whole, WIDTH):
        store(out, i, exponential(load(x, i)))
    for i in range(whole, x.size):
        in_range = x[i] > LOWEST  # False for NaN
        out[i] = math.exp(min(x[i], HIGHEST)) if in_range else math.exp(LOWEST)


@jit(relaxed=FUSE)
def fill_excesses(x: Any, out: Any) -> None:
    """Write exp(x) - 1 to ``out``, both (n,).

    The error is a few units in the last place of the larger of 1 and the result. The last n modulo WIDTH elements are
    computed by ``math.expm1``, which is also accurate near 0.
    """
    whole = x.size - x.size % WIDTH
    for i in range(0, whole, WIDTH):
        scale, rest = _scale_and_excess(load(x, i))
        store(out, i, scale * rest + (scale - 1.0))
    for i in range(whole, x.size):
        in_range = x[i] > LOWEST  # False for NaN
        out[i] = math.expm1(min(x[i], HIGHEST)) if in_range else -1.0


@jit(relaxed=FUSE, inline=True)
def exponential(x: Any) -> Any:
    """Return exp(x) of a vector or a float."""
    scale, rest = _scale_and_excess(x)
    return (1.0 + rest) * scale


@jit(relaxed=FUSE, inline=True)
def _scale_and_excess(x: Any) -> Any:
    """Return 2^k and the series of exp(r) - 1 for x = k log 2 + r, |r| at most log(2) / 2; a vector or a float."""
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
