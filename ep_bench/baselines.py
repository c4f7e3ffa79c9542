"""Simple predictors to compare with, used in studies by dotted path like any method from outside."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench.types import Array


class ConstantRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the mean and the standard deviation (ddof 0) of the training targets, whatever the inputs."""

    version = 1

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn's checks that a constant is a poor score on purpose."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Array, y: Array) -> ConstantRegressor:
        """Keep mean and deviation of y (n,); original units."""
        X, y = validate_data(self, X, y, y_numeric=True)
        self.mean_, self.std_ = float(np.mean(y)), float(np.std(y))
        return self

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean for each row of X (n, d), with ``return_std`` also the deviation."""
        check_is_fitted(self)
        n = len(validate_data(self, X, reset=False))
        mean = np.full(n, self.mean_)
        return (mean, np.full(n, self.std_)) if return_std else mean
