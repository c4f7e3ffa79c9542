"""Towards the fixed point of a map faster than by iterating it: jumps along a steady step, then Anderson's mixing.

Sweeps soon settle in a curved valley and then go along it, step after step in the same direction and hardly shorter.
Where a step has come to point where the last one did, a jump goes on along it: to where steps that go on shrinking
alike would end (Aitken's extrapolation), or as far as such jumps have lately gone well. Then sweeps settle again. Near
the fixed point the map is close to linear, and mixing the last iterates (Anderson 1965; Walker and Ni 2011) takes its
slowest modes away, as it does where steps go on turning instead of settling; it gives way to jumps where it does not
get on.
"""

from __future__ import annotations

import numpy as np

from ep_bench.types import Array

STEADY = 0.95  # cosine of successive steps from which a jump goes on along them
SETTLE = 5  # steps between jumps, at least
LEAST, LONGEST = 2.0, 256.0  # of the bound of jumps, in steps, which doubles before a jump where the last went well
GROWTH = 1.5  # of the relative step from jump to jump above which the bound is lowered
NEAR = 1e-3  # relative step at which mixing takes over
DEPTH = 10  # iterates that are mixed
WORSE = 4.0  # growth of the relative step at which mixing gives way
RINGING = 12  # steps after which mixing has its turn if none has been steady
TRIAL = 12  # steps in which mixing must halve the relative step, or it gives way


class Accelerator:
    """Proposes where to go on from a step of the map."""

    def __init__(self) -> None:
        """Start without a past."""
        self.near, self.bound = NEAR, LEAST
        self.forget()

    def forget(self) -> None:
        """Start anew, without blame: the map is another."""
        self.last: Array | None = None  # step, weighted
        self.settled = 0
        self.before = np.inf  # relative step at the last jump
        self.mixing = False
        self.best = np.inf
        self.trial, self.goal = 0, 0.0
        self.points: list[Array] = []
        self.steps: list[Array] = []

    def restart(self) -> None:
        """Start anew: the past led nowhere."""
        if self.mixing:
            self.near = min(self.near, self.best / 1.5)
        else:
            self.bound = max(LEAST, self.bound / 4.0)
        self.forget()

    def propose(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        """Return the next point, from a step of the map that began at ``start``.

        ``weights`` make the entries comparable, ``size`` is the relative size of the step. What is returned is
        ``start + step`` itself where there is nothing better to propose, and for entries of weight 0.
        """
        if not self.mixing and (size < self.near or self.settled > RINGING):
            self.forget()
            self.mixing, self.goal = True, 0.5 * size
        proposed = (self._mixed if self.mixing else self._jumped)(start, step, weights, size)
        proposed[weights == 0.0] = (start + step)[weights == 0.0]
        return proposed

    def _jumped(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        last, weighted = self.last, step * weights
        self.last, self.settled = weighted, self.settled + 1
        if last is None or self.settled <= SETTLE:
            return start + step
        along = weighted @ last
        if not along > STEADY * np.sqrt((weighted @ weighted) * (last @ last)):
            return start + step
        self.bound = min(2.0 * self.bound, LONGEST) if size < GROWTH * self.before else max(LEAST, self.bound / 4.0)
        shrinking = along / (last @ last)
        length = min(self.bound, float(shrinking / (1.0 - shrinking))) if shrinking < 1.0 else self.bound
        self.last, self.settled, self.before = None, 0, size
        return np.asarray(start + (1.0 + length) * step)

    def _mixed(self, start: Array, step: Array, weights: Array, size: float) -> Array:
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
        shares = np.linalg.solve(gram, scaled @ (step * weights))
        return np.asarray(start + step - shares @ (moved + changed))
