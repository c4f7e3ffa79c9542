"""A compiled epoch of Adam over minibatches of the energy.

The kernel takes all steps of an epoch, so that the loop over minibatches is compiled with the energy. The loop over
epochs is ``numerics.minibatch.run_epochs``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.methods.bb_alpha.energy import energy, fill_factor
from ep_bench.models.meanfield import draw_weights
from ep_bench.numerics.adam import AdamMoments, adam_step
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import jit


@jit()
def train_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, moments: AdamMoments, gradient: Any, layers: Any, work: Any,
    words: Any, alpha: float, prior_variance: float, rate: float, noise_rate: float,
) -> float:  # fmt: skip
    """Take one step per minibatch; return the mean energy over the steps, nats.

    X (n, d) and y (n,); ``order`` (n,) indices; ``batch`` the size of a minibatch; ``theta`` and ``gradient``
    (2 P + 1,); ``layers`` (L, 3); ``words`` the state of the random number generator. The step size is ``rate``, that
    of the log noise variance ``noise_rate``; 0 fixes it.
    """
    n, d = X.shape
    total, steps = 0.0, 0
    weights = work.W.shape[1]
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        fill_factor(theta, prior_variance, work, n)
        draw_weights(theta[:weights], work.vectors[0], words, work.noise, work.W)
        total += energy(theta, Xb[:rows], yb[:rows], layers, n, alpha, prior_variance, work, gradient)
        before = theta[2 * weights]
        adam_step(theta, gradient, moments, rate)
        if noise_rate != rate:
            theta[2 * weights] = before + noise_rate / rate * (theta[2 * weights] - before)
        steps += 1
    return total / steps
