"""Towards the fixed point of a map faster than by iterating it: momentum, then Anderson's mixing.

Far from the fixed point sweeps go along a curved valley, step after step in nearly the same direction; momentum goes
along with them and starts anew where a step turns against it. Near it the map is close to linear, and mixing the last
iterates (Anderson 1965; Walker and Ni 2011) takes its slowest modes away; it gives way to momentum where it fails.
"""

from __future__ import annotations

import numpy as np

from ep_bench.types import Array

MOST_MOMENTUM, MORE = 0.85, 0.2  # of the last step; and how much more of it after every step
NEAR = 1e-3  # relative step at which mixing takes over
DEPTH = 10  # iterates that are mixed
WORSE = 4.0  # growth of the relative step at which mixing gives way
STALE = 40  # steps of mixing without a lower relative step after which it gives way


class Accelerator:
    """Proposes where to go on from a step of the map; ``restarts`` counts turns and failures."""

    def __init__(self) -> None:
        """Start without a past."""
        self.near = NEAR
        self.restarts = 0
        self._forget()

    def _forget(self) -> None:
        self.velocity: Array | None = None
        self.momentum = 0.0
        self.mixing = False
        self.best, self.age = np.inf, 0
        self.points: list[Array] = []
        self.steps: list[Array] = []

    def restart(self) -> None:
        """Forget the past: it led nowhere."""
        self.restarts += 1
        if self.mixing:
            self.near = min(self.near, self.best) / 1.5
        self._forget()

    def propose(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        """Return the next point, from a step of the map that began at ``start``.

        ``weights`` make the entries comparable, ``size`` is the relative size of the step. What is returned is
        ``start + step`` itself where there is nothing better to propose.
        """
        if not self.mixing and size < self.near:
            self._forget()
            self.mixing = True
        return self._mixed(start, step, weights, size) if self.mixing else self._pushed(start, step, weights)

    def _pushed(self, start: Array, step: Array, weights: Array) -> Array:
        if self.velocity is not None and (step * weights) @ (self.velocity * weights) < 0.0:
            self.restart()
        if self.velocity is None:
            self.velocity = step
            return start + step
        self.momentum = min(MOST_MOMENTUM, self.momentum + MORE)
        self.velocity = step + self.momentum * self.velocity
        return np.asarray(start + self.velocity)

    def _mixed(self, start: Array, step: Array, weights: Array, size: float) -> Array:
        self.age = 0 if size < self.best else self.age + 1
        self.best = min(self.best, size)
        if size > WORSE * self.best or self.age > STALE:
            self.restart()
            return start + step
        self.points, self.steps = [*self.points, start][-DEPTH - 1 :], [*self.steps, step][-DEPTH - 1 :]
        if len(self.points) < 2:
            return start + step
        moved, changed = np.diff(self.points, axis=0), np.diff(self.steps, axis=0)
        scaled = changed * weights
        gram = scaled @ scaled.T
        gram.flat[:: len(gram) + 1] += 1e-10 * np.trace(gram)
        shares = np.linalg.solve(gram, scaled @ (step * weights))
        return np.asarray(start + step - shares @ (moved + changed))
