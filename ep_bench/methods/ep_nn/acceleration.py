"""Acceleration of a fixed-point iteration: extrapolation along steady steps, then Anderson mixing.

Sweeps soon reach a curved valley and then follow it in steps of almost constant direction and length. If a step has the
direction of the last one, the iteration is extrapolated: to the limit of a geometric series of such steps (Aitken), or
as far as recent extrapolations succeeded. Some plain sweeps follow. Near the fixed point the map is close to linear.
Mixing the last iterates (Anderson 1965; Walker and Ni 2011) then removes the slowest modes. Mixing is also used if the
steps keep changing direction. It gives way to extrapolation if it makes no progress.
"""

from __future__ import annotations

import numpy as np

from ep_bench.types import Array

STEADY = 0.95  # minimum cosine of successive steps for an extrapolation
SETTLE = 5  # minimum number of steps between extrapolations
# Range of the maximum length of an extrapolation, in steps; the maximum doubles after a successful one.
SHORTEST, LONGEST = 2.0, 256.0
GROWTH = 1.5  # growth of the relative step between extrapolations above which the maximum is lowered
NEAR = 1e-3  # relative step below which mixing replaces extrapolation
DEPTH = 10  # number of mixed iterates
WORSE = 4.0  # growth of the relative step at which mixing ends
RINGING = 12  # steps without a steady one after which mixing starts
TRIAL = 12  # steps in which mixing must halve the relative step, else it ends


class Accelerator:
    """Proposes the next iterate from a step of the map."""

    def __init__(self) -> None:
        self.near, self.bound = NEAR, SHORTEST
        self.forget()

    def forget(self) -> None:
        """Discard the history, because the map has changed."""
        self.last: Array | None = None  # last step, weighted
        self.settled = 0
        self.before = np.inf  # relative step at the last extrapolation
        self.mixing = False
        self.best = np.inf
        self.trial, self.goal = 0, 0.0
        self.points: list[Array] = []
        self.steps: list[Array] = []

    def restart(self) -> None:
        """Discard the history and proceed more cautiously, because the last proposals failed."""
        if self.mixing:
            self.near = min(self.near, self.best / 1.5)
        else:
            self.bound = max(SHORTEST, self.bound / 4.0)
        self.forget()

    def propose(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        """Return the next iterate (P,) from a step (P,) of the map that began at ``start`` (P,).

        ``weights`` (P,) make the entries comparable; ``size`` is the relative norm of the step. The result is
        ``start + step`` if there is no better proposal, and for entries of weight 0.
        """
        if not self.mixing and (size < self.near or self.settled > RINGING):
            self.forget()
            self.mixing, self.goal = True, 0.5 * size
        proposed = (self._mixed if self.mixing else self._extrapolated)(start, step, weights, size)
        proposed[weights == 0.0] = (start + step)[weights == 0.0]
        return proposed

    def _extrapolated(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        """Return the iterate by extrapolation; arguments as in ``propose``."""
        last, weighted = self.last, step * weights
        self.last, self.settled = weighted, self.settled + 1
        if last is None or self.settled <= SETTLE:
            return start + step
        along = weighted @ last
        if not along > STEADY * np.sqrt((weighted @ weighted) * (last @ last)):
            return start + step
        self.bound = min(2.0 * self.bound, LONGEST) if size < GROWTH * self.before else max(SHORTEST, self.bound / 4.0)
        shrinking = along / (last @ last)
        length = min(self.bound, float(shrinking / (1.0 - shrinking))) if shrinking < 1.0 else self.bound
        self.last, self.settled, self.before = None, 0, size
        return np.asarray(start + (1.0 + length) * step)

    def _mixed(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        """Return the iterate by Anderson mixing; arguments as in ``propose``."""
        self.best, self.trial = min(self.best, size), self.trial + 1
        if size > WORSE * self.best or (self.trial > TRIAL and self.best > self.goal):
            self.restart()
            return start + step
        if self.trial > TRIAL:
            self.trial, self.goal = 0, 0.5 * self.best
        self.points, self.steps = [*self.points, start][-DEPTH - 1 :], [*self.steps, step][-DEPTH - 1 :]
        if len(self.points) < 2:
            return start + step
        moved, changed = np.diff(self.points, axis=0), np.diff(self.steps, axis=0)
        scaled = changed * weights
        gram = scaled @ scaled.T
        if not np.trace(gram) > 0.0:
            return start + step
        gram.flat[:: len(gram) + 1] += 1e-10 * np.trace(gram)
        coefficients = np.linalg.solve(gram, scaled @ (step * weights))
        return np.asarray(start + step - coefficients @ (moved + changed))
