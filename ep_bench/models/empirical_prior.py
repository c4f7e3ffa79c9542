"""The empirical-Bayes prior of Wu et al. (2019, section 4), with the constants of their released program.

The weights of each layer have a common prior variance v, and so have its biases; the noise head belongs to the output
layer. Each v has an inverse-gamma prior with shape a and rate b, whose mode is 5 / n_in. For a group of m weights, the
maximum over v of the variational bound with log p(v) has a closed form:

    v = (S + 2 b) / (m + 2 a + 2),   S = sum (mean^2 + standard deviation^2)

a = 4.4798 and b = 5 (a + 1) / n_in. Since v is a maximum, the gradient by the other parameters treats it as fixed.

Deviation: the released program leaves log p(v) out of the objective, although v maximises the bound with it, and
differentiates through v.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.models import mlp
from ep_bench.numerics.jit import jit

SHAPE = 4.4798  # a
MODE = 5.0  # mode of the prior variance, times n_in


class PriorGroups(NamedTuple):
    """Groups of weights with a common prior variance: two per layer, weights and biases."""

    group: Any  # (P + H,) index of the group of each weight
    size: Any  # (2 L,) m
    rate: Any  # (2 L,) b
    constant: float  # of -log p(v), summed over the groups


def prior_groups(layers: Any, head: int) -> PriorGroups:
    """Return the groups of the layers (L, 3) and of ``head`` weights of a noise head, 0 without one."""
    group = np.empty(mlp.count(layers) + head, dtype=np.int64)
    for l, (offset, n_in, n_out) in enumerate(layers.tolist()):
        end = offset + n_in * n_out
        group[offset:end], group[end : end + n_out] = 2 * l, 2 * l + 1
    if head:
        group[-head:-1], group[-1] = 2 * len(layers) - 2, 2 * len(layers) - 1
    rate = np.repeat((SHAPE + 1.0) * MODE / layers[:, 1], 2)
    constant = float((math.lgamma(SHAPE) - SHAPE * np.log(rate)).sum())
    return PriorGroups(group, np.bincount(group).astype(np.float64), rate, constant)


@jit()
def best_prior(theta: Any, std: Any, groups: PriorGroups, prior_variance: Any) -> float:
    """Write the best prior variances (P + H,) of q with means theta[: P + H] and ``std`` (P + H,).

    Returns the sum of -log p(v) over the groups, nats.
    """
    best = 2.0 * groups.rate
    for i in range(std.size):
        best[groups.group[i]] += theta[i] * theta[i] + std[i] * std[i]
    penalty = groups.constant
    for g in range(best.size):
        best[g] /= groups.size[g] + 2.0 * SHAPE + 2.0
        penalty += (SHAPE + 1.0) * math.log(best[g]) + groups.rate[g] / best[g]
    for i in range(std.size):
        prior_variance[i] = best[groups.group[i]]
    return penalty
