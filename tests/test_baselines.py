"""Baselines by other packages: the search for the number of trees of NGBoost, quantiles, messages without a package."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from ep_bench.baselines import NGBoostRegressor
from ep_bench.errors import UserError
from ep_bench.tree_baselines import LEVELS, CatBoost, LightGBM, QuantileForest, XGBoost
from ep_bench.tuning import _parameters


class Booster:
    """Stands in for NGBRegressor: stores its options, and predicts the mean of the targets it was given."""

    calls: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        self.calls.append(options)
        self.best_val_loss_itr = 41 if "validation_fraction" in options else None

    def fit(self, X: Any, y: Any) -> Booster:
        self.mean = float(np.mean(y))
        return self

    def pred_dist(self, X: Any) -> Any:
        return SimpleNamespace(params={"loc": np.full(len(X), self.mean), "scale": np.full(len(X), 2.0)})


def test_all_training_data_are_fitted_with_the_best_number_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ngboost", SimpleNamespace(NGBRegressor=Booster))
    monkeypatch.setattr(Booster, "calls", [])
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    mean, std = NGBoostRegressor(random_state=3).fit(X, y).predict(X[:4], return_std=True)
    assert mean.tolist() == [4.5] * 4
    assert std.tolist() == [2.0] * 4
    searched, final = Booster.calls
    assert (searched["validation_fraction"], searched["n_estimators"]) == (0.2, 2000)
    assert (final["n_estimators"], final["random_state"]) == (42, 3)
    assert "validation_fraction" not in final


def test_without_the_package_there_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ngboost", None)
    with pytest.raises(UserError, match=r"ep-bench\[controls\]"):
        NGBoostRegressor().fit(np.zeros((4, 1)), np.arange(4.0))


class Quantile:
    """Stands in for LGBMRegressor: predicts 10 times its level, 3 without one."""

    def __init__(self, alpha: float = 0.3, **options: Any) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> Quantile:
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 10.0 * self.alpha)


def test_quantiles_of_trees_are_sorted_and_interpolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", SimpleNamespace(LGBMRegressor=Quantile))
    X = np.zeros((3, 2))
    model = LightGBM().fit(X, np.arange(3.0))
    assert model.predict(X).tolist() == [3.0] * 3
    assert len(model.quantiles_) == len(LEVELS)
    model.quantiles_.reverse()
    np.testing.assert_allclose(model.predict_quantiles(X, [0.001, 0.3, 0.5]), [[0.05, 3.0, 5.0]] * 3)


@pytest.mark.parametrize("make", [CatBoost, LightGBM, QuantileForest, XGBoost])
def test_without_the_packages_of_trees_there_is_one_message(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("catboost", "lightgbm", "quantile_forest", "xgboost"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"ep-bench\[trees\]"):
        make().fit(np.zeros((4, 1)), np.arange(4.0))


class Trees:
    """Stands in for XGBRegressor: predicts 10 times its levels, 3 without them."""

    def __init__(self, quantile_alpha: Any = None, **options: Any) -> None:
        self.levels, self.options = quantile_alpha, options

    def fit(self, X: Any, y: Any) -> Trees:
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 3.0) if self.levels is None else np.tile(10.0 * np.array(self.levels), (len(X), 1))


def test_one_model_has_the_quantiles_of_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", SimpleNamespace(XGBRegressor=Trees))
    X = np.zeros((3, 2))
    model = XGBoost(n_estimators=7).fit(X, np.arange(3.0))
    assert model.predict(X).tolist() == [3.0] * 3
    assert model.quantiles_.options["n_estimators"] == 7
    np.testing.assert_allclose(model.predict_quantiles(X, [0.001, 0.3, 0.5]), [[0.05, 3.0, 5.0]] * 3)


@pytest.mark.parametrize("kind", [NGBoostRegressor, CatBoost, LightGBM, QuantileForest, XGBoost])
def test_declared_spaces_contain_the_defaults(kind: Any) -> None:
    inside, outside = _parameters(kind.tune_space, kind().get_params())
    assert inside.keys() == kind.tune_space.keys()
    assert not outside
