"""What the cases of Jylanki, Nummenmaa and Vehtari (2014) share: fits, and marginals of a finite network's weights.

A network with K hidden units has q(w_k) = N(m_k, S_k) for the weights to unit k, the bias last, q(v) for the output
weights, v_0 last, q(phi_l) for the logarithm of a scale's square and q(theta) for that of the noise variance, in the
units that the method sees.
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
    """A fitted model, or the reason why there is none."""

    model: Any
    seconds: float
    reason: str

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return mean and deviation (n,) of f at rows X (n, d) in the target's unit, NaN where the fit failed."""
        if self.model is None:
            return np.full(len(X), math.nan), np.full(len(X), math.nan)
        mean, variance = self.model.latent(X)
        return mean, np.sqrt(variance)

    @property
    def converged(self) -> bool | None:
        """Whether the method reached its own criterion, None where it failed or does not say."""
        found = getattr(self.model, "converged_", None)
        return None if found is None else bool(found)


def fitted(entry: ExperimentMethod, X: Array, y: Array, *, standardize: bool, seed: int) -> NetworkFit:
    """Fit a method to rows X (n, d), y (n,); one that does not converge tells it in ``converged``, not by a warning."""
    from sklearn.exceptions import ConvergenceWarning

    options = {**(entry.model_extra or {}), "standardize": standardize}
    warm_up(entry.use, options)
    started = time.perf_counter()
    model = Estimator(entry.use, **options, random_state=seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
    except FloatingPointError as error:
        return NetworkFit(None, time.perf_counter() - started, str(error))
    return NetworkFit(model, time.perf_counter() - started, "")


def unconverged(fits: list[NetworkFit]) -> NDArray[np.bool_]:
    """Return which fits (M,) say that they ended before their own criterion."""
    return np.array([fit.converged is False for fit in fits])


def is_network(model: Any) -> bool:
    """Return whether a model is a finite network whose weights have a posterior to be shown."""
    return hasattr(getattr(model, "state_", None), "weight_covariances")


def marginals(model: Any) -> dict[str, Array]:
    """Return means and deviations: ``weights`` (K, d + 1), ``outputs`` (K + 1,), ``scales`` (L,) and ``noise`` (1,).

    ``scales`` are phi, ``noise`` is theta, both logarithms of squares.
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
    """Return where the central interval of 95 percent leaves 0 out."""
    return np.abs(mean) > QUANTILE * std


def noise_deviation(model: Any) -> float:
    """Return a fitted model's noise deviation, in the target's unit: a network's at the mean of theta."""
    if is_network(model):
        variance = float(np.exp(np.ravel(model.state_.noise_mean)[0]))
    else:
        variance = float(model.state_.hyperparameters["noise_variance"])
    return math.sqrt(variance) * float(model.y_scaling_.scale[0])


def rounded(value: Any) -> float | str:
    """Return a number at 4 significant digits, and nothing for one that there is not."""
    return "" if value is None or not math.isfinite(value) else float(f"{float(value):.4g}")
