"""Compiled epochs of Adam over minibatches of the bound, with draws of the weights or of the inputs of the units.

Each kernel takes all steps of an epoch, so that the loop over minibatches is compiled with its objective. The loop over
epochs is ``numerics.minibatch.run_epochs``.

Arguments: X (n, d) and y (n,); ``order`` (n,) indices; ``batch`` the size of a minibatch; ``theta`` and ``gradient``
(2 P + 1,), ``layers``, ``work``, ``words`` and ``prior_variance`` (P,) as in ``models.variational_bound``;
``empirical`` sets the prior variances of ``groups`` by empirical Bayes; ``learn_noise`` False fixes the noise variance;
``rate`` the step size of Adam. With a noise head (``heteroscedastic``), P includes its weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.vi.full_covariance import Correlations
from ep_bench.methods.vi.full_covariance import bound as full_bound
from ep_bench.methods.vi.full_covariance import draw as draw_full
from ep_bench.methods.vi.heteroscedastic import bound as heteroscedastic_bound
from ep_bench.methods.vi.local_reparameterisation import bound as local_bound
from ep_bench.methods.vi.local_reparameterisation import draw as draw_local
from ep_bench.models.empirical_prior import PriorGroups, best_prior
from ep_bench.models.variational_bound import bound as weights_bound
from ep_bench.models.variational_bound import draw as draw_weights
from ep_bench.numerics.adam import AdamMoments, adam_step
from ep_bench.numerics.copying import copy_rows, copy_vector
from ep_bench.numerics.jit import jit


@jit()
def weights_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, moments: AdamMoments, gradient: Any, layers: Any, work: Any,
    words: Any, prior_variance: Any, groups: PriorGroups, empirical: bool, learn_noise: bool, rate: float,
    heteroscedastic: bool | None,
) -> float:  # fmt: skip
    """Take one step per minibatch, weights drawn; return the mean of the negative bound over the steps, nats.

    ``heteroscedastic`` is True or None, so that only one of the two bounds is compiled.
    """
    n, d = X.shape
    total, steps = 0.0, 0
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        draw_weights(theta, words, work)
        if empirical:
            total += best_prior(theta, work.std, groups, prior_variance)
        if heteroscedastic is not None:
            total += heteroscedastic_bound(theta, Xb[:rows], yb[:rows], layers, n, prior_variance, work, gradient)
        else:
            total += weights_bound(theta, Xb[:rows], yb[:rows], layers, n, prior_variance, work, gradient)
        if not learn_noise:
            gradient[-1] = 0.0
        adam_step(theta, gradient, moments, rate)
        steps += 1
    return total / steps


@jit()
def full_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, moments: AdamMoments, gradient: Any, layers: Any, work: Any,
    words: Any, prior_variance: Any, groups: PriorGroups, empirical: bool,  # noqa: ARG001 the prior is fixed
    learn_noise: bool, rate: float, found: Correlations,
) -> float:  # fmt: skip
    """Run an epoch with a full covariance, whose correlations are ``found``; return the same.

    The step size of A is divided by the root of the number of weights: up to as many entries move each weight.
    """
    n, d = X.shape
    total, steps = 0.0, 0
    Xb, yb = np.empty((batch, d)), np.empty(batch)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        copy_rows(X, y, order[start : start + rows], Xb, yb)
        draw_full(theta, words, work, found)
        total += full_bound(theta, Xb[:rows], yb[:rows], layers, n, prior_variance, work, gradient, found)
        if not learn_noise:
            gradient[-1] = 0.0
        adam_step(theta, gradient, moments, rate)
        adam_step(found.values, found.gradient, found.moments, rate / math.sqrt(float(work.std.size)))
        steps += 1
    return total / steps


@jit()
def local_epoch(
    X: Any, y: Any, order: Any, batch: int, theta: Any, moments: AdamMoments, gradient: Any, layers: Any, work: Any,
    words: Any, prior_variance: Any, groups: PriorGroups, empirical: bool, learn_noise: bool, rate: float,
    samples: int,
) -> float:  # fmt: skip
    """Run an epoch with local reparameterisation, each data point ``samples`` times in its batch; return the same."""
    n, d = X.shape
    total, steps = 0.0, 0
    Xb, yb = np.empty((batch * samples, d)), np.empty(batch * samples)
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        for r in range(rows * samples):
            row = order[start + r % rows]
            yb[r] = y[row]
            copy_vector(X[row], Xb[r])
        draw_local(theta, words, work)
        if empirical:
            total += best_prior(theta, work.std, groups, prior_variance)
        copies = rows * samples
        total += local_bound(theta, Xb[:copies], yb[:copies], layers, n, prior_variance, work, gradient)
        if not learn_noise:
            gradient[-1] = 0.0
        adam_step(theta, gradient, moments, rate)
        steps += 1
    return total / steps
