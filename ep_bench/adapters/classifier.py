"""A classifier from outside behind the face that the runner expects: probabilities of all classes of the data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.estimator import Scaling
from ep_bench.predictions import Classification, ClassLabels, ClassProbabilities
from ep_bench.types import Array, Indices

CLASS_FACES = ("predict_dist", "predict_proba", "predict")  # what a classifier may be asked, the best answer first


class ExternalClassifier:
    """A classifier from outside behind the runner's face: ``fit`` and ``predict_dist``, inputs in original units.

    Of the ``classes`` of a data set, indices from 0, the model sees those of its training rows, as whole numbers. A
    class that it has not seen has probability 0.
    """

    def __init__(self, model: Any, classes: int, *, standardize: bool = False) -> None:
        self.model = model
        self.classes = classes
        self.standardize = standardize
        self.trace_: dict[str, list[float]] = {}

    def fit(self, X: Array, y: Array) -> ExternalClassifier:
        """Fit to rows X (n, d) and class indices y (n,)."""
        self._scaling = Scaling.of(X) if self.standardize else Scaling.none(X.shape[1])
        self._seen = np.unique(y).astype(np.int64)
        # A copy each: a model that writes into its arguments must not spoil the cell's data.
        self.model.fit(self._scaling.apply(X), y.astype(np.int64))
        return self

    def predict_dist(self, X: Array) -> Classification:
        """Return the probabilities of the classes of rows X (n, d), classes alone where the model gives no more.

        Raises ValueError or TypeError, saying which call gave what, for an answer that is none.
        """
        rows = self._scaling.apply(X)
        if (ask := _ability(self.model, "predict_dist")) is not None:
            found = ask(rows)
            if not isinstance(found, ClassProbabilities):
                kind = type(found).__name__
                raise TypeError(f"predict_dist of a classifier must return ep_bench.ClassProbabilities, found {kind}")
            return self._of_all(found.probabilities, found.classes, len(X), "predict_dist")
        if (ask := _ability(self.model, "predict_proba")) is not None:
            return self._by_columns(ask(rows), len(X))
        return ClassLabels(self._indices(np.asarray(self.model.predict(rows)), len(X)), np.arange(self.classes))

    def _by_columns(self, found: Any, n: int) -> ClassProbabilities:
        """Return probabilities whose columns ``classes_`` names; without it they are all classes, or those seen."""
        table = np.asarray(found, dtype=np.float64)
        if table.ndim != 2:
            raise ValueError(f"predict_proba gave the shape {table.shape}, expected ({n}, classes), a column a class")
        labels = getattr(self.model, "classes_", None)
        if labels is None:
            labels = np.arange(self.classes) if table.shape[1] == self.classes else self._seen
        return self._of_all(table, np.asarray(labels), n, "predict_proba")

    def _of_all(self, table: Array, labels: NDArray[Any], n: int, call: str) -> ClassProbabilities:
        if table.shape != (n, len(labels)):
            raise ValueError(f"{call} gave the shape {table.shape}, expected ({n}, {len(labels)}), a column a class")
        whole = np.zeros((n, self.classes))
        whole[:, self._indices(labels, len(labels))] = table
        return ClassProbabilities(whole)

    def _indices(self, labels: NDArray[Any], n: int) -> Indices:
        """Return labels (n,) as indices. Raises ValueError for what is no class of the data set."""
        if labels.shape != (n,):
            raise ValueError(f"predict gave the shape {labels.shape} for {n} rows, expected ({n},)")
        known = np.isin(labels, np.arange(self.classes))
        if not known.all():
            raise ValueError(f"{labels[~known][0]!r} is no class; they are 0 to {self.classes - 1}, as in y")
        return labels.astype(np.int64)


def _ability(model: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(model, name, None)
    return found if callable(found) else None
