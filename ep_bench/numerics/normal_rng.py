"""Standard normal random numbers inside compiled loops, many at a time.

Sixty-four independent xoshiro256++ generators (Blackman and Vigna 2021), one per lane, advance in parallel. A
Box-Muller transform converts their words to normal numbers, with polynomials for the logarithm, the sine and the cosine
(errors below 1e-11), so every loop compiles to vector instructions. Several advances are transformed together, because
data should have left the processor's store buffer before a loop reads them in wider pieces.

The uniform number under the logarithm has 52 bits, so no absolute value exceeds 8.5.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import WIDTH, aligned, load, select_above, square_root, store

LANES = 64
TOGETHER = 4 * LANES  # number of pairs that are transformed together
Stream = NDArray[np.uint64]  # (4 * LANES + 4 * TOGETHER,): four words of state per lane, then scratch

_EXPONENT_OF_ONE = 0x3FF0000000000000
_BITS_OF_THREE_QUARTERS = 0x3FE8000000000000
_LOG_2 = math.log(2.0)
_HALF_PI = 0.5 * math.pi


def stream(rng: np.random.Generator) -> Stream:
    """Return a stream for ``fill_normals`` and ``fill_masks``, seeded by ``rng``."""
    words: Stream = aligned(4 * LANES + 4 * TOGETHER).view(np.uint64)
    words[: 4 * LANES] = rng.integers(0, 2**64, size=4 * LANES, dtype=np.uint64)
    return words


@jit(relaxed=FUSE)
def fill_normals(words: Any, out: Any) -> None:
    """Fill the contiguous array ``out`` (n,) with standard normal numbers, and advance the stream ``words``."""
    scratch = words[4 * LANES :]
    first, second = scratch[:TOGETHER], scratch[TOGETHER : 2 * TOGETHER]
    reals = scratch.view(np.float64)
    mantissa, radius, swap = reals[:TOGETHER], reals[2 * TOGETHER : 3 * TOGETHER], reals[3 * TOGETHER :]
    for start in range(0, out.size, 2 * TOGETHER):
        left = out.size - start
        for at in range(0, min(TOGETHER, (left + 1) // 2), LANES):
            _advance(words, first[at : at + LANES])
            _advance(words, second[at : at + LANES])
        _split(first, radius)
        _radii(mantissa, radius)
        _angles(second, mantissa, radius, swap)
        if left >= 2 * TOGETHER:
            _write_pairs(mantissa, swap, radius, out, start)
        else:
            remainder = np.empty(2 * TOGETHER)
            _write_pairs(mantissa, swap, radius, remainder, 0)
            for i in range(left):
                out[start + i] = remainder[i]


@jit(inline=True)
def _advance(words: Any, out: Any) -> None:
    """Write one word per lane to ``out`` (LANES,), and advance the state in ``words``."""
    for i in range(LANES):
        a, b, c, d = words[i], words[LANES + i], words[2 * LANES + i], words[3 * LANES + i]
        sums = a + d
        out[i] = ((sums << np.uint64(23)) | (sums >> np.uint64(41))) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        words[LANES + i] = b ^ c
        words[i] = a ^ d
        words[2 * LANES + i] = c ^ shifted
        words[3 * LANES + i] = (d << np.uint64(45)) | (d >> np.uint64(19))


@jit(relaxed=FUSE, inline=True)
def _split(words: Any, power: Any) -> None:
    """Convert words (TOGETHER,) to u = 2^k m, uniform in (0, 1], m in [0.75, 1.5): m in place, k to ``power``."""
    reals, whole = words.view(np.float64), words.view(np.int64)
    for i in range(TOGETHER):
        words[i] = (words[i] >> np.uint64(12)) | np.uint64(_EXPONENT_OF_ONE)
    for i in range(TOGETHER):
        reals[i] = 2.0 - reals[i]
    for i in range(TOGETHER):
        k = (whole[i] - np.int64(_BITS_OF_THREE_QUARTERS)) >> np.int64(52)
        whole[i] -= k << np.int64(52)
        power[i] = np.float64(k)


@jit(relaxed=FUSE, inline=True)
def _radii(mantissa: Any, radius: Any) -> None:
    """Replace k in ``radius`` by sqrt(-2 log u); both arrays are (TOGETHER,).

    log(1 + t) = t + t^2 p(t), where p interpolates at the 15 Chebyshev points of [-0.25, 0.5]. The relative error of
    the logarithm is below 2e-13. A division would take as long as the polynomial and the root together.
    """
    for i in range(0, TOGETHER, WIDTH):
        t = load(mantissa, i) - 1.0
        p = 0.0513496952843302 - 0.017432526282395826 * t
        p = -0.07448352837513256 + t * p
        p = 0.08071722411334739 + t * p
        p = -0.08392117640693124 + t * p
        p = 0.090665651294449 + t * p
        p = -0.09992700119482563 + t * p
        p = 0.11111626747265677 + t * p
        p = -0.12500303497397466 + t * p
        p = 0.14285715662909387 + t * p
        p = -0.16666661298052993 + t * p
        p = 0.19999999873305893 + t * p
        p = -0.25000000034853587 + t * p
        p = 0.33333333333946674 + t * p
        p = -0.49999999999962275 + t * p
        log = load(radius, i) * _LOG_2 + (t + (t * t) * p)
        store(radius, i, square_root(-2.0 * log))


@jit(relaxed=FUSE, inline=True)
def _angles(words: Any, angle: Any, radius: Any, swap: Any) -> None:
    """Write a uniform direction on the circle per radius: angle, swap and the sign of the radius, all (TOGETHER,).

    The upper 52 bits of a word are an angle in (-pi / 4, pi / 4). One more bit, ``swap``, exchanges cosine and sine.
    Another changes the sign of both, which is stored as the sign of the radius.
    """
    whole, signed = words.view(np.int64), radius.view(np.int64)
    for i in range(TOGETHER):
        angle[i] = (np.float64(whole[i] >> np.int64(12)) + 0.5) * (2.0**-52 * _HALF_PI)
        swap[i] = np.float64(whole[i] & np.int64(1))
        signed[i] ^= (whole[i] & np.int64(2)) << np.int64(62)


@jit(relaxed=FUSE, inline=True)
def _write_pairs(angle: Any, swap: Any, radius: Any, out: Any, start: int) -> None:
    """Write the normal numbers to out[start:]: per advance, first one number of every pair, then the others."""
    for first in range(0, TOGETHER, LANES):
        for i in range(first, first + LANES, WIDTH):
            x = load(angle, i)
            z = x * x
            p = 1.0 / 362880.0 - z * (1.0 / 39916800.0)
            p = -1.0 / 5040.0 + z * p
            p = 1.0 / 120.0 + z * p
            p = -1.0 / 6.0 + z * p
            sine = x + x * (z * p)
            q = -1.0 / 3628800.0 + z * (1.0 / 479001600.0)
            q = 1.0 / 40320.0 + z * q
            q = -1.0 / 720.0 + z * q
            q = 1.0 / 24.0 + z * q
            q = -0.5 + z * q
            cosine = 1.0 + z * q
            r, exchanged, to = load(radius, i), load(swap, i), start + first + i
            store(out, to, r * select_above(exchanged, 0.5, cosine, sine))
            store(out, to + LANES, r * select_above(exchanged, 0.5, sine, cosine))


@jit(relaxed=FUSE)
def fill_masks(words: Any, rate: float, out: Any) -> None:
    """Fill the contiguous array ``out`` (n,) with masks: 0 with probability ``rate``, otherwise 1 / (1 - rate)."""
    kept = 1.0 / (1.0 - rate)
    bound = np.uint64(rate * 2.0**53)
    drawn = words[4 * LANES : 5 * LANES]
    for start in range(0, out.size, LANES):
        _advance(words, drawn)
        for i in range(min(out.size - start, LANES)):
            out[start + i] = 0.0 if (drawn[i] >> np.uint64(11)) < bound else kept
