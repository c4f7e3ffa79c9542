"""The noise precision of a mixture of networks, from data points that were not used in its fit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

LOG_PRECISION = (-5.0, 15.0)  # range of the search


def most_likely_precision(squares: NDArray[np.float64]) -> float:
    """Return the precision that maximises the mean log density of N targets under mixtures of S Gaussians.

    ``squares`` (S, N) are the squared residuals of the components, which have equal weights and a common precision.
    """
    from scipy.optimize import minimize_scalar

    def negative_log_density(log_precision: float) -> float:
        densities = logsumexp(-0.5 * math.exp(log_precision) * squares, axis=0)
        return -float(np.mean(densities)) - 0.5 * log_precision

    return math.exp(minimize_scalar(negative_log_density, bounds=LOG_PRECISION, method="bounded").x)
