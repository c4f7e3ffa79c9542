"""Guarantees of the decorator of kernels."""

from __future__ import annotations

import gc
import math

import numba
import pytest
from numba.core import event

from ep_bench.numerics.jit import ALLOCATIONS, FUSE, REORDER, jit


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


class Thresholds(event.Listener):
    """Records the threshold of garbage collection while numba compiles."""

    def __init__(self):
        self.found = []

    def on_start(self, event):
        self.found.append(gc.get_threshold()[0])

    def on_end(self, event):
        pass


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("threshold", [500, 0, ALLOCATIONS + 1])
def test_garbage_collection_is_rare_during_a_compilation_only(threshold):
    before = gc.get_threshold()
    thresholds = Thresholds()
    try:
        gc.set_threshold(threshold)
        with event.install_listener("numba:compile", thresholds):
            numba.njit(lambda x: x + 1.0)(1.0)
            with pytest.raises(numba.TypingError):
                numba.njit(lambda x: x + "")(1.0)
        assert gc.get_threshold()[0] == threshold
    finally:
        gc.set_threshold(*before)
    assert thresholds.found[:2] == [threshold if threshold != 500 else ALLOCATIONS] * 2
