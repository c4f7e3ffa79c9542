"""Passes of Adam over minibatches of the energy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.methods.bb_alpha.energy import deviations, energy
from ep_bench.models.meanfield import draw_weights
from ep_bench.numerics.adam import AdamMoments, adam_step
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import jit


@jit()
def train_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, moments: AdamMoments, gradient: Any, layers: Any, work: Any,
    words: Any, alpha: float, prior_variance: float, rate: float, learn_noise: bool,
) -> float:  # fmt: skip
    """Take the rows in their order, ``batch`` at a time, one step each; return the mean energy."""
    n, d = X.shape
    total, steps = 0.0, 0
    weights = work.W.shape[1]
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        deviations(theta, prior_variance, work, n)
        draw_weights(theta[:weights], work.vectors[0], words, work.noise, work.W)
        total += energy(theta, Xb[:rows], yb[:rows], layers, n, alpha, prior_variance, work, gradient)
        if not learn_noise:
            gradient[2 * weights] = 0.0
        adam_step(theta, gradient, moments, rate)
        steps += 1
    return total / steps
