"""The scikit-learn classifiers of registry methods, with standardised inputs and labels of any type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.scaling import Scaling
from ep_bench.predictions import ClassProbabilities
from ep_bench.types import Array, Rows


class MethodClassifier(ClassifierMixin, MethodEstimator):  # type: ignore[misc]
    """Base class of the classifiers of registry methods; see ``Estimator`` for the attributes after ``fit``.

    ``classes_`` (C,) are the labels in ascending order: those of the option ``classes``, by default those in y.
    """

    classes: Sequence[Any] | None

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> MethodClassifier:
        """Fit to inputs X (n, d) in original units and labels y (n,).

        ``extra`` is passed to the method's own ``fit``. Errors and warnings are those of ``MethodRegressor.fit``, and a
        ValueError for a label that is not valid.
        """
        self._forget()
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, indices = _indexed(labels, self.classes)
        self.x_scaling_ = (
            Scaling.of(inputs, self.constant_inputs) if self.standardize else Scaling.none(inputs.shape[1])
        )
        self._fit_rows(Rows(self.x_scaling_.apply(inputs), indices, len(self.classes_)), extra)
        return self

    def predict_dist(self, X: ArrayLike) -> ClassProbabilities:
        """Return the probabilities of the classes at inputs X (n, d)."""
        found = self._answer(X)
        if not isinstance(found, ClassProbabilities):
            raise TypeError(f"{self.method.name} must predict ClassProbabilities, found {type(found).__name__}")
        return ClassProbabilities(found.probabilities, self.classes_)

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


def _indexed(labels: NDArray[Any], classes: Sequence[Any] | None) -> tuple[NDArray[Any], Array]:
    """Return the classes (C,), ascending, and the labels' indices (n,) among them."""
    known, found = np.unique(labels if classes is None else np.asarray(classes)), np.unique(labels)
    if classes is not None and not np.isin(found, known).all():
        unknown = next(label for label in found.tolist() if label not in known.tolist())
        raise ValueError(f"y has the label {unknown!r}, which is none of classes: {known.tolist()}")
    if len(known) < 2:
        raise ValueError(f"there is only one class, {known.tolist()[0]!r}; a classifier needs two or more")
    return known, np.searchsorted(known, labels).astype(np.float64)
