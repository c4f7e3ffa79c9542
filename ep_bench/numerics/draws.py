"""Standard normal numbers inside compiled loops, many at a time.

Sixty-four independent xoshiro256++ generators (Blackman and Vigna 2021) advance side by side, and a Box-Muller
transform turns their words into normals, with polynomials for the logarithm, the sine and the cosine (their errors are
below 1e-11), so that every loop becomes vector instructions. Engines that draw a network's weights anew at each step
spend much of their time on this. The uniform number under the logarithm has 52 bits: no draw lies beyond 8.5.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.numerics.jit import FUSE, jit

LANES = 64
Stream = NDArray[np.uint64]  # (8 * LANES,): four words of state a lane, then scratch

_EXPONENT_OF_ONE = 0x3FF0000000000000
_BITS_OF_THREE_QUARTERS = 0x3FE8000000000000
_LOG_2 = math.log(2.0)
_HALF_PI = 0.5 * math.pi


def stream(rng: np.random.Generator) -> Stream:
    """Return a stream of normals for ``fill_normals``, seeded by a generator."""
    words = np.zeros(8 * LANES, dtype=np.uint64)
    words[: 4 * LANES] = rng.integers(0, 2**64, size=4 * LANES, dtype=np.uint64)
    return words


@jit(relaxed=FUSE)
def fill_normals(words: Any, out: Any) -> None:
    """Fill a contiguous vector with standard normal numbers and advance the stream."""
    reals = words.view(np.float64)
    for start in range(0, out.size, 2 * LANES):
        _advance(words, 4 * LANES)
        _advance(words, 5 * LANES)
        _radii(words)
        _turn(words)
        count = min(out.size - start, 2 * LANES)
        for i in range(count):
            out[start + i] = reals[6 * LANES + i]


@jit(inline=True)
def _advance(words: Any, to: int) -> None:
    """Write one word of every lane's generator to words[to:]."""
    for i in range(LANES):
        a, b, c, d = words[i], words[LANES + i], words[2 * LANES + i], words[3 * LANES + i]
        sums = a + d
        words[to + i] = ((sums << np.uint64(23)) | (sums >> np.uint64(41))) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        words[LANES + i] = b ^ c
        words[i] = a ^ d
        words[2 * LANES + i] = c ^ shifted
        words[3 * LANES + i] = (d << np.uint64(45)) | (d >> np.uint64(19))


@jit(relaxed=FUSE, inline=True)
def _radii(words: Any) -> None:
    """Turn the first words into sqrt(-2 log u), u uniform in (0, 1], at 7 * LANES."""
    reals, whole = words.view(np.float64), words.view(np.int64)
    for i in range(LANES):
        words[6 * LANES + i] = (words[4 * LANES + i] >> np.uint64(12)) | np.uint64(_EXPONENT_OF_ONE)
    for i in range(LANES):
        reals[6 * LANES + i] = 2.0 - reals[6 * LANES + i]
    for i in range(LANES):  # u = 2^k m, m in [0.75, 1.5)
        k = (whole[6 * LANES + i] - np.int64(_BITS_OF_THREE_QUARTERS)) >> np.int64(52)
        whole[6 * LANES + i] -= k << np.int64(52)
        reals[7 * LANES + i] = np.float64(k)
    for i in range(LANES):  # log m = 2 artanh((m - 1) / (m + 1)), |.| at most 1 / 5
        m = reals[6 * LANES + i]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 2.0 / 15.0
        p = 2.0 / 13.0 + z * p
        p = 2.0 / 11.0 + z * p
        p = 2.0 / 9.0 + z * p
        p = 2.0 / 7.0 + z * p
        p = 2.0 / 5.0 + z * p
        p = 2.0 / 3.0 + z * p
        log = reals[7 * LANES + i] * _LOG_2 + (2.0 * s + s * (z * p))
        reals[7 * LANES + i] = math.sqrt(-2.0 * log)


@jit(relaxed=FUSE, inline=True)
def _turn(words: Any) -> None:
    """Give each radius a direction uniform on the circle: the normals at 6 * LANES and 7 * LANES.

    The upper 52 bits of the second words are an angle within an eighth of a turn of 0; two more bits choose whether
    cosine and sine change places and whether both change their sign.
    """
    reals, whole = words.view(np.float64), words.view(np.int64)
    for i in range(LANES):
        bits = whole[5 * LANES + i]
        x = (np.float64(bits >> np.int64(12)) + 0.5) * (2.0**-52 * _HALF_PI)
        z = x * x
        p = -1.0 / 39916800.0
        p = 1.0 / 362880.0 + z * p
        p = -1.0 / 5040.0 + z * p
        p = 1.0 / 120.0 + z * p
        p = -1.0 / 6.0 + z * p
        sine = x + x * (z * p)
        q = 1.0 / 479001600.0
        q = -1.0 / 3628800.0 + z * q
        q = 1.0 / 40320.0 + z * q
        q = -1.0 / 720.0 + z * q
        q = 1.0 / 24.0 + z * q
        q = -0.5 + z * q
        cosine = 1.0 + z * q
        radius = reals[7 * LANES + i] * (1.0 - np.float64(bits & np.int64(2)))
        exchanged = (bits & np.int64(1)) != 0
        reals[6 * LANES + i] = radius * (cosine if exchanged else sine)
        reals[7 * LANES + i] = radius * (sine if exchanged else cosine)


@jit(relaxed=FUSE)
def fill_masks(words: Any, rate: float, out: Any) -> None:
    """Fill a contiguous vector with masks: 0 with probability ``rate``, else 1 / (1 - rate)."""
    kept = 1.0 / (1.0 - rate)
    bound = np.uint64(rate * 2.0**53)
    for start in range(0, out.size, LANES):
        _advance(words, 4 * LANES)
        for i in range(min(out.size - start, LANES)):
            out[start + i] = 0.0 if (words[4 * LANES + i] >> np.uint64(11)) < bound else kept
