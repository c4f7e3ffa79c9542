"""Constant predictors for comparison; studies name them by dotted path, like any external method."""

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
    """Regressor that predicts the mean and the standard deviation (ddof 0) of the training targets for all inputs."""

    version = 1
    equality = "exact"

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; a poor score is expected of a constant."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Array, y: Array) -> ConstantRegressor:
        """Store the mean and the standard deviation of y (n,), in original units."""
        X, y = validate_data(self, X, y, y_numeric=True)
        self.mean_, self.std_ = float(np.mean(y)), float(np.std(y))
        return self

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean (n,) for inputs X (n, d), with ``return_std`` also the standard deviation (n,)."""
        check_is_fitted(self)
        n = len(validate_data(self, X, reset=False))
        mean = np.full(n, self.mean_)
        return (mean, np.full(n, self.std_)) if return_std else mean


class ConstantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier that predicts the class frequencies of the training data for all inputs."""

    version = 1
    equality = "exact"

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; a poor score is expected of a constant."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Array, y: NDArray[Any]) -> ConstantClassifier:
        """Store the classes of y (n,) and their frequencies."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the class frequencies (n, C) for inputs X (n, d), one column per class of ``classes_``."""
        check_is_fitted(self)
        return np.tile(self.shares_, (len(validate_data(self, X, reset=False)), 1))

    def predict(self, X: Array) -> NDArray[Any]:
        """Return the most frequent class (n,) for inputs X (n, d)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
