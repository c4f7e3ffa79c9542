"""The decorator of all compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from ep_bench.numerics.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

# Optimisations that a kernel may permit. Neither lets the compiler assume that values are finite.
FUSE = frozenset({"contract"})  # a * b + c with one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; not if rounding errors are tracked


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
            compiled._cache = KernelCache(function)  # noqa: SLF001
        return cast(F, compiled)

    return decorate
