"""Ensembles of trees as practitioners use them, by default with the options of their packages; for comparison.

Studies name them by dotted path, as any external method. The packages are in the extra ``trees``. Each class declares
the space that ``tune`` searches: number, size and step size of the trees, and the option that smooths their leaves.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

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
    tune_space: ClassVar[dict[str, dict[str, list[Any]]]]  # of options that are passed to the package

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.tune_space}


class _QuantileTrees(_Trees):
    """Trees for the mean, and trees for quantiles of the levels ``LEVELS``."""

    mean_: Any

    def predict(self, X: Array) -> Array:
        """Return the mean (n,) for inputs X (n, d)."""
        check_is_fitted(self)
        return np.asarray(self.mean_.predict(validate_data(self, X, reset=False)))

    def predict_quantiles(self, X: Array, levels: Array) -> Array:
        """Return quantiles (n, L) of L levels, constant beyond the outermost fitted levels."""
        check_is_fitted(self)
        values = np.sort(self._fitted_levels(validate_data(self, X, reset=False)), axis=1)
        return np.array([np.interp(levels, LEVELS, row) for row in values])

    def _fitted_levels(self, X: Array) -> Array:
        raise NotImplementedError


class CatBoost(_Trees):
    """CatBoost with a Gaussian density, its loss ``RMSEWithUncertainty`` (Malinin et al. 2021, without ensembles).

    Parameters
    ----------
    iterations, depth : int
        Number of trees, and their depth.
    learning_rate, l2_leaf_reg : float
        Step size, and the penalty of the values of leaves.
    random_state : int, optional
        Seed.
    """

    version = 1
    tune_space: ClassVar = {
        "iterations": {"log_int": [100, 2000]}, "learning_rate": {"log": [0.005, 0.2]}, "depth": {"int": [2, 8]},
        "l2_leaf_reg": {"log": [0.3, 30.0]},
    }  # fmt: skip

    def __init__(
        self,
        iterations: int = 1000,
        learning_rate: float = 0.03,
        depth: int = 6,
        l2_leaf_reg: float = 3.0,
        random_state: int | None = None,
    ) -> None:
        self.iterations, self.learning_rate, self.depth = iterations, learning_rate, depth
        self.l2_leaf_reg, self.random_state = l2_leaf_reg, random_state

    def fit(self, X: Array, y: Array) -> CatBoost:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if catboost is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        fixed = {"random_seed": self.random_state, "thread_count": 1, "allow_writing_files": False, "verbose": False}
        make = _package("catboost").CatBoostRegressor
        booster = make(loss_function="RMSEWithUncertainty", **fixed, **self._options())
        self.booster_ = booster.fit(X, y)
        return self

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean (n,) for inputs X (n, d), with ``return_std`` also the standard deviation (n,)."""
        check_is_fitted(self)
        mean, variance = self.booster_.predict(validate_data(self, X, reset=False), thread_count=1).T
        return (mean, np.sqrt(variance)) if return_std else mean


class LightGBM(_QuantileTrees):
    """LightGBM with one model for the mean and one per level of eleven quantiles, which are sorted and interpolated.

    Parameters
    ----------
    n_estimators, num_leaves, min_child_samples : int
        Number of trees, largest number of leaves of a tree, and smallest number of data points of a leaf.
    learning_rate : float
        Step size.
    random_state : int, optional
        Seed.
    """

    version = 1
    tune_space: ClassVar = {
        "n_estimators": {"log_int": [25, 400]}, "learning_rate": {"log": [0.01, 0.3]},
        "num_leaves": {"log_int": [4, 64]}, "min_child_samples": {"log_int": [2, 50]},
    }  # fmt: skip

    def __init__(
        self,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        random_state: int | None = None,
    ) -> None:
        self.n_estimators, self.learning_rate, self.num_leaves = n_estimators, learning_rate, num_leaves
        self.min_child_samples, self.random_state = min_child_samples, random_state

    def fit(self, X: Array, y: Array) -> LightGBM:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if lightgbm is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        make = _package("lightgbm").LGBMRegressor
        options = self._options() | {"random_state": self.random_state, "n_jobs": 1, "verbose": -1}
        self.mean_ = make(**options).fit(X, y)
        self.quantiles_ = [make(objective="quantile", alpha=level, **options).fit(X, y) for level in LEVELS]
        return self

    def _fitted_levels(self, X: Array) -> Array:
        return np.transpose([model.predict(X) for model in self.quantiles_])


class XGBoost(_QuantileTrees):
    """XGBoost with one model for the mean and one for eleven quantiles, which are sorted and interpolated.

    The loss is ``reg:quantileerror`` of the package itself.

    Parameters
    ----------
    n_estimators, max_depth : int
        Number of trees per level, and their depth.
    learning_rate, min_child_weight : float
        Step size, and the smallest sum of weights of a leaf.
    random_state : int, optional
        Seed.
    """

    version = 1
    tune_space: ClassVar = {
        "n_estimators": {"log_int": [25, 400]}, "learning_rate": {"log": [0.01, 0.5]}, "max_depth": {"int": [2, 8]},
        "min_child_weight": {"log": [1.0, 50.0]},
    }  # fmt: skip

    def __init__(
        self,
        n_estimators: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        min_child_weight: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.n_estimators, self.learning_rate, self.max_depth = n_estimators, learning_rate, max_depth
        self.min_child_weight, self.random_state = min_child_weight, random_state

    def fit(self, X: Array, y: Array) -> XGBoost:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if xgboost is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        make = _package("xgboost").XGBRegressor
        options = self._options() | {"random_state": self.random_state, "n_jobs": 1}
        self.mean_ = make(**options).fit(X, y)
        self.quantiles_ = make(objective="reg:quantileerror", quantile_alpha=list(LEVELS), **options).fit(X, y)
        return self

    def _fitted_levels(self, X: Array) -> Array:
        return np.asarray(self.quantiles_.predict(X))


class QuantileForest(_Trees):
    """Quantile regression forest (Meinshausen 2006) of random or extremely randomised trees, by ``quantile-forest``.

    Parameters
    ----------
    extra : bool
        Extremely randomised trees.
    n_estimators, min_samples_leaf : int
        Number of trees, and smallest number of data points of a leaf.
    max_features : float
        Fraction of the inputs that a division may use.
    random_state : int, optional
        Seed.
    """

    version = 1
    tune_space: ClassVar = {
        "n_estimators": {"log_int": [50, 500]}, "min_samples_leaf": {"log_int": [1, 20]},
        "max_features": {"uniform": [0.2, 1.0]},
    }  # fmt: skip

    def __init__(
        self,
        extra: bool = False,
        n_estimators: int = 100,
        min_samples_leaf: int = 1,
        max_features: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.extra, self.n_estimators, self.min_samples_leaf = extra, n_estimators, min_samples_leaf
        self.max_features, self.random_state = max_features, random_state

    def fit(self, X: Array, y: Array) -> QuantileForest:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError without quantile-forest."""
        X, y = validate_data(self, X, y, y_numeric=True)
        kind = "ExtraTreesQuantileRegressor" if self.extra else "RandomForestQuantileRegressor"
        make = getattr(_package("quantile_forest"), kind)
        self.forest_ = make(random_state=self.random_state, n_jobs=1, **self._options()).fit(X, y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean (n,) for inputs X (n, d)."""
        check_is_fitted(self)
        return np.asarray(self.forest_.predict(validate_data(self, X, reset=False), quantiles="mean"))

    def predict_quantiles(self, X: Array, levels: Array) -> Array:
        """Return quantiles (n, L) of L levels."""
        check_is_fitted(self)
        return np.asarray(self.forest_.predict(validate_data(self, X, reset=False), quantiles=list(levels)))
