"""Fits of networks, and marginals of a finite network's weights.

A network with K hidden units has q(w_k) = N(m_k, S_k) for the weights to unit k, with the bias last; q(v) for the
output weights, with v_0 last; q(phi_l) for the logarithm of a squared scale; and q(theta) for the logarithm of the
noise variance. All are in the units of the data given to the method.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.estimator import Estimator, warm_up
from ep_bench.experiments.ep_nn_2014 import QUANTILE
from ep_bench.experiments.method_entries import ExperimentMethod
from ep_bench.types import Array


class NetworkFit(NamedTuple):
    """A fitted model, or None and the reason of the failure."""

    model: Any
    seconds: float
    reason: str

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation (n,) of f at X (n, d) in the target's unit, NaN if the fit failed."""
        if self.model is None:
            return np.full(len(X), math.nan), np.full(len(X), math.nan)
        mean, variance = self.model.latent(X)
        return mean, np.sqrt(variance)

    @property
    def converged(self) -> bool | None:
        """Whether the method converged by its own criterion; None if it failed or does not report it."""
        found = getattr(self.model, "converged_", None)
        return None if found is None else bool(found)


def fitted(entry: ExperimentMethod, X: Array, y: Array, *, standardize: bool, seed: int) -> NetworkFit:
    """Fit a method to X (n, d) and y (n,). ``converged`` reports a lack of convergence; there is no warning."""
    from sklearn.exceptions import ConvergenceWarning

    options = {**(entry.model_extra or {}), "standardize": standardize}
    warm_up(entry.use, options)
    started = time.perf_counter()
    model = Estimator(entry.use, **options, random_state=seed)
    try:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(X, y)
    except FloatingPointError as error:
        return NetworkFit(None, time.perf_counter() - started, str(error))
    return NetworkFit(model, time.perf_counter() - started, "")


def unconverged(fits: list[NetworkFit]) -> NDArray[np.bool_]:
    """Return which fits (M,) ended before convergence."""
    return np.array([fit.converged is False for fit in fits])


def is_network(model: Any) -> bool:
    """Return whether a model is a finite network with a posterior of its weights."""
    return hasattr(getattr(model, "state_", None), "weight_covariances")


def marginals(model: Any) -> dict[str, Array]:
    """Return means and, with the suffix ``_std``, standard deviations of a network's parameters.

    ``weights`` (K, d + 1), ``outputs`` (K + 1,), ``scales`` (L,) (phi) and ``noise`` (1,) (theta); the last two are
    logarithms of squares.
    """
    state = model.state_
    pairs = {
        "weights": (state.weight_means, np.diagonal(state.weight_covariances, axis1=1, axis2=2)),
        "outputs": (state.output_mean, np.diagonal(state.output_covariance)),
        "scales": (np.atleast_1d(state.scale_means), np.atleast_1d(state.scale_variances)),
        "noise": (np.atleast_1d(state.noise_mean), np.atleast_1d(state.noise_variance)),
    }
    found: dict[str, Array] = {}
    for name, (mean, variance) in pairs.items():
        found |= {name: np.asarray(mean, dtype=np.float64), f"{name}_std": np.sqrt(np.asarray(variance))}
    return found


def excludes_zero(mean: Array, std: Array) -> Any:
    """Return where the central interval of 95 percent excludes 0."""
    return np.abs(mean) > QUANTILE * std


def noise_deviation(model: Any) -> float:
    """Return the noise standard deviation of a fitted model in the target's unit.

    For a network, it is that at the mean of theta.
    """
    if is_network(model):
        variance = float(np.exp(np.ravel(model.state_.noise_mean)[0]))
    else:
        variance = float(model.state_.hyperparameters["noise_variance"])
    return math.sqrt(variance) * float(model.y_scaling_.scale[0])


def rounded(value: Any) -> float | str:
    """Return a number with 4 significant digits, or an empty text if it is missing or not finite."""
    return "" if value is None or not math.isfinite(value) else float(f"{float(value):.4g}")
