"""Cache of compiled kernels on disk, by the contents of their sources.

The compiled code of the kernels of a module is in the folder ``<root>/<module>/<hash of sources>``. The root is
``ep-bench`` in the folder NUMBA_CACHE_DIR, or ``kernels`` in the user's cache folder. Two clones with equal contents
use the same folders; clones with different contents do not overwrite each other's code. If the folder is not writable,
the code is in ``__pycache__`` next to the sources. If that is not writable either, the code is not stored.

A process that adds a folder removes those that no process has opened for ``UNUSED_DAYS``, and all but the latest
``KEPT`` of each module.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from inspect import getfile
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    NullCache,
    _Cache,
    _CacheLocator,
)

from ep_bench.numerics import kernel_sources

UNUSED_DAYS = 30
KEPT = 8
_HOUR = 3600.0  # seconds
_DIGITS = 32  # of a hash, in a folder's name


class KernelCache(_Cache):  # type: ignore[misc]
    """The cache of one kernel; its files are searched when the kernel is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._loaded = time.time_ns()
        self._enabled = True

    @cached_property
    def _files(self) -> _Cache:
        """The cache on disk, or a null cache if the sources have changed since this process imported them."""
        with suppress(OSError, RuntimeError):
            if kernel_sources.last_change(Path(getfile(self._function))) <= self._loaded:
                return _KernelFiles(self._function)
        return NullCache()

    @property
    def cache_path(self) -> str | None:
        """The folder of the kernel's files, or None."""
        path: str | None = self._files.cache_path
        return path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, or None if it is missing or damaged."""
        if not self._enabled:
            return None
        try:
            return self._files.load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - unpickling a damaged file may raise anything; the kernel is then compiled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled code for a signature; write errors, such as a full disk, are ignored."""
        if self._enabled:
            with suppress(OSError):
                self._files.save_overload(sig, data)

    def enable(self) -> None:
        """Enable reading and writing of files."""
        self._enabled = True

    def disable(self) -> None:
        """Disable reading and writing of files."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all compiled code of the kernel."""
        with suppress(OSError):
            self._files.flush()


class _SharedFolderLocator(_CacheLocator):  # type: ignore[misc]
    """Files in the folder for all clones with equal contents."""

    def __init__(self, file: str, line: int, folder: Path) -> None:
        self._line = line
        self._folder = folder
        self._py_file = file  # numba reads it to warn about code that cannot be cached

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _SharedFolderLocator | None:
        folder = shared_folder(Path(py_file))
        return None if folder is None else cls(py_file, py_func.__code__.co_firstlineno, folder)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_SharedFolderLocator, InTreeCacheLocator)


class _KernelFiles(FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = kernel_sources.content_hash(Path(getfile(function)))
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """A kernel's index and the files of its compiled code."""

    def _load_index(self) -> dict[Any, str]:
        """Return the index, empty if it is damaged or refers to a type that no longer exists."""
        try:
            index: dict[Any, str] = super()._load_index()
        except Exception:  # noqa: BLE001 - unpickling a damaged file may raise anything
            return {}
        return index

    def _data_name(self, number: int) -> str:  # noqa: ARG002
        """Return a file name that no other process uses, for example one that compiles another signature."""
        name: str = super()._data_name(uuid.uuid4().int >> 64)
        return name


def root() -> Path:
    """Return the root folder of the cache; it need not exist yet."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / "ep-bench"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ep-bench")) / "kernels"


def shared_folder(file: Path) -> Path | None:
    """Return the folder of the compiled kernels of a source file, or None if it cannot be created or written."""
    folder = root() / kernel_sources.dotted_name(file) / kernel_sources.content_hash(file)[:_DIGITS]
    return folder if _is_usable(folder) else None


@cache
def _is_usable(folder: Path) -> bool:
    """Return whether a folder exists or can be created and is writable; record its use."""
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # raises if the folder cannot be written
            remove_unused(folder.parents[1])
        elif not os.access(folder, os.W_OK):
            return False
        elif time.time() - _last_use(folder) > _HOUR:
            with suppress(OSError):
                os.utime(folder)
    except OSError:
        return False
    return True


def remove_unused(root: Path) -> None:
    """Remove folders that were not used for ``UNUSED_DAYS``, and all but the latest ``KEPT`` of each module."""
    oldest = time.time() - UNUSED_DAYS * 24 * _HOUR
    for module in _folders(root):
        latest_first = sorted(_folders(module), key=_last_use, reverse=True)
        for rank, folder in enumerate(latest_first):
            if rank >= KEPT or _last_use(folder) < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [entry for entry in folder.iterdir() if entry.is_dir()]
    return []


def _last_use(folder: Path) -> float:
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0
