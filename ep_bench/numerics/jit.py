"""The one decorator of every compiled kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

# What a kernel may ask of the compiler. Neither lets it assume that a value is not NaN or not infinite.
FUSE = frozenset({"contract"})  # a * b + c in one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; never where a routine relies on its roundings


def jit(*, relaxed: frozenset[str] = frozenset(), inline: bool = False) -> Callable[[F], F]:
    """Compile a kernel in nopython mode, cached on disk, outside the interpreter's lock.

    Division by zero gives infinity or NaN as in NumPy. ``relaxed`` is empty, ``FUSE`` or ``REORDER``; ``inline``
    puts the kernel's code into its callers.
    """
    if not relaxed <= REORDER:
        raise ValueError(f"a kernel may relax {sorted(REORDER)}, found {sorted(relaxed)}")
    decorator = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath=set(relaxed) or False, forceinline=inline
    )

    def decorate(function: F) -> F:
        compiled: F = decorator(function)
        _watch_sources(compiled, Path(inspect.getfile(function)).parent)
        return compiled

    return decorate


def _watch_sources(compiled: Any, folder: Path) -> None:
    """Make the cached code stale when any file beside the kernel's, in numerics or in models changes.

    By itself numba looks at the kernel's own file only, and would go on running old code of the kernels that it calls.
    """
    cached = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cached is not None:
        cached._source_stamp = (cached._source_stamp, sources_stamp(folder))  # noqa: SLF001
        cached._load_index = _forgiving(cached._load_index)  # noqa: SLF001


def _forgiving(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Return the reader of a cache's index that finds nothing where the index names a type that has gone."""

    def read() -> dict[Any, Any]:
        try:
            return load_index()
        except (AttributeError, ImportError):
            return {}

    return read


@cache
def sources_stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time of change and size of every source file in a folder and in the rooms that share kernels."""
    numerics = Path(__file__).parent
    folders = {folder, numerics, numerics.parent / "models"}
    files = sorted({file for one in folders for file in one.glob("*.py")})
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
