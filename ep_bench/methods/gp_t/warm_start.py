"""An inference along a search for hyperparameters: its end at one point is where it starts at the next.

EP, Laplace's method and KL start from sites. Those of the nearest of the last points are taken; where they do not lead
to a fixed point, they are followed there by halves of the way. All schemes of EP are for the first point alone: where
none of this helps, the search steps back.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Protocol

import numpy as np

from ep_bench.methods.gp_t.ep import LIMITS, EPLimits, Start
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.types import Array

KNOWN = 30  # points of which sites are kept
FAR = 0.5  # change of a logarithm that is not halved
HALVINGS = 2


class Inference(Protocol):
    """An inference at logarithms theta (P,), from given sites if there are any; FloatingPointError where it fails."""

    def __call__(self, theta: Array, start: Start | None = None, limits: EPLimits = LIMITS) -> InferenceResult: ...


class WarmStartPath:
    """The points of a search, with ``limits`` of EP at the first."""

    def __init__(self, infer: Inference, limits: EPLimits) -> None:
        self._infer, self._limits = infer, limits
        self._brief = limits._replace(rounds=0)
        self._known: deque[tuple[Array, Start]] = deque(maxlen=KNOWN)

    def follow(self, theta: Array, halvings: int = HALVINGS) -> InferenceResult:
        """Return the inference at theta (P,). Raises FloatingPointError where it cannot be had from what is known."""
        known, start = self._nearest(theta)
        try:
            found = self._infer(theta, start, self._limits if start is None else self._brief)
        except FloatingPointError:
            if start is None or halvings == 0 or np.abs(theta - known).max() > FAR:
                raise
            self.follow(0.5 * (known + theta), halvings - 1)
            found = self.follow(theta, halvings - 1)
        if found.shifts is not None:
            self._known.append((theta.copy(), (found.precisions, found.shifts)))
        return found

    def ended(self, theta: Array) -> InferenceResult:
        """Return what sweeps from empty sites come to, which hangs on no path, or else those nearby, or all schemes."""
        for start, close in ((None, LIMITS.close), (self._nearest(theta)[1], self._limits.close)):
            with suppress(FloatingPointError):
                return self._infer(theta, start, EPLimits(close, 0))
        return self._infer(theta)

    def _nearest(self, theta: Array) -> tuple[Array, Start | None]:
        if not self._known:
            return theta, None
        return min(self._known, key=lambda one: float(np.abs(theta - one[0]).max()))
