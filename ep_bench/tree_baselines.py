"""Ensembles of trees as practitioners use them, at the defaults of their packages; for comparison.

Studies name them by dotted path, as any external method. The packages are in the extra ``trees``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench.errors import INSTALL_EXTRA, UserError
from ep_bench.types import Array

LEVELS = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise UserError(f"requires {name}; {INSTALL_EXTRA}[trees]", where="ep_bench.tree_baselines") from None


class _Trees(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    equality = "optimised"

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state


class CatBoost(_Trees):
    """CatBoost with a Gaussian density, its loss ``RMSEWithUncertainty`` (Malinin et al. 2021, without ensembles).

    Parameters
    ----------
    random_state : int, optional
        Seed.
    """

    version = 1

    def fit(self, X: Array, y: Array) -> CatBoost:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if catboost is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        options = {"random_seed": self.random_state, "thread_count": 1, "allow_writing_files": False}
        booster = _package("catboost").CatBoostRegressor(loss_function="RMSEWithUncertainty", verbose=False, **options)
        self.booster_ = booster.fit(X, y)
        return self

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean (n,) for inputs X (n, d), with ``return_std`` also the standard deviation (n,)."""
        check_is_fitted(self)
        mean, variance = self.booster_.predict(validate_data(self, X, reset=False), thread_count=1).T
        return (mean, np.sqrt(variance)) if return_std else mean


class LightGBM(_Trees):
    """LightGBM with one model for the mean and one per level of eleven quantiles, which are sorted and interpolated.

    Parameters
    ----------
    random_state : int, optional
        Seed.
    """

    version = 1

    def fit(self, X: Array, y: Array) -> LightGBM:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if lightgbm is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        make = _package("lightgbm").LGBMRegressor
        options = {"random_state": self.random_state, "n_jobs": 1, "verbose": -1}
        self.mean_ = make(**options).fit(X, y)
        self.quantiles_ = [make(objective="quantile", alpha=level, **options).fit(X, y) for level in LEVELS]
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean (n,) for inputs X (n, d)."""
        check_is_fitted(self)
        return np.asarray(self.mean_.predict(validate_data(self, X, reset=False)))

    def predict_quantiles(self, X: Array, levels: Array) -> Array:
        """Return quantiles (n, L) of L levels, constant beyond the outermost fitted levels."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        values = np.sort([model.predict(X) for model in self.quantiles_], axis=0).T
        return np.array([np.interp(levels, LEVELS, row) for row in values])


class QuantileForest(_Trees):
    """Quantile regression forest (Meinshausen 2006) of random or extremely randomised trees, by ``quantile-forest``.

    Parameters
    ----------
    extra : bool
        Extremely randomised trees.
    random_state : int, optional
        Seed.
    """

    version = 1

    def __init__(self, extra: bool = False, random_state: int | None = None) -> None:
        super().__init__(random_state)
        self.extra = extra

    def fit(self, X: Array, y: Array) -> QuantileForest:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError without quantile-forest."""
        X, y = validate_data(self, X, y, y_numeric=True)
        kind = "ExtraTreesQuantileRegressor" if self.extra else "RandomForestQuantileRegressor"
        self.forest_ = getattr(_package("quantile_forest"), kind)(random_state=self.random_state, n_jobs=1).fit(X, y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean (n,) for inputs X (n, d)."""
        check_is_fitted(self)
        return np.asarray(self.forest_.predict(validate_data(self, X, reset=False), quantiles="mean"))

    def predict_quantiles(self, X: Array, levels: Array) -> Array:
        """Return quantiles (n, L) of L levels."""
        check_is_fitted(self)
        return np.asarray(self.forest_.predict(validate_data(self, X, reset=False), quantiles=list(levels)))
