"""The decorator of all compiled kernels.

Machine code is stored in the folder ``<root>/<module>/<hash of sources>``, for all clones with equal contents. The root
is ``ep-bench`` in the folder NUMBA_CACHE_DIR, or ``kernels`` in the user's cache folder. If it is not writable, each
process compiles the kernels that it uses.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import getfile
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import UserProvidedCacheLocator

from ep_bench.numerics import kernel_sources

F = TypeVar("F", bound=Callable[..., Any])

# Optimisations that a kernel may permit. Neither lets the compiler assume that values are finite.
FUSE = frozenset({"contract"})  # a * b + c with one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; not if rounding errors are tracked

KEPT = 8  # folders of machine code per module


def jit(*, relaxed: frozenset[str] = frozenset(), inline: bool = False, merged: bool = False) -> Callable[[F], F]:
    """Return a decorator that compiles a kernel in nopython mode, with a cache on disk and without the GIL.

    Division by zero gives infinity or NaN as in NumPy.

    Parameters
    ----------
    relaxed : empty, ``FUSE`` or ``REORDER``
    inline : whether to insert the kernel's machine code into its callers
    merged : whether to insert the kernel's statements into its callers before compilation. This saves seconds of
        compilation for a kernel with many arguments and few callers, which must have the same ``relaxed``.

    Raises
    ------
    ValueError
        If ``relaxed`` has other flags.
    """
    if not relaxed <= REORDER:
        raise ValueError(f"relaxed may contain {sorted(REORDER)}, found {sorted(relaxed)}")
    # No kernel is called from C; the wrapper for such calls would only take time to compile.
    decorator = numba.njit(
        nogil=True, error_model="numpy", fastmath=set(relaxed) or False, forceinline=inline,
        inline="always" if merged else "never", no_cfunc_wrapper=True,
    )  # fmt: skip

    def decorate(function: F) -> F:
        compiled = decorator(function)
        if compiled is not function:  # they are the same if NUMBA_DISABLE_JIT is set
            _enable_cache(compiled, Path(getfile(function)))
        return cast(F, compiled)

    return decorate


class SharedFolderLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """Chooses numba's folder without the name of the clone, since the folder's name has the hash of the sources."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:  # noqa: ARG003
        """Return the path of the files below the folder."""
        return ""


def _enable_cache(kernel: Any, file: Path) -> None:
    """Store the machine code of a kernel by the contents of all files that it depends on.

    Without this, numba would not notice a change of a kernel in another file that is called.
    """
    before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
    with suppress(OSError, RuntimeError):  # no writable folder, or no source file
        config.CACHE_DIR = str(_folder(root(), file))
        config.CACHE_LOCATOR_CLASSES = f"{__name__}.{SharedFolderLocator.__name__}"
        kernel.enable_caching()
        # By default, two processes that compile different signatures at the same time may write one file.
        files = kernel._cache._cache_file  # noqa: SLF001
        files._data_name_pattern = files._data_name_pattern.replace("{", f"{uuid.uuid4().hex}.{{")  # noqa: SLF001
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def root() -> Path:
    """Return the root folder of the cache; it need not exist yet."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / "ep-bench"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ep-bench")) / "kernels"


@cache
def _folder(root: Path, file: Path) -> Path:
    """Return the folder of the kernels of a source file; of a module's folders, the ``KEPT`` latest stay."""
    folder = root / kernel_sources.dotted_name(file) / kernel_sources.content_hash(file)[:32]
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.parent.iterdir(), key=os.path.getmtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return folder
