"""What the decorator promises."""

from __future__ import annotations

import math
from pathlib import Path

import numba
import pytest

from ep_bench.numerics import jit as module
from ep_bench.numerics.jit import FUSE, REORDER, jit
from ep_bench.numerics.normal import normal_tail


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


def test_cached_code_goes_stale_with_any_file_beside_it(tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text("x = 1\n")
    before = module.sources_stamp(tmp_path)
    (tmp_path / "helper.py").write_text("y = 2\n")
    module.sources_stamp.cache_clear()
    assert module.sources_stamp(tmp_path) != before
    names = {name for name, _, _ in before}
    assert {"kernel.py", "normal.py", "jit.py", "mlp.py"} <= names


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_carry_that_stamp():
    folder = Path(module.__file__).parent
    assert normal_tail._cache._cache_file._source_stamp[1] == module.sources_stamp(folder)
