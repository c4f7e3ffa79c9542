"""Compiled epochs of Adam over minibatches of the closed-form bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.methods.dvi.moments import MomentsWorkspace, bound, fill_weights
from ep_bench.models.empirical_prior import PriorGroups, best_prior
from ep_bench.numerics.adam import AdamMoments, adam_step
from ep_bench.numerics.copying import copy_rows
from ep_bench.numerics.jit import jit


@jit()
def run_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, steps: AdamMoments, gradient: Any, layers: Any,
    work: MomentsWorkspace, prior_variance: Any, groups: PriorGroups, rate: float,
) -> float:  # fmt: skip
    """Take one step per minibatch of X (n, d), y (n,); return the mean objective of the steps, nats.

    ``order`` (n,) indices; ``theta``, ``gradient``, ``layers``, ``work`` and ``prior_variance`` as in ``moments``; the
    prior variances of ``groups`` are updated before each step of size ``rate``.
    """
    n, d = X.shape
    total, count = 0.0, 0
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        fill_weights(theta, work)
        total += best_prior(theta, work.std, groups, prior_variance)
        total += bound(theta, Xb[:rows], yb[:rows], layers, n, prior_variance, work, gradient)
        adam_step(theta, gradient, steps, rate)
        count += 1
    return total / count
