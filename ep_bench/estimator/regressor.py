"""The scikit-learn regressors of registry methods, with standardised inputs and target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.scaling import standardisation
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Rows


class MethodRegressor(RegressorMixin, MethodEstimator):  # type: ignore[misc]
    """Base class of the regressors of registry methods; see ``Estimator`` for the attributes after ``fit``."""

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> MethodRegressor:
        """Fit to inputs X (n, d) and targets y (n,) in original units.

        After an error the estimator is not fitted, even if it was before.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,)
            Targets.
        **extra
            Passed to the method's own ``fit``; PBP has ``start`` and ``orders``.

        Returns
        -------
        MethodRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            An array or option is not valid.
        FloatingPointError
            The method diverges.

        Warns
        -----
        ConvergenceWarning
            The method did not meet its own criterion.
        """
        self._forget()
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        targets = np.asarray(targets, dtype=np.float64)
        self.x_scaling_, self.y_scaling_ = standardisation(
            inputs, targets, self.constant_inputs, active=self.standardize
        )
        self._fit_rows(Rows(self.x_scaling_.apply(inputs), self.y_scaling_.apply(targets[:, None])[:, 0]), extra)
        return self

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Return the predictive distribution at inputs X (n, d), in original units, noise included."""
        standardised: Predictive = self._answer(X)
        return standardised.rescale(float(self.y_scaling_.shift[0]), float(self.y_scaling_.scale[0]))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return means (n,), with ``return_std`` also standard deviations (n,), in original units, noise included."""
        distribution = self.predict_dist(X)
        return (distribution.mean(), distribution.std()) if return_std else distribution.mean()

    def diagnose(self, X: ArrayLike, name: str = "predictions") -> dict[str, float]:
        """Return convergence diagnostics of a sampler's predictions at inputs X (n, d); empty for other methods.

        The keys are ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` followed by ``name``. The values are the worst over the
        inputs, computed from the draws used for predictions by ``numerics.mcmc_diagnostics.measures``.
        """
        distribution = self.predict_dist(X)
        chain = getattr(self.state_, "chain", None)
        if chain is None:
            return {}
        means = distribution.means[:: len(distribution.means) // len(chain)]  # components of a draw have equal means
        by_chain = np.array([means[chain == place] for place in range(int(chain.max()) + 1)])
        return mcmc_diagnostics.measures(name, by_chain)[0]

    @available_if(lambda self: self.method.latent is not None)  # type: ignore[untyped-decorator]
    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return means (n,) and variances (n,) of the function at inputs X (n, d), without noise, in original units."""
        inputs = self._standardised(X)
        mean, variance = self.method.latent(self.state_, inputs)  # type: ignore[misc]
        scale = float(self.y_scaling_.scale[0])
        return float(self.y_scaling_.shift[0]) + scale * mean, scale**2 * variance
