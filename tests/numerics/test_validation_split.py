"""Random splits into data to fit and validation data."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.validation_split import hold_out


@pytest.mark.parametrize(
    ("n", "fraction", "size"), [(2, 0.2, 1), (10, 0.25, 2), (10, 0.3, 3), (5, 0.99, 4), (3, 0.01, 1), (442, 0.2, 88)]
)
def test_both_parts_are_disjoint_and_not_empty(n, fraction, size):
    inner, outer = hold_out(n, fraction, np.random.default_rng(0))
    assert len(outer) == size
    assert sorted([*inner, *outer]) == list(range(n))


@pytest.mark.parametrize("fraction", [0.01, 0.5, 0.99])
def test_a_single_data_point_is_in_both_parts(fraction):
    inner, outer = hold_out(1, fraction, np.random.default_rng(0))
    assert inner.tolist() == outer.tolist() == [0]


def test_data_points_are_selected_equally_often():
    rng, times = np.random.default_rng(1), 4000
    counts = sum(np.bincount(hold_out(10, 0.3, rng)[1], minlength=10) for _ in range(times))
    assert np.all(np.abs(counts / times - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / times))


def test_the_generator_decides():
    first, again, other = (hold_out(50, 0.2, np.random.default_rng(seed))[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)
