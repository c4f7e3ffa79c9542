"""Adam (Kingma and Ba 2015, algorithm 1): one step, in place."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.jit import FUSE, jit

DECAY_FIRST, DECAY_SECOND, EPSILON = 0.9, 0.999, 1e-8  # as in the paper
VANISHED = 1e-100  # parameters and gradients below it change no sum of numbers of ordinary size


class AdamMoments(NamedTuple):
    """Running moments of the gradient, and the number of steps taken."""

    first: Any  # (P,)
    second: Any  # (P,)
    steps: Any  # (1,) integer


def moments(size: int) -> AdamMoments:
    """Return the moments before the first step."""
    return AdamMoments(np.zeros(size), np.zeros(size), np.zeros(1, dtype=np.int64))


@jit(relaxed=FUSE)
def adam_step(theta: Any, gradient: Any, state: AdamMoments, rate: float) -> None:
    """Update the parameters (P,) by one step of size ``rate`` against the gradient (P,)."""
    state.steps[0] += 1
    t = state.steps[0]
    scale = rate / (1.0 - DECAY_FIRST**t)
    root = 1.0 / math.sqrt(1.0 - DECAY_SECOND**t)
    first, second = state.first, state.second
    for i in range(theta.size):
        g = gradient[i]
        first[i] = DECAY_FIRST * first[i] + (1.0 - DECAY_FIRST) * g
        second[i] = DECAY_SECOND * second[i] + (1.0 - DECAY_SECOND) * g * g
        theta[i] -= scale * first[i] / (math.sqrt(second[i]) * root + EPSILON)


@jit()
def clear_vanished(theta: Any, state: AdamMoments) -> None:
    """Set parameters (P,) and moments that have decayed to almost 0 to 0, before they become subnormal numbers.

    Some processors take a hundred times as long for arithmetic with subnormal numbers.
    """
    first, second = state.first, state.second
    for i in range(theta.size):
        if abs(theta[i]) < VANISHED:
            theta[i] = 0.0
        if abs(first[i]) < VANISHED:
            first[i] = 0.0
        if second[i] < VANISHED * VANISHED:
            second[i] = 0.0
