"""The one decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

# What a kernel may ask of the compiler. None of them lets it assume that a value is neither NaN nor infinite.
FUSE = frozenset({"contract"})  # a * b + c in one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; never where a routine relies on rounding


def jit(*, relaxed: frozenset[str] = frozenset(), inline: bool = False) -> Callable[[F], F]:
    """Compile a kernel in nopython mode, cached on disk, outside the interpreter's lock.

    Division by zero gives infinity or NaN as in NumPy. ``relaxed`` is empty, ``FUSE`` or ``REORDER``; ``inline``
    puts the kernel's code into its callers.
    """
    if not relaxed <= REORDER:
        raise ValueError(f"a kernel may relax {sorted(REORDER)}, found {sorted(relaxed)}")

    def decorate(function: F) -> F:
        compiled: F = numba.njit(
            cache=True, nogil=True, error_model="numpy", fastmath=set(relaxed), forceinline=inline
        )(function)
        return compiled

    return decorate
