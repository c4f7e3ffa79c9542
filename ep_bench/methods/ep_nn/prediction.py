"""Moments of the network's function, equation (34) with q in place of the cavities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.ep_nn.outputs import inner, times
from ep_bench.methods.ep_nn.tilted import activation_moments
from ep_bench.numerics.jit import FUSE, jit


@jit(relaxed=FUSE)
def function_moments(m: Any, V: Any, linear: Any, mu: Any, S: Any, mean: Any, variance: Any) -> None:
    """Write mean and variance (n,) of f from means m and variances V (n, K) of h.

    v has mean mu (K + 1,) and covariance S (K + 1, K + 1); ``linear`` (K,) flags.
    """
    n, K = m.shape
    scale, m_g, cross = 1.0 / math.sqrt(K), np.ones(K + 1), np.empty(K + 1)
    for i in range(n):
        spread = 0.0
        for k in range(K):
            m_g[k], V_g = activation_moments(m[i, k], V[i, k], scale, linear[k])
            spread += V_g * (S[k, k] + mu[k] * mu[k])
        times(S, m_g, cross)
        mean[i], variance[i] = inner(mu, m_g), inner(m_g, cross) + spread
