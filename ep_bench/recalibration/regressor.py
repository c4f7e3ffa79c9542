"""The scikit-learn regressor that recalibrates another one."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ep_bench.adapters import best_prediction
from ep_bench.recalibration.model import RECALIBRATIONS, RecalibratedModel
from ep_bench.types import Array


class Recalibrated(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose predictive distribution is recalibrated with points held out of its training data.

    Parameters
    ----------
    estimator : object
        A regressor of ``ep_bench.Estimator`` or of another library. A density or standard deviation is needed for
        ``isotonic``; ``conformal`` also takes quantiles and points.
    method : str
        ``isotonic``: the density is mapped so that the PIT values of the held-out points are uniform. ``conformal``:
        quantiles with guaranteed coverage, without a density.
    fraction : float
        Fraction of the training points that calibrate a model.
    cross : bool, optional
        Whether every point calibrates one of about ``1 / fraction`` models, whose predictions are combined. By default
        only with fewer than 199 held-out points.
    refit : bool
        Whether a further model, fitted to all points, predicts alone. Conformal coverage is then not guaranteed.
    random_state : int, RandomState or None
        Selects the held-out points.

    Attributes
    ----------
    models_ : list
        The fitted estimators that predict, one without cross-validation or with ``refit``.
    converged_ : bool or None
        Whether all of them have converged; None if one does not state it.

    Examples
    --------
    >>> model = ep_bench.Recalibrated(ep_bench.Estimator("gp"), method="conformal", random_state=0)
    >>> low = model.fit(X, y).predict_dist(X_new).quantile(0.025)
    """

    def __init__(
        self,
        estimator: Any,
        method: Literal["isotonic", "conformal"] = "isotonic",
        *,
        fraction: float = 0.2,
        cross: bool | None = None,
        refit: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.method = estimator, method
        self.fraction, self.cross, self.refit, self.random_state = fraction, cross, refit, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs X (n, d) and targets y (n,). Raises ValueError for a wrong parameter."""
        if self.method not in RECALIBRATIONS:
            raise ValueError(f"method must be one of {', '.join(RECALIBRATIONS)}, found {self.method!r}")
        if not 0.0 < self.fraction < 1.0:
            raise ValueError(f"fraction must be between 0 and 1, found {self.fraction}")
        inputs = X if hasattr(X, "iloc") else np.asarray(X)
        check_consistent_length(inputs, y)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._model = RecalibratedModel(self._adapted, self.method, self.fraction, seed, self.cross, refit=self.refit)
        self._model.fit(inputs, np.asarray(column_or_1d(y), dtype=np.float64))
        self.models_ = [each.model for each in self._model.models_]
        self.converged_ = self._model.converged_
        return self

    def _adapted(self) -> _Adapted:
        return _Adapted(clone(self.estimator))

    def predict_dist(self, X: ArrayLike) -> Any:
        """Return the recalibrated prediction at inputs X (N, d): a density, or quantiles for ``conformal``."""
        check_is_fitted(self, "models_")
        return self._model.predict_dist(X if hasattr(X, "iloc") else np.asarray(X))

    def predict(self, X: ArrayLike) -> Array:
        """Return means (N,) at inputs X (N, d), in original units."""
        means: Array = self.predict_dist(X).mean()
        return means


class _Adapted:
    """A fitted estimator with ``predict_dist``, whatever it predicts."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Array) -> None:
        best_prediction.fit(self.model, X, y)
        self.converged_ = best_prediction.stated_convergence(self.model)

    def predict_dist(self, X: Any) -> Any:
        return best_prediction.predict_dist(self.model, X)
