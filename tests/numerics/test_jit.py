"""Guarantees of the decorator of kernels, and of the machine code that it stores."""

from __future__ import annotations

import importlib
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numba
import pytest
from numba.core import config

from ep_bench.numerics import kernel_sources
from ep_bench.numerics.jit import FUSE, KEPT, REORDER, _folder, jit, root

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@jit(relaxed=REORDER)
def checks(x, y):
    return math.isnan(x), math.isinf(y), y / (x - x) if x == x else 0.0  # noqa: PLR0124


def test_relaxed_kernels_detect_nan_and_infinity():
    assert checks(math.nan, math.inf)[:2] == (True, True)


@compiled
def test_division_by_zero_is_infinite():
    assert checks(1.0, 2.0)[2] == math.inf


def test_flags_that_assume_finite_values_raise():
    for flag in ("fast", "nnan", "ninf"):
        with pytest.raises(ValueError, match="relaxed may contain"):
            jit(relaxed=FUSE | {flag})


KERNELS = """
from ep_bench.numerics.jit import jit
from cached_helper import shifted

@jit()
def twice(x):
    return 2 * shifted(x)
"""
HELPER = """
from ep_bench.numerics.jit import jit

@jit()
def shifted(x):
    return x + 1
"""


class Found(NamedTuple):
    """Result of a call of the kernel, and numbers of compiled and loaded signatures."""

    value: float
    compiled: int
    loaded: int


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(folder: Path, helper: str = HELPER) -> Path:
    """Write a folder with two kernels; one calls the other."""
    folder.mkdir(parents=True)
    (folder / "cached_kernels.py").write_text(KERNELS)
    (folder / "cached_helper.py").write_text(helper)
    return folder


def load(folder: Path) -> ModuleType:
    """Import the kernels as a new process would."""
    kernel_sources._read.cache_clear()
    _folder.cache_clear()
    for name in ("cached_kernels", "cached_helper"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("cached_kernels")
    finally:
        sys.path.remove(str(folder))


def call(module: ModuleType, x: float = 3.0) -> Found:
    value, stats = module.twice(x), module.twice.stats
    return Found(value, sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))


@compiled
def test_clones_of_equal_contents_compile_once(tmp_path: Path, cache: Path):
    assert call(load(write(tmp_path / "clone"))) == (8.0, 1, 0)
    assert call(load(tmp_path / "clone")) == (8.0, 0, 1)
    assert call(load(write(tmp_path / "other"))) == (8.0, 0, 1)
    assert [path.name for path in cache.iterdir()] == ["ep-bench"]


@compiled
def test_a_change_of_a_called_kernel_recompiles_and_keeps_the_old_code(tmp_path: Path, cache: Path):
    clone = write(tmp_path / "clone")
    assert call(load(clone)) == (8.0, 1, 0)
    assert call(load(write(tmp_path / "changed", HELPER.replace("x + 1", "x + 2")))) == (10.0, 1, 0)
    assert call(load(clone)) == (8.0, 0, 1)


@compiled
def test_signatures_compiled_concurrently_use_separate_files(tmp_path: Path, cache: Path):
    clone = write(tmp_path / "clone")
    first, second = load(clone), load(clone)
    call(first, 3.0)
    for index in cache.rglob("*.nbi"):
        index.unlink()  # as if neither had read the index of the other
    call(second, 3)
    assert len(list(cache.rglob("*.nbc"))) == 4
    assert call(load(clone), 3) == (8, 0, 1)
    assert call(load(clone), 3.0) == (8.0, 1, 0)


@compiled
def test_kernels_run_without_a_writable_folder(tmp_path: Path, cache: Path):
    cache.write_text("no folder")
    assert call(load(write(tmp_path / "clone"))) == (8.0, 1, 0)


@compiled
def test_the_cache_of_other_kernels_is_left_alone(tmp_path: Path, cache: Path):
    load(write(tmp_path / "clone"))
    assert str(cache) == config.CACHE_DIR
    assert not config.CACHE_LOCATOR_CLASSES


def test_a_module_keeps_its_latest_folders(tmp_path: Path):
    source = tmp_path / "kernel.py"
    source.write_text("")
    old = [tmp_path / "cache" / "kernel" / str(age) for age in range(KEPT + 2)]
    for age, folder in enumerate(old):
        folder.mkdir(parents=True)
        os.utime(folder, (1e9 - age, 1e9 - age))
    new = _folder(tmp_path / "cache", source)
    assert {path.name for path in new.parent.iterdir()} == {new.name, *(str(age) for age in range(KEPT - 1))}


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert root().parts[-2:] == ("ep-bench", "kernels")
