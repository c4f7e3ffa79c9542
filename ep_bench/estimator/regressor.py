"""The scikit-learn regressors of registry methods, with standardised inputs and target."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.model import RegressionModel
from ep_bench.predictions import missing_density
from ep_bench.types import Array

COMPARED = 100  # training points whose density is compared with that of a constant, at most
NO_GAIN = 0.02  # mean log-likelihood above that of a constant, nats; less is no fit
FEW = 10  # data points; with fewer, the densities on the training data say nothing


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
        UserWarning
            The fit is no better than a constant on its own training data, or there are fewer than 10 data points.
        """
        self._forget()
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        super().fit(inputs, np.asarray(targets, dtype=np.float64), **extra)
        if poor := self._poor_fit(inputs, targets):
            warnings.warn(poor, UserWarning, stacklevel=2)
        return self

    def _poor_fit(self, X: Array, y: Array) -> str:
        """Return why predictions may be poor, from training inputs X (n, d) and targets y (n,); empty if good."""
        if len(y) < FEW:
            return f"with {len(y)} data points, the noise is hardly known; densities of new points can be extremely low"
        some = slice(None, None, -(-len(y) // COMPARED))
        variance = float(y[some].var())
        prediction = self.predict_dist(X[some])
        if variance == 0.0 or missing_density(prediction):
            return ""
        found, constant = float(prediction.logpdf(y[some]).mean()), -0.5 * math.log(2.0 * math.pi * math.e * variance)
        if found >= constant + NO_GAIN:
            return ""
        return (
            "the fit is no better than a constant on its own training data: the mean log-likelihood is "
            f"{found:.3g}, that of a constant {constant:.3g}"
        )

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
