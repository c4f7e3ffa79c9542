"""The scikit-learn regressors of registry methods, with standardised inputs and target."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.model import RegressionModel
from ep_bench.types import Array


class MethodRegressor(RegressorMixin, MethodEstimator, RegressionModel):  # type: ignore[misc]
    """Base class of the regressors of registry methods; see ``Estimator`` for the attributes after ``fit``."""

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> Self:
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
        return super().fit(inputs, np.asarray(targets, dtype=np.float64), **extra)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return means (n,), with ``return_std`` also standard deviations (n,), in original units, noise included."""
        distribution = self.predict_dist(X)
        return (distribution.mean(), distribution.std()) if return_std else distribution.mean()

    @available_if(lambda self: self.method.latent is not None)  # type: ignore[untyped-decorator]
    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return means (n,) and variances (n,) of the function at inputs X (n, d), without noise, in original units."""
        inputs = self._standardised(X)
        mean, variance = self.method.latent(self.state_, inputs)  # type: ignore[misc]
        scale = float(self.y_scaling_.scale[0])
        return float(self.y_scaling_.shift[0]) + scale * mean, scale**2 * variance
