"""The one decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from ep_bench.numerics.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

# What a kernel may ask of the compiler. Neither lets it assume that a value is not NaN or not infinite.
FUSE = frozenset({"contract"})  # a * b + c in one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; never where a routine relies on its roundings


def jit(*, relaxed: frozenset[str] = frozenset(), inline: bool = False, merged: bool = False) -> Callable[[F], F]:
    """Compile a kernel in nopython mode, cached on disk, outside the interpreter's lock.

    Division by zero gives infinity or NaN as in NumPy. ``relaxed`` is empty, ``FUSE`` or ``REORDER``; ``inline``
    puts the kernel's machine code into its callers. ``merged`` puts its statements there before anything is compiled,
    which saves seconds where a kernel has many arguments and few callers; these must be relaxed in the same way.
    """
    if not relaxed <= REORDER:
        raise ValueError(f"a kernel may relax {sorted(REORDER)}, found {sorted(relaxed)}")
    decorator = numba.njit(
        nogil=True, error_model="numpy", fastmath=set(relaxed) or False, forceinline=inline,
        inline="always" if merged else "never",
    )  # fmt: skip

    def decorate(function: F) -> F:
        compiled = decorator(function)
        if compiled is not function:  # it is where NUMBA_DISABLE_JIT is set
            compiled._cache = KernelCache(function)  # noqa: SLF001
        return cast(F, compiled)

    return decorate
