"""Compiled kernels on disk: used by several clones, never stale, and not needed for a kernel to run."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from numba.core import config

import ep_bench
from ep_bench.numerics import kernel_cache

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

PACKAGE = Path(ep_bench.__file__).parent
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
CALL = "from cached_kernels import twice; print(twice(3.0), *twice.stats.cache_hits.values(), twice.stats.cache_path)"


class Found(NamedTuple):
    """Result of a call of the kernel, numbers of compiled and loaded signatures, and the folder of its files."""

    value: float
    compiled: int
    loaded: int
    folder: str | None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(kernel_cache, "root", lambda: folder)
    return folder


@pytest.fixture
def clone(tmp_path: Path, cache: Path) -> Path:
    return write(tmp_path / "clone")


def write(folder: Path, helper: str = HELPER) -> Path:
    """Write a folder with two kernels; one calls the other."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cached_kernels.py").write_text(KERNELS)
    (folder / "cached_helper.py").write_text(helper)
    return folder


def load(folder: Path) -> Any:
    """Import the kernels as a new process would."""
    names = ("cached_kernels", "cached_helper")
    kernel_cache._is_usable.cache_clear()
    for name in names:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("cached_kernels")
    finally:
        sys.path.remove(str(folder))


def call(folder: Path, x: float = 3.0) -> Found:
    return found(load(folder), x)


def found(module: Any, x: float = 3.0) -> Found:
    value, stats = module.twice(x), module.twice.stats
    return Found(value, sum(stats.cache_misses.values()), sum(stats.cache_hits.values()), stats.cache_path)


def start(code: str, *folders: Path, cache: Path) -> subprocess.Popen[str]:
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(str(folder) for folder in (*folders, PACKAGE.parent)),
    }
    pipe, command = subprocess.PIPE, [sys.executable, "-c", code]
    return subprocess.Popen(command, env=environment, cwd=folders[0], text=True, stdout=pipe, stderr=pipe)


def output(process: subprocess.Popen[str]) -> list[str]:
    text, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return text.split()


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{ending}"))


def test_a_second_process_compiles_nothing(clone: Path, cache: Path):
    first = call(clone)
    assert first[:3] == (8.0, 1, 0)
    assert Path(first.folder).parent == cache / "cached_kernels"
    assert not files(clone, "nbi")
    assert call(clone) == (8.0, 0, 1, first.folder)


def test_a_clone_of_equal_contents_compiles_nothing(clone: Path, tmp_path: Path):
    assert call(clone)[:3] == (8.0, 1, 0)
    assert call(write(tmp_path / "other"))[:3] == (8.0, 0, 1)


def test_a_change_of_a_called_kernel_recompiles_and_keeps_the_old_code(clone: Path, tmp_path: Path):
    other = write(tmp_path / "other", HELPER.replace("x + 1", "x + 2"))
    assert call(clone)[:3] == (8.0, 1, 0)
    assert call(other)[:3] == (10.0, 1, 0)
    assert call(clone)[:3] == (8.0, 0, 1)


@pytest.mark.exhaustive
def test_a_copy_of_the_package_compiles_nothing(tmp_path: Path):
    code = (
        "from ep_bench.numerics.normal import normal_tail as f; f(1.0, 2.0)\nprint(sum(f.stats.cache_misses.values()))"
    )
    copies = [tmp_path / "a", tmp_path / "b"]
    for copy in copies:
        shutil.copytree(PACKAGE, copy / "ep_bench", ignore=shutil.ignore_patterns("datasets", "__pycache__"))
    assert [output(start(code, copy, cache=tmp_path)) for copy in copies] == [["1"], ["0"]]
    vector = copies[1] / "ep_bench" / "numerics" / "simd" / "vector.py"
    vector.write_text(vector.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert [output(start(code, copy, cache=tmp_path)) for copy in copies] == [["0"], ["1"]]


def test_the_cache_folder_of_numba_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert kernel_cache.root() == tmp_path / "ep-bench"
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert kernel_cache.root().parts[-2:] == ("ep-bench", "kernels")


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("part", [0.0, 0.5])
def test_truncated_files_are_replaced(clone: Path, cache: Path, ending: str, part: float):
    call(clone)
    for file in files(cache, ending):
        content = file.read_bytes()
        file.write_bytes(content[: int(part * len(content))])
    assert call(clone)[:3] == (8.0, 1, 0)
    assert call(clone)[:3] == (8.0, 0, 1)


def test_an_index_without_its_files_is_no_error(clone: Path, cache: Path):
    call(clone)
    for file in files(cache, "nbc"):
        file.unlink()
    assert call(clone)[:3] == (8.0, 1, 0)
    assert call(clone)[:3] == (8.0, 0, 1)


def test_processes_can_compile_concurrently(clone: Path, tmp_path: Path):
    both = [start(CALL, clone, cache=tmp_path), start(CALL.replace("3.0", "3"), clone, cache=tmp_path)]
    assert sorted(output(process)[0] for process in both) == ["8", "8.0"]


def test_signatures_compiled_concurrently_use_separate_files(clone: Path, cache: Path):
    first, second = load(clone), load(clone)
    index = kernel_cache._Files._load_index
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache._Files, "_load_index", lambda _: {})  # neither reads the index of the other
        found(first, 3.0)
        found(second, 3)
    assert kernel_cache._Files._load_index is index
    assert len(files(cache, "nbc")) == 4
    assert call(clone, 3)[:3] == (8, 0, 1)
    assert call(clone, 3.0)[:3] == (8.0, 1, 0)


def test_without_a_user_folder_files_are_next_to_the_sources(clone: Path, cache: Path):
    cache.write_text("no folder")
    assert call(clone) == (8.0, 1, 0, str(clone / "__pycache__"))
    assert call(clone)[:3] == (8.0, 0, 1)
    write(clone, HELPER.replace("x + 1", "x + 20"))
    assert call(clone)[:3] == (46.0, 1, 0)


def test_kernels_run_without_a_writable_folder(clone: Path, tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    (clone / "__pycache__").write_text("no folder")
    assert output(start(CALL, clone, cache=tmp_path / "file")) == ["8.0", "None"]


def test_a_folder_removed_during_a_process_is_no_error(clone: Path, cache: Path):
    module = load(clone)
    found(module)
    shutil.rmtree(cache)
    assert module.twice(3) == 8
    shutil.rmtree(cache)
    cache.write_text("no folder")
    assert module.twice(3 + 0j) == 8


def test_code_of_sources_changed_after_the_import_is_not_stored(clone: Path, cache: Path):
    module = load(clone)
    time.sleep(0.02)  # the clock of a file system can be some milliseconds late
    os.utime(clone / "cached_helper.py", (1, 1))  # like a copy with the times of the original
    assert found(module) == (8.0, 1, 0, None)
    assert not files(cache, "nbi")


def test_a_cache_can_be_disabled_and_flushed(clone: Path):
    module = load(clone)
    module.twice._cache.disable()
    assert found(module)[:3] == (8.0, 1, 0)
    assert call(clone)[:3] == (8.0, 1, 0)
    module = load(clone)
    module.twice._cache.flush()
    assert found(module)[:3] == (8.0, 1, 0)
    module.twice._cache.enable()
    assert call(clone)[:3] == (8.0, 0, 1)


def folder(root: Path, module: str, name: str, days: float) -> Path:
    made = root / module / name
    made.mkdir(parents=True)
    (made / "kernel.nbi").write_text("")
    os.utime(made, (time.time() - days * 86400,) * 2)
    return made


def test_unused_folders_are_removed(tmp_path: Path):
    old = folder(tmp_path, "a", "1", kernel_cache.UNUSED_DAYS + 1)
    recent = folder(tmp_path, "a", "2", kernel_cache.UNUSED_DAYS - 1)
    kernel_cache.remove_unused(tmp_path)
    assert not old.exists()
    assert recent.exists()


def test_a_module_keeps_its_latest_folders(tmp_path: Path):
    made = [folder(tmp_path, "a", str(days), days) for days in range(kernel_cache.KEPT + 3)]
    other = folder(tmp_path, "b", "1", kernel_cache.KEPT + 5)
    kernel_cache.remove_unused(tmp_path)
    assert [one.exists() for one in made] == [True] * kernel_cache.KEPT + [False] * 3
    assert other.exists()


def test_use_is_recorded(clone: Path):
    place = Path(call(clone).folder or "")
    os.utime(place, (time.time() - 86400,) * 2)
    call(clone)
    assert time.time() - place.stat().st_mtime < 3600
