"""An external regressor with the interface of the runner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ep_bench.adapters import best_prediction
from ep_bench.adapters.classifier import ExternalClassifier
from ep_bench.adapters.options import STANDARDIZE, build_model
from ep_bench.estimator import standardisation
from ep_bench.predictions import PointPrediction, Prediction
from ep_bench.types import Array


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
        self._x_scaling, self._y_scaling = standardisation(X, y, active=self.standardize)
        # Copies, so that a model that changes its arguments does not change the data of the cell.
        best_prediction.fit(self.model, self._x_scaling.apply(X), self._y_scaling.apply(y[:, None])[:, 0])
        vars(self).update(best_prediction.stated_convergence(self.model))
        return self

    def predict_dist(self, X: Array) -> Prediction:
        """Return the predictive distribution at inputs X (n, d), or quantiles or points if the model has no density.

        Raises ValueError or TypeError if the model returns an object of wrong type or shape.
        """
        found = best_prediction.predict(self.model, self._x_scaling.apply(X))
        shift, scale = float(self._y_scaling.shift[0]), float(self._y_scaling.scale[0])
        if isinstance(found, PointPrediction):
            return PointPrediction(shift + scale * found.values)
        return found.rescale(shift, scale)
