"""Simple predictors to compare with, used in studies by dotted path like any method from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
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


class ConstantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the shares of the classes among the training rows, whatever the inputs."""

    version = 1

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn's checks that a constant is a poor score on purpose."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Array, y: NDArray[Any]) -> ConstantClassifier:
        """Keep the classes of y (n,) and their shares."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the shares for each row of X (n, d), a column each of ``classes_``."""
        check_is_fitted(self)
        return np.tile(self.shares_, (len(validate_data(self, X, reset=False)), 1))

    def predict(self, X: Array) -> NDArray[Any]:
        """Return the most frequent class for each row of X (n, d)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
