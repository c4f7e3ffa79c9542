"""Covariance functions with their derivatives, their names in studies, and the priors of their parameters.

A covariance object has no parameter values of its own. Its methods take the natural logarithms of the parameters as a
vector theta (P,), in the order of ``names``. Inputs are arrays (n, d), usually in standardised units.

Modules: ``protocol`` (the interface), ``stationary``, ``network``, ``linear``, ``compound`` (sums and products),
``from_options`` (construction from the options of a study), ``options`` (shared options of methods),
``hyperparameters`` (weak priors, starting points, fixed values), ``map_search`` (learning), ``exact_evidence`` (of full
covariances), ``replicates`` (data points with the same inputs). Of sparse approximations: ``inducing`` (starts of
inducing inputs), ``sparse_bound``, ``sparse_evidence``, ``sparse_searches``. Of deep processes: ``energy_training``.
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
