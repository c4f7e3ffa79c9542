"""External regressors and classifiers with the interface of the runner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.adapters import best_prediction
from ep_bench.adapters.construction import STANDARDIZE, accepts_missing, build_model
from ep_bench.adapters.distributions import bound_method
from ep_bench.estimator import standardisation
from ep_bench.predictions import (
    Classification,
    ClassLabels,
    ClassProbabilities,
    PointPrediction,
    Prediction,
    real_array,
)
from ep_bench.types import Array, Indices


def build(
    use: str, options: Mapping[str, Any], base: Path, seed: int | None = None, classes: int = 0
) -> ExternalRegressor | ExternalClassifier:
    """Return the adapted instance of a target; ``seed`` is its ``random_state`` if it has this parameter.

    ``classes`` is the number of classes, 0 in regression. Raises UserError if the target or an option is not available.
    """
    model, standardize = build_model(use, options, base, seed), bool(options.get(STANDARDIZE, False))
    if classes:
        return ExternalClassifier(model, classes, standardize=standardize)
    return ExternalRegressor(model, standardize=standardize)


class ExternalRegressor:
    """An external regressor with the interface of the runner: ``fit`` and ``predict_dist``, in original units."""

    def __init__(self, model: Any, *, standardize: bool = False) -> None:
        self.model = model
        self.standardize = standardize
        self.trace_: dict[str, list[float]] = {}

    def fit(self, X: Array, y: Array) -> ExternalRegressor:
        """Fit to inputs X (n, d) and targets y (n,)."""
        self._x_scaling, self._y_scaling = standardisation(
            X, y, active=self.standardize, allow_nan=accepts_missing(self.model)
        )
        # Copies, so that a model that changes its arguments does not change the data of the cell.
        best_prediction.fit(self.model, self._x_scaling.apply(X), self._y_scaling.apply(y[:, None])[:, 0])
        self.converged_ = best_prediction.stated_convergence(self.model)
        return self

    def predict_dist(self, X: Array) -> Prediction:
        """Return the predictive distribution at inputs X (n, d), or quantiles or points if the model has no density.

        Raises ValueError or TypeError if the model returns an object of wrong type or shape.
        """
        found = best_prediction.predict_dist(self.model, self._x_scaling.apply(X))
        shift, scale = float(self._y_scaling.shift[0]), float(self._y_scaling.scale[0])
        if isinstance(found, PointPrediction):
            return PointPrediction(shift + scale * found.values)
        return found.rescale(shift, scale)


class ExternalClassifier:
    """An external classifier with the interface of the runner: ``fit`` and ``predict_dist``, inputs in original units.

    ``classes`` is the number of classes of the data set. The model is fitted to integer class indices; classes without
    training data have probability 0.
    """

    def __init__(self, model: Any, classes: int, *, standardize: bool = False) -> None:
        self.model = model
        self.classes = classes
        self.standardize = standardize
        self.trace_: dict[str, list[float]] = {}

    def fit(self, X: Array, y: Array) -> ExternalClassifier:
        """Fit to inputs X (n, d) and class indices y (n,)."""
        self._scaling, _ = standardisation(X, y, active=self.standardize, allow_nan=accepts_missing(self.model))
        self._seen = np.unique(y).astype(np.int64)
        # Copies, so that a model that changes its arguments does not change the data of the cell.
        self.model.fit(self._scaling.apply(X), y.astype(np.int64))
        self.converged_ = best_prediction.stated_convergence(self.model)
        return self

    def predict_dist(self, X: Array) -> Classification:
        """Return the probabilities of the classes at inputs X (n, d), or classes if the model has no probabilities.

        Raises ValueError or TypeError if the model returns an object of wrong type or shape.
        """
        rows = self._scaling.apply(X)
        if (ask := bound_method(self.model, "predict_dist")) is not None:
            found = ask(rows)
            if not isinstance(found, ClassProbabilities):
                kind = type(found).__name__
                raise TypeError(f"predict_dist of a classifier must return ep_bench.ClassProbabilities, found {kind}")
            return self._of_all(found.probabilities, found.classes, len(X), "predict_dist")
        if (ask := bound_method(self.model, "predict_proba")) is not None:
            return self._by_columns(ask(rows), len(X))
        return ClassLabels(self._indices(np.asarray(self.model.predict(rows)), len(X)), np.arange(self.classes))

    def _by_columns(self, found: Any, n: int) -> ClassProbabilities:
        """Return probabilities; the columns are ``classes_``, without it all classes or those in the training data."""
        table = real_array(found, "probabilities")
        if table.ndim != 2:
            raise ValueError(f"predict_proba returned the shape {table.shape}, expected ({n}, number of classes)")
        labels = getattr(self.model, "classes_", None)
        if labels is None:
            labels = np.arange(self.classes) if table.shape[1] == self.classes else self._seen
        return self._of_all(table, np.asarray(labels), n, "predict_proba")

    def _of_all(self, table: Array, labels: NDArray[Any], n: int, call: str) -> ClassProbabilities:
        if table.shape != (n, len(labels)):
            raise ValueError(f"{call} returned the shape {table.shape}, expected ({n}, {len(labels)})")
        whole = np.zeros((n, self.classes))
        whole[:, self._indices(labels, len(labels))] = table
        return ClassProbabilities(whole)

    def _indices(self, labels: NDArray[Any], n: int) -> Indices:
        """Return labels (n,) as indices. Raises ValueError for a label that is not a class of the data set."""
        if labels.shape != (n,):
            raise ValueError(f"predict returned the shape {labels.shape} for {n} data points, expected ({n},)")
        known = np.isin(labels, np.arange(self.classes))
        if not known.all():
            raise ValueError(f"{labels[~known][0]!r} is not a class; the classes are 0 to {self.classes - 1}, as in y")
        return labels.astype(np.int64)
