"""Predictors for comparison; studies name them by dotted path, like any external method."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench.errors import INSTALL_EXTRA, UserError
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


class NGBoostRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gradient boosting of trees with a Gaussian density (NGBoost; Duan et al. 2020), by the package ``ngboost``.

    As in that paper, the number of trees is the best one on a fifth of the training data, and all training data are
    fitted again with it.

    Parameters
    ----------
    n_estimators : int
        Largest number of boosting iterations.
    learning_rate : float
        Step size.
    max_depth : int
        Depth of a tree.
    minibatch_frac : float
        Fraction of the data points that a tree is fitted to.
    patience : int
        Iterations without a better score on the validation data after which the search ends.
    random_state : int, optional
        Seed.
    """

    version = 1
    equality = "exact"
    validated = "n_estimators"
    tune_space: ClassVar = {
        "learning_rate": {"log": [0.005, 0.2]}, "max_depth": {"int": [1, 6]}, "minibatch_frac": {"uniform": [0.5, 1.0]},
    }  # fmt: skip

    def __init__(
        self,
        n_estimators: int = 2000,
        learning_rate: float = 0.01,
        patience: int = 50,
        max_depth: int = 3,
        minibatch_frac: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.n_estimators, self.learning_rate = n_estimators, learning_rate
        self.max_depth, self.minibatch_frac = max_depth, minibatch_frac
        self.patience, self.random_state = patience, random_state

    def fit(self, X: Array, y: Array) -> NGBoostRegressor:
        """Fit targets y (n,), in original units, at inputs X (n, d). Raises UserError if ngboost is not installed."""
        X, y = validate_data(self, X, y, y_numeric=True)
        held_out = {"validation_fraction": 0.2, "early_stopping_rounds": self.patience}
        searched = self._booster(self.n_estimators, held_out).fit(X, y)
        best = searched.best_val_loss_itr
        self.n_estimators_ = self.n_estimators if best is None else int(best) + 1
        self.booster_ = self._booster(self.n_estimators_, {}).fit(X, y)
        return self

    def _booster(self, n_estimators: int, options: dict[str, Any]) -> Any:
        try:
            from ngboost import NGBRegressor
        except ImportError:
            raise UserError(f"requires ngboost; {INSTALL_EXTRA}[controls]", where="NGBoostRegressor") from None
        tree = {}  # the default tree of the package has the depth 3
        if self.max_depth != 3:
            from sklearn.tree import DecisionTreeRegressor  # slow to import, in a plan and in each cell of a constant

            tree = {"Base": DecisionTreeRegressor(max_depth=self.max_depth)}
        return NGBRegressor(
            n_estimators=n_estimators, learning_rate=self.learning_rate, minibatch_frac=self.minibatch_frac,
            random_state=self.random_state, verbose=False, **tree, **options,
        )  # fmt: skip

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean (n,) for inputs X (n, d), with ``return_std`` also the standard deviation (n,)."""
        check_is_fitted(self)
        found = self.booster_.pred_dist(validate_data(self, X, reset=False)).params
        return (found["loc"], found["scale"]) if return_std else found["loc"]
