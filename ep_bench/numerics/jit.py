"""The decorator of all compiled kernels."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from ep_bench.numerics.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

# Optimisations that a kernel may permit. Neither lets the compiler assume that values are finite.
FUSE = frozenset({"contract"})  # a * b + c with one rounding
REORDER = frozenset({"contract", "reassoc"})  # also sums in any order; not if rounding errors are tracked

ALLOCATIONS = 100_000  # of objects before a garbage collection, while numba compiles; Python's default is 700


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


class _RareCollection(event.Listener):  # type: ignore[misc]
    """Makes Python's garbage collection rare during a compilation, of which it else takes a tenth or more.

    Compilations are nested; numba lets one thread at a time compile.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._threshold = gc.get_threshold()

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        if self._depth == 0:
            self._threshold = gc.get_threshold()
            if 0 < self._threshold[0] < ALLOCATIONS:
                gc.set_threshold(ALLOCATIONS)
        self._depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        self._depth -= 1
        if self._depth == 0 and gc.get_threshold()[0] == ALLOCATIONS:  # nobody else has changed it meanwhile
            gc.set_threshold(*self._threshold)


event.register("numba:compile", _RareCollection())
