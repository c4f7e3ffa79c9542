"""Adaptation of a chain in its warm-up: step size and masses.

The step size is set by dual averaging (Hoffman and Gelman 2014, section 3.2, with their constants). The masses are the
diagonal of the Gauss-Newton Hessian, beta sum_b (d f_b / d w_i)^2 + tau_i, with the sum over data points averaged over
the draws of a window. With J the Jacobian (N, P) and z ~ N(0, 1), the mean of (J' z)_i^2 is that sum, at the cost of
one gradient. beta and tau are constant during a trajectory, so the masses may follow them from one trajectory to the
next, after the warm-up too.

The posterior does not change if the units of a layer are permuted, so weights of the same role in different units have
the same expected curvature. ``pooled`` averages over them. The masses then do not become outdated when units exchange
their roles, and the average has less noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.hmc.trajectory import NetworkRows
from ep_bench.models.residuals import ResidualsWorkspace, half_squares

PULL, DELAY, FORGET = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper
REACH = 10.0  # mu = log(REACH * first step size): the search is drawn towards larger steps
WINDOW, GROWTH = 20, 1.5  # iterations of the first window, and the factor by which windows grow
LAST = 0.15  # fraction of the warm-up with the final masses


class StepSize:
    """Dual averaging of the step size towards a mean acceptance probability."""

    def __init__(self, start: float, target: float) -> None:
        self.target = target
        self.restart(start)

    def restart(self, start: float) -> None:
        """Restart the search at a step size."""
        self._centre = math.log(REACH * start)
        self._count, self._miss, self._log, self._mean = 0, 0.0, math.log(start), math.log(start)

    def update(self, acceptance: float) -> None:
        """Update the step sizes with the acceptance probability of a trajectory."""
        self._count += 1
        t = self._count
        weight = 1.0 / (t + DELAY)
        self._miss = (1.0 - weight) * self._miss + weight * (self.target - acceptance)
        self._log = self._centre - math.sqrt(t) / PULL * self._miss
        weight = t**-FORGET
        self._mean = weight * self._log + (1.0 - weight) * self._mean

    @property
    def trial(self) -> float:
        """The step size of the next trajectory in the warm-up."""
        return math.exp(self._log)

    @property
    def averaged(self) -> float:
        """The weighted geometric mean of the step sizes tried so far."""
        return math.exp(self._mean)


class RunningCurvature:
    """Running mean of diag(J'J) (P,) over the draws of a window."""

    def __init__(self, size: int) -> None:
        self._sum, self._count = np.zeros(size), 0

    def add(
        self, rows: NetworkRows, w: Any, work: ResidualsWorkspace, rng: np.random.Generator, probes: int = 1
    ) -> None:
        """Add random probes of the squared Jacobian at weights w (P,)."""
        residual, shifted = np.empty_like(w), np.empty_like(w)
        half_squares(rows.X, rows.y, w, rows.layers, rows.kind, work, residual)
        for _ in range(probes):
            targets = rows.y + rng.standard_normal(len(rows.y))
            half_squares(rows.X, targets, w, rows.layers, rows.kind, work, shifted)
            self._sum += (shifted - residual) ** 2
            self._count += 1

    def mean(self) -> Any:
        """Return the mean (P,)."""
        return self._sum / self._count


def pooled(curvature: Any, layers: Any) -> Any:
    """Return the curvature (P,) averaged over the units of each hidden layer; ``layers`` (L, 3) as in ``models.mlp``.

    One value is left per input of the network, one for the weights between two hidden layers, one for the biases of
    each hidden layer, one for the weights of the output, and one for its bias.
    """
    out = curvature.copy()
    for index, (offset, n_in, n_out) in enumerate(layers.tolist()):
        weights = out[offset : offset + n_in * n_out].reshape(n_in, n_out)
        biases = out[offset + n_in * n_out : offset + (n_in + 1) * n_out]
        weights[:] = weights.mean(axis=1, keepdims=True) if index == 0 else weights.mean()
        biases[:] = biases.mean()
    return out


def windows(warmup: int) -> tuple[list[int], int]:
    """Return the iterations after which the masses are updated, and the number of iterations in all windows.

    No window is shorter than the first, because fewer draws estimate the masses worse than the probes at the start.
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
