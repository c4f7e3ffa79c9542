"""The scikit-learn classifiers of registry methods, with standardised inputs and labels of any type."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.model import ClassificationModel
from ep_bench.types import Array


class MethodClassifier(ClassifierMixin, MethodEstimator, ClassificationModel):  # type: ignore[misc]
    """Base class of the classifiers of registry methods; see ``Estimator`` for the attributes after ``fit``."""

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> Self:
        """Fit to inputs X (n, d) in original units and labels y (n,).

        ``extra`` is passed to the method's own ``fit``. Errors and warnings are those of ``MethodRegressor.fit``, and a
        ValueError for a label that is not valid.
        """
        self._forget()
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        return super().fit(inputs, labels, **extra)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities (n, C) at inputs X (n, d), one column per class of ``classes_``."""
        return self.predict_dist(X).probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the labels (n,) of the most probable classes at inputs X (n, d)."""
        return self.predict_dist(X).mode()

    @available_if(lambda self: self.method.latent is not None)  # type: ignore[untyped-decorator]
    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return means (n,) and variances (n,) of the latent function at inputs X (n, d), in its own units."""
        inputs = self._standardised(X)
        mean, variance = self.method.latent(self.state_, inputs)  # type: ignore[misc]
        return mean, variance
