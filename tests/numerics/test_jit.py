"""What the decorator promises."""

from __future__ import annotations

import math

import numba
import pytest

from ep_bench.numerics.jit import FUSE, REORDER, jit


@jit(relaxed=REORDER)
def checks(x, y):
    return math.isnan(x), math.isinf(y), y / (x - x) if x == x else 0.0  # noqa: PLR0124


def test_no_relaxation_hides_a_value_that_is_not_a_number():
    assert checks(math.nan, math.inf)[:2] == (True, True)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_division_by_zero_is_infinite():
    assert checks(1.0, 2.0)[2] == math.inf


def test_faster_but_blind_flags_are_refused():
    for flag in ("fast", "nnan", "ninf"):
        with pytest.raises(ValueError, match="may relax"):
            jit(relaxed=FUSE | {flag})
