"""The log of the normal distribution function, which is the log-likelihood of a probit model."""

from __future__ import annotations

import math

from ep_bench.numerics.jit import jit

TAIL = 37.0  # standard deviations beyond which the tail of a Gaussian is computed from its asymptotic series


@jit()
def log_normal_cdf(z: float) -> tuple[float, float]:
    """Return log Phi(z) and its derivative, accurate in both tails."""
    if z > -TAIL:
        cdf = 0.5 * math.erfc(-z * math.sqrt(0.5))
        log_cdf = math.log(cdf) if z < 0.0 else math.log1p(-0.5 * math.erfc(z * math.sqrt(0.5)))
        return log_cdf, math.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * cdf)
    # Mills' ratio Phi(z) / phi(z) = (1 - 1 / z^2 + 3 / z^4 - 15 / z^6 ...) / |z|
    w = 1.0 / (z * z)
    ratio = (1.0 - w * (1.0 - w * (3.0 - w * (15.0 - w * 105.0)))) / -z
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) + math.log(ratio), 1.0 / ratio
