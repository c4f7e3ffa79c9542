"""Guarantees of the decorator of kernels."""

from __future__ import annotations

import math

import numba
import pytest

from ep_bench.numerics.jit import FUSE, REORDER, jit


@jit(relaxed=REORDER)
def checks(x, y):
    return math.isnan(x), math.isinf(y), y / (x - x) if x == x else 0.0  # noqa: PLR0124


def test_relaxed_kernels_detect_nan_and_infinity():
    assert checks(math.nan, math.inf)[:2] == (True, True)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_division_by_zero_is_infinite():
    assert checks(1.0, 2.0)[2] == math.inf


def test_flags_that_assume_finite_values_raise():
    for flag in ("fast", "nnan", "ninf"):
        with pytest.raises(ValueError, match="relaxed may contain"):
            jit(relaxed=FUSE | {flag})
