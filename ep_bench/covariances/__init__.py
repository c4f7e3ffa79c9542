"""Covariance functions with their derivatives, the names that studies give them, and the law of their parameters.

A covariance is a structure without values: it reads the natural logarithms of its parameters from a vector theta (P,),
in the order of its ``roles``. Inputs are rows (n, d) of the units that a method sees, standardised ones as a rule.

Modules: ``protocol`` (what each can do), ``stationary``, ``network``, ``linear``, ``compound`` (sums and products),
``from_options`` (from a study's words), ``hyperparameters`` (weak priors, starting points, parameters that are given).
"""

from ep_bench.covariances.compound import Product, Sum
from ep_bench.covariances.from_options import Kernel, build
from ep_bench.covariances.linear import Constant, Linear
from ep_bench.covariances.network import NetworkCovariance
from ep_bench.covariances.protocol import Covariance, matrix
from ep_bench.covariances.stationary import Stationary

__all__ = [
    "Constant",
    "Covariance",
    "Kernel",
    "Linear",
    "NetworkCovariance",
    "Product",
    "Stationary",
    "Sum",
    "build",
    "matrix",
]
