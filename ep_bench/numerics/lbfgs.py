"""Minimisation of a smooth function within bounds, by L-BFGS-B from several starting points (Byrd et al. 1995)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]

SHARP = 1e-9  # relative decrease of the value (or of 1, if larger) below which a search stops
FLAT = 1e-4  # largest derivative below which a search stops
NEARLY_FLAT = 1e-2  # largest derivative at an optimum if rounding errors hide further decreases
STEEP = 1.0  # largest derivative at an optimum, or this times a thousandth of the value
WINDOW = 100  # iterations over which ``gain`` is measured
PAIRS = 20  # stored corrections


class Optimum(NamedTuple):
    """The end of a search."""

    point: Array  # (P,)
    value: float
    iterations: int
    converged: bool
    path: list[tuple[Array, float]]  # points and values after each iteration


def minimise(
    function: Function, starts: Sequence[Array], low: Array, high: Array, steps: int, gain: float = 0.0,
    pairs: int = PAIRS,
) -> Optimum:  # fmt: skip
    """Return the best of the searches from all starting points (P,), each with at most ``steps`` iterations.

    A search also converges if its last ``WINDOW`` iterations lowered the value by less than ``gain``. ``pairs`` is the
    number of stored corrections. ``function`` returns its value and gradient (P,), or raises FloatingPointError if it
    has none. Within a search such a point counts as worse than all others, and a start there is skipped. Raises the
    error of the last start if all are skipped.
    """
    found, error = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            found.append(_search(function, np.clip(start, low, high), low, high, steps, gain, pairs))
        except FloatingPointError as failure:
            error = failure
    if not found:
        raise error
    return min(found, key=lambda one: one.value)


def _search(function: Function, start: Array, low: Array, high: Array, steps: int, gain: float, pairs: int) -> Optimum:
    from scipy.optimize import minimize

    path: list[tuple[Array, float]] = []
    first = function(start)
    bad = first[0] + 1.0 + abs(first[0])  # larger than the value of any accepted step, so that the line search returns
    met = [False]  # per iteration, the current one last: whether it met points without a value
    best = start, *first  # after a failed line search, value and gradient of SciPy's result may belong to other points

    def bounded(point: Array) -> tuple[float, Array]:
        nonlocal best
        if np.array_equal(point, start):
            return first
        try:
            value, gradient = function(point)
        except FloatingPointError:
            met[-1] = True
            return bad, np.zeros(len(point))
        if value <= best[1]:
            best = point.copy(), value, gradient
        return value, gradient

    def settled() -> bool:
        return len(path) > WINDOW and path[-WINDOW - 1][1] - path[-1][1] < gain

    def note(intermediate_result: OptimizeResult) -> None:
        path.append((np.array(intermediate_result.x), float(intermediate_result.fun)))
        met.append(False)
        if settled():
            raise StopIteration

    options: dict[str, Any] = {"maxiter": steps, "maxfun": 20 * steps, "maxcor": pairs, "ftol": SHARP, "gtol": FLAT}
    bounds = np.column_stack([low, high])
    ended = minimize(bounded, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=note, options=options)
    point, value, gradient = best
    if not math.isfinite(value):
        raise FloatingPointError("the search ended at a point whose value is not finite")
    slope = float(np.abs(_projected_gradient(point, gradient, low, high)).max())
    flat, steep = slope < NEARLY_FLAT, slope > STEEP * max(1.0, 1e-3 * abs(value))
    # a line search that fails because of rounding errors is at an optimum; a search that stops at a cliff, or next to
    # points without a value, is not
    ends = flat or not (steep or any(met[-2:])) if ended.success else flat and ended.status == 2
    return Optimum(point, float(value), int(ended.nit), bool(ends or settled()), path)


def _projected_gradient(point: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Return the gradient (P,) with 0 for entries at a bound that a descent step would cross."""
    return np.where(((point <= low) & (gradient > 0.0)) | ((point >= high) & (gradient < 0.0)), 0.0, gradient)
