"""What a chain learns while it warms up: its step size and its masses.

The step size is dual averaging's (Hoffman and Gelman 2014, section 3.2, with their constants). The masses are the
diagonal of the Gauss-Newton Hessian, beta sum_b (d f_b / d w_i)^2 + tau_i, its sum over the rows averaged over the
draws of a window; with J the Jacobian (N, P) and z ~ N(0, 1), (J' z)_i^2 has that sum as its mean, at the price of a
gradient. Since beta and tau stand still during a trajectory, masses may follow them from one to the next, after warm-up
too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.hmc.trajectory import NetworkRows
from ep_bench.models.residuals import ResidualsWorkspace, half_squares

PULL, DELAY, FORGET = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper
REACH = 10.0  # the search is drawn towards so many times the starting step size
WINDOW, GROWTH = 20, 1.5  # iterations of the first window, and how windows grow
LAST = 0.15  # share of warm-up with the final masses


class StepSize:
    """Dual averaging towards a mean acceptance."""

    def __init__(self, start: float, target: float) -> None:
        self.target = target
        self.restart(start)

    def restart(self, start: float) -> None:
        """Search anew around a step size."""
        self._centre = math.log(REACH * start)
        self._count, self._miss, self._log, self._mean = 0, 0.0, math.log(start), math.log(start)

    def learn(self, acceptance: float) -> None:
        """Take in the acceptance probability of a trajectory."""
        self._count += 1
        t = self._count
        share = 1.0 / (t + DELAY)
        self._miss = (1.0 - share) * self._miss + share * (self.target - acceptance)
        self._log = self._centre - math.sqrt(t) / PULL * self._miss
        weight = t**-FORGET
        self._mean = weight * self._log + (1.0 - weight) * self._mean

    @property
    def trial(self) -> float:
        """The step size to try next."""
        return math.exp(self._log)

    @property
    def settled(self) -> float:
        """The average of those tried."""
        return math.exp(self._mean)


class RunningCurvature:
    """Running mean of diag(J'J) (P,) over the draws of a window."""

    def __init__(self, size: int) -> None:
        self._sum, self._count = np.zeros(size), 0

    def learn(
        self, rows: NetworkRows, w: Any, work: ResidualsWorkspace, rng: np.random.Generator, probes: int = 1
    ) -> None:
        """Add random probes of the squared Jacobian at weights w."""
        residual, shifted = np.empty_like(w), np.empty_like(w)
        half_squares(rows.X, rows.y, w, rows.layers, rows.kind, work, residual)
        for _ in range(probes):
            targets = rows.y + rng.standard_normal(len(rows.y))
            half_squares(rows.X, targets, w, rows.layers, rows.kind, work, shifted)
            self._sum += (shifted - residual) ** 2
            self._count += 1

    def mean(self) -> Any:
        """Return the mean."""
        return self._sum / self._count


def windows(warmup: int) -> tuple[list[int], int]:
    """Return after which iterations the masses are set anew, and how many iterations belong to the windows.

    No window is shorter than the first: few draws say less of the masses than the probes at the start do.
    """
    end = max(1, int((1.0 - LAST) * warmup))
    closes, at, length = [], 0, float(WINDOW)
    while at + length < end:
        at += int(length)
        closes.append(at)
        length *= GROWTH
    if end - at >= WINDOW:
        closes.append(end)
    elif closes:
        closes[-1] = end
    return closes, end
