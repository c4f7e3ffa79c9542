"""The least of a smooth function between limits, by L-BFGS-B from several starting points (Byrd et al. 1995)."""

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

SHARP = 1e-9  # a step that lowers the value by less of it, or of 1, is the last
FLAT = 1e-4  # so is one that leaves no derivative above this
NEARLY_FLAT = 1e-2  # what rounding may leave where no step lowers the value any more
STEEP = 1.0  # a derivative above it, or above it times a thousandth of the value, is left at no end
WINDOW = 100  # iterations that are looked back on
PAIRS = 20  # steps that the search remembers


class Optimum(NamedTuple):
    """Where a search ended."""

    point: Array  # (P,)
    value: float
    iterations: int
    converged: bool
    path: list[tuple[Array, float]]  # points and values after each iteration


def minimise(
    function: Function, starts: Sequence[Array], low: Array, high: Array, steps: int, gain: float = 0.0
) -> Optimum:
    """Return the best of the searches from all starting points (P,), each of at most so many iterations.

    A search has converged, too, whose last ``WINDOW`` iterations lowered the value by less than ``gain``.

    ``function`` returns its value and gradient, or raises FloatingPointError where it has none: inside a search such
    a point counts as bad, a start there is passed over. Raises the last start's error where no start is left.
    """
    found, error = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            found.append(_search(function, np.clip(start, low, high), low, high, steps, gain))
        except FloatingPointError as lost:
            error = lost
    if not found:
        raise error
    return min(found, key=lambda one: one.value)


def _search(function: Function, start: Array, low: Array, high: Array, steps: int, gain: float) -> Optimum:
    from scipy.optimize import minimize

    path: list[tuple[Array, float]] = []
    first = function(start)
    bad = first[0] + 1.0 + abs(first[0])  # above what any accepted step has: the line search comes back
    met = [False]  # whether each iteration, the one at hand last, came to points without a value
    best = start, *first  # what the search itself returns after a line search that failed may belong to several points

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

    options: dict[str, Any] = {"maxiter": steps, "maxfun": 20 * steps, "maxcor": PAIRS, "ftol": SHARP, "gtol": FLAT}
    bounds = np.column_stack([low, high])
    ended = minimize(bounded, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=note, options=options)
    point, value, gradient = best
    if not math.isfinite(value):
        raise FloatingPointError("the search ended where the value is not finite")
    slope = float(np.abs(_projected_gradient(point, gradient, low, high)).max())
    flat, steep = slope < NEARLY_FLAT, slope > STEEP * max(1.0, 1e-3 * abs(value))
    # a line search that fails at the last digits is an end; a short step at a cliff, or in front of points without a
    # value, is none
    ends = flat or not (steep or any(met[-2:])) if ended.success else flat and ended.status == 2
    return Optimum(point, float(value), int(ended.nit), bool(ends or settled()), path)


def _projected_gradient(point: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Return the gradient without what points out of the limits."""
    return np.where(((point <= low) & (gradient > 0.0)) | ((point >= high) & (gradient < 0.0)), 0.0, gradient)
