"""The vectorised exponential and exp(x) - 1 against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.exponential import HIGHEST, LOWEST, fill_excesses, fill_exponentials
from ep_bench.numerics.simd.vector import WIDTH


def exponentials(x):
    out = np.full(len(x), np.nan)
    fill_exponentials(x, out)
    return out


def test_errors_are_at_most_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-708.0, 709.0, 200_000), np.random.default_rng(1).normal(size=100_000)])
    expected = np.exp(x)
    assert np.all(np.abs(exponentials(x) - expected) <= 2 * np.spacing(expected))


def test_powers_of_two_and_the_borders_between_them():
    k = np.arange(-1020, 1023)
    x = np.concatenate([k * np.log(2.0), (k + 0.5) * np.log(2.0), [0.0, -0.0, 5e-324, 1e-300, 1e-17, -1e-17]])
    expected = np.exp(x)
    assert np.all(np.abs(exponentials(x) - expected) <= 2 * np.spacing(expected))
    assert np.all(exponentials(np.zeros(WIDTH + 1)) == 1.0)


OUT_OF_RANGE = [
    (np.nan, LOWEST), (-np.inf, LOWEST), (-1e308, LOWEST), (-708.1, LOWEST),
    (np.inf, HIGHEST), (1e308, HIGHEST), (709.1, HIGHEST),
]  # fmt: skip


def excesses(x):
    out = np.full(len(x), np.nan)
    fill_excesses(x, out)
    return out


@pytest.mark.parametrize(("fill", "function"), [(fill_exponentials, np.exp), (fill_excesses, np.expm1)])
@pytest.mark.parametrize("n", [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 2])
class TestAnyLength:
    def test_nothing_is_written_beyond_the_end(self, fill, function, n):
        x, out = np.random.default_rng(n).normal(0.0, 20.0, n), np.full(n + WIDTH, 7.0)
        fill(x, out)
        np.testing.assert_allclose(out[:n], function(x), rtol=1e-15, atol=1e-15 * (function is np.expm1))
        np.testing.assert_array_equal(out[n:], 7.0)
        fill(x, x)
        np.testing.assert_array_equal(x, out[:n])

    @pytest.mark.parametrize(("x", "end"), OUT_OF_RANGE)
    def test_arguments_out_of_range_are_clipped(self, fill, function, n, x, end):
        """NaN too, in vectors and in the remainder."""
        out = np.empty(n)
        fill(np.full(n, x), out)
        np.testing.assert_allclose(out, function(end), rtol=1e-15)


class TestExcesses:
    @pytest.mark.parametrize("rest", range(WIDTH))
    def test_accuracy_near_zero(self, rest):
        """In vectors and in the remainder; 0 (except for its sign) and the smallest numbers are exact."""
        sizes = np.logspace(-300, np.log10(0.34), 40 * WIDTH)
        x = np.concatenate([sizes, -sizes, sizes[-rest:] if rest else []])
        assert len(x) % WIDTH == rest
        expected = np.expm1(x)
        assert np.all(np.abs(excesses(x) - expected) <= 2 * np.spacing(np.abs(expected)))
        for tiny in (0.0, -0.0, 5e-324, -5e-324, 1e-310):
            np.testing.assert_array_equal(excesses(np.full(WIDTH + rest, tiny)), tiny)

    def test_the_whole_range(self):
        x = np.concatenate([np.linspace(LOWEST, HIGHEST, 200_001), np.random.default_rng(1).normal(size=100_000)])
        expected = np.expm1(x)
        assert np.all(np.abs(excesses(x) - expected) <= 3 * np.spacing(np.maximum(np.abs(expected), 1.0)))

    def test_the_borders_between_powers(self):
        k = np.arange(-1020, 1023)
        middles = (k + 0.5) * np.log(2.0)
        x = np.concatenate([k * np.log(2.0), middles, np.nextafter(middles, -np.inf), np.nextafter(middles, np.inf)])
        expected = np.expm1(x)
        assert np.all(np.abs(excesses(x) - expected) <= 3 * np.spacing(np.maximum(np.abs(expected), 1.0)))

    def test_a_nan_does_not_change_its_neighbours(self):
        x = np.linspace(-1.0, 1.0, 2 * WIDTH + 3)
        for place in range(len(x)):
            corrupted = x.copy()
            corrupted[place] = np.nan
            expected = excesses(x)
            expected[place] = -1.0
            np.testing.assert_array_equal(excesses(corrupted), expected)
