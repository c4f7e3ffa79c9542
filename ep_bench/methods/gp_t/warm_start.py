"""Inferences along a search for hyperparameters, each started from the sites of an earlier one.

EP, Laplace's method and KL start from the sites of the nearest of the last points. If they do not converge from there,
intermediate points are tried, by halving the distance. All schemes of EP are tried at the first point only. If nothing
helps, the inference raises an error, and the search shortens its step.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Protocol

import numpy as np

from ep_bench.methods.gp_t.ep import LIMITS, EPLimits, Start
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.types import Array

KNOWN = 30  # number of points whose sites are stored
FAR = 0.5  # change of a logarithm beyond which no intermediate points are tried
HALVINGS = 2


class Inference(Protocol):
    """An inference at logarithms theta (P,), from the sites ``start``. Raises FloatingPointError if it fails."""

    def __call__(self, theta: Array, start: Start | None = None, limits: EPLimits = LIMITS) -> InferenceResult: ...


class WarmStartPath:
    """The last points of a search with their sites; ``limits`` are those of EP at the first point."""

    def __init__(self, infer: Inference, limits: EPLimits) -> None:
        self._infer, self._limits = infer, limits
        self._brief = limits._replace(rounds=0)
        self._known: deque[tuple[Array, Start]] = deque(maxlen=KNOWN)

    def follow(self, theta: Array, halvings: int = HALVINGS) -> InferenceResult:
        """Return the inference at theta (P,). Raises FloatingPointError if it does not converge from known sites."""
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

    def final(self, theta: Array) -> InferenceResult:
        """Return the inference that is reported at the end of a search.

        Sweeps from empty sites are tried first, because their result does not depend on the search. Sweeps from the
        nearest sites and then all schemes follow. Raises FloatingPointError if none converges.
        """
        for start, close in ((None, LIMITS.close), (self._nearest(theta)[1], self._limits.close)):
            with suppress(FloatingPointError):
                return self._infer(theta, start, EPLimits(close, 0))
        return self._infer(theta)

    def _nearest(self, theta: Array) -> tuple[Array, Start | None]:
        if not self._known:
            return theta, None
        return min(self._known, key=lambda one: float(np.abs(theta - one[0]).max()))
