"""Normal numbers of the streams: word by word against a plain generator, and as a sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from ep_bench.numerics import normal_rng
from ep_bench.numerics.normal_rng import LANES, TOGETHER, fill_masks, fill_normals, stream

MASK = 2**64 - 1
N = 2_000_000


class Xoshiro:
    """One xoshiro256++ generator as in Blackman and Vigna (2021)."""

    def __init__(self, words):
        self.s = [int(one) for one in words]

    def next(self):
        s = self.s
        result = (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def box_muller(first, second):
    """The pair of numbers from two words: a radius from 52 bits, an angle from 52 bits and the two lowest bits."""
    u = 1 - (first >> 12) / 2**52
    signed = second - 2**64 if second >> 63 else second
    angle = ((signed >> 12) + 0.5) * 2.0**-52 * math.pi / 2
    pair = (math.sin(angle), math.cos(angle))
    if second & 1:
        pair = pair[::-1]
    radius = math.sqrt(-2 * math.log(u)) * (-1 if second & 2 else 1)
    return radius * pair[0], radius * pair[1]


def plain_normals(words, size):
    lanes = [Xoshiro(words[i : 4 * LANES : LANES]) for i in range(LANES)]
    numbers = []
    while len(numbers) < size:
        first = [lane.next() for lane in lanes]
        second = [lane.next() for lane in lanes]
        pairs = [box_muller(a, b) for a, b in zip(first, second, strict=True)]
        numbers += [one for one, _ in pairs] + [other for _, other in pairs]
    return np.array(numbers[:size])


def radii(first):
    """Return the radii (TOGETHER,) of the first words."""
    words, radius = first.copy(), np.empty(TOGETHER)
    normal_rng._split(words, radius)
    normal_rng._radii(words.view(np.float64), radius)
    return radius


def transformed(first, second):
    """Return the pairs of normals (2, LANES) of the first advance."""
    angle, swap, out, radius = np.empty(TOGETHER), np.empty(TOGETHER), np.empty(2 * TOGETHER), radii(first)
    normal_rng._angles(second, angle, radius, swap)
    normal_rng._write_pairs(angle, swap, radius, out, 0)
    return out[: 2 * LANES].reshape(2, LANES)


def drawn(seed, size):
    out = np.empty(size)
    fill_normals(stream(np.random.default_rng(seed)), out)
    return out


@pytest.fixture(scope="module")
def sample():
    return drawn(12345, N)


class TestWordByWord:
    def test_words_of_a_plain_generator_with_library_functions(self):
        words = stream(np.random.default_rng(1))
        expected = plain_normals(words.copy(), 20_000)
        found = np.empty(20_000)
        fill_normals(words, found)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)

    def test_the_generator_is_the_published_one(self):
        """First outputs for the state 1, 2, 3, 4, the published test vector of the generator."""
        lane = Xoshiro([1, 2, 3, 4])
        assert [lane.next() for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]

    def test_extreme_words(self):
        top = [
            0,
            1 << 12,
            2 << 12,
            2**63,
            MASK,
            MASK - (1 << 12),
            1 << 62,
            3 << 62,
            (1 << 62) - 1,
            (1 << 62) + (1 << 12),
        ]
        turns = [0, 1, 2, 3, 2**63, 2**63 - 1, 2**63 + 3, MASK, 1 << 12, MASK << 12 & MASK]
        for first in top:
            found = transformed(
                np.full(TOGETHER, first, dtype=np.uint64), np.resize(np.array(turns, np.uint64), TOGETHER)
            )
            expected = np.transpose([box_muller(first, second) for second in turns])
            np.testing.assert_allclose(found[:, : len(turns)], expected, rtol=1e-10, atol=1e-11)

    def test_radii(self):
        words = np.random.default_rng(1).integers(0, 2**64, size=(50, TOGETHER), dtype=np.uint64)
        for first in words:
            expected = [math.sqrt(-2 * math.log(1 - (word >> 12) / 2**52)) for word in first.tolist()]
            np.testing.assert_allclose(radii(first), expected, rtol=2e-12)

    def test_the_largest_radius(self):
        found = radii(np.full(TOGETHER, MASK, dtype=np.uint64))
        np.testing.assert_allclose(found, math.sqrt(104 * math.log(2)), rtol=1e-12)

    @pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 127, 128, 129, 1001])
    def test_any_length(self, size):
        np.testing.assert_array_equal(drawn(2, size), drawn(2, 2048)[:size])

    def test_nothing_is_written_beyond_the_end(self):
        out = np.full(200, 7.0)
        fill_normals(stream(np.random.default_rng(3)), out[:131])
        assert np.all(out[131:] == 7.0)

    def test_successive_calls_continue_the_stream(self):
        words, parts = stream(np.random.default_rng(4)), np.empty((5, 128))
        for part in parts:
            fill_normals(words, part)
        np.testing.assert_array_equal(parts.ravel(), drawn(4, 640))

    def test_seeds(self):
        np.testing.assert_array_equal(drawn(5, 1000), drawn(5, 1000))
        assert not np.any(drawn(5, 1000) == drawn(6, 1000))


class TestAsASample:
    def test_distribution(self, sample):
        assert stats.kstest(sample[: N // 2], "norm").pvalue > 1e-3
        assert stats.kstest(sample[N // 2 :], "norm").pvalue > 1e-3

    @pytest.mark.parametrize(("power", "moment"), [(1, 0), (2, 1), (3, 0), (4, 3), (5, 0), (6, 15)])
    def test_moments(self, sample, power, moment):
        moment_of_square = special.factorial2(2 * power - 1)
        error = math.sqrt((moment_of_square - moment**2) / N)
        assert abs((sample**power).mean() - moment) < 4 * error

    @pytest.mark.parametrize("beyond", [3.0, 4.0, 4.5, 5.0])
    def test_tails(self, beyond):
        """The counts beyond a bound on either side are compatible with a Poisson distribution."""
        size, above, below = 8 * N, 0, 0
        words, out = stream(np.random.default_rng(7)), np.empty(N)
        for _ in range(size // N):
            fill_normals(words, out)
            above += np.count_nonzero(out > beyond)
            below += np.count_nonzero(out < -beyond)
        expected = size * special.ndtr(-beyond)
        for count in (above, below):
            assert stats.poisson.cdf(count, expected) > 1e-4
            assert stats.poisson.sf(count - 1, expected) > 1e-4


class TestMasks:
    @pytest.mark.parametrize("rate", [0.0, 0.005, 0.05, 0.5, 0.9])
    def test_values_and_rate(self, rate):
        masks = np.empty(1_000_001)
        fill_masks(stream(np.random.default_rng(8)), rate, masks)
        np.testing.assert_allclose(np.unique(masks), [0.0, 1 / (1 - rate)] if rate else [1.0], rtol=1e-15)
        error = math.sqrt(rate * (1 - rate) / masks.size)
        assert abs(np.mean(masks == 0.0) - rate) <= 4 * error

    def test_masks_follow_the_words_of_the_plain_generator(self):
        words = stream(np.random.default_rng(10))
        lanes, found = [Xoshiro(words[i : 4 * LANES : LANES]) for i in range(LANES)], np.empty(300)
        fill_masks(words, 0.3, found)
        uniform = np.array([lane.next() / 2**64 for _ in range(5) for lane in lanes])[:300]
        np.testing.assert_array_equal(found == 0.0, uniform < 0.3)

    def test_successive_calls_continue_the_stream(self):
        words, parts = stream(np.random.default_rng(11)), np.empty((3, 128))
        for part in parts:
            fill_masks(words, 0.5, part)
        whole = np.empty(384)
        fill_masks(stream(np.random.default_rng(11)), 0.5, whole)
        np.testing.assert_array_equal(parts.ravel(), whole)
