"""The vectorised exponential against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.exponential import HIGHEST, LOWEST, fill_exponentials
from ep_bench.numerics.lanes import WIDTH


def exponentials(x):
    out = np.full(len(x), np.nan)
    fill_exponentials(x, out)
    return out


def test_the_whole_range_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-708.0, 709.0, 200_000), np.random.default_rng(1).normal(size=100_000)])
    expected = np.exp(x)
    assert np.all(np.abs(exponentials(x) - expected) <= 2 * np.spacing(expected))


def test_whole_powers_and_the_borders_between_them():
    k = np.arange(-1020, 1023)
    x = np.concatenate([k * np.log(2.0), (k + 0.5) * np.log(2.0), [0.0, -0.0, 5e-324, 1e-300, 1e-17, -1e-17]])
    expected = np.exp(x)
    assert np.all(np.abs(exponentials(x) - expected) <= 2 * np.spacing(expected))
    assert np.all(exponentials(np.zeros(WIDTH + 1)) == 1.0)


@pytest.mark.parametrize("n", [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 2])
def test_any_length_and_no_more_than_that(n):
    x, out = np.random.default_rng(n).normal(0.0, 20.0, n), np.full(n + WIDTH, 7.0)
    fill_exponentials(x, out)
    np.testing.assert_allclose(out[:n], np.exp(x), rtol=1e-15)
    np.testing.assert_array_equal(out[n:], 7.0)


@pytest.mark.parametrize("n", [1, WIDTH, 2 * WIDTH + 1])  # the last one of an odd length is taken by itself
@pytest.mark.parametrize(
    ("x", "end"),
    [
        (np.nan, LOWEST), (-np.inf, LOWEST), (-1e308, LOWEST), (-708.1, LOWEST),
        (np.inf, HIGHEST), (1e308, HIGHEST), (709.1, HIGHEST),
    ],
)  # fmt: skip
def test_what_lies_beyond_is_taken_to_be_at_an_end(n, x, end):
    np.testing.assert_allclose(exponentials(np.full(n, x)), np.exp(end), rtol=1e-15)
