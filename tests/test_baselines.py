"""Baselines by other packages: the search for the number of trees of NGBoost, quantiles, messages without a package."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from ep_bench.baselines import NGBoostRegressor
from ep_bench.errors import UserError
from ep_bench.tree_baselines import LEVELS, CatBoost, LightGBM, QuantileForest


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


@pytest.mark.parametrize("make", [CatBoost, LightGBM, QuantileForest])
def test_without_the_packages_of_trees_there_is_one_message(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("catboost", "lightgbm", "quantile_forest"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"ep-bench\[trees\]"):
        make().fit(np.zeros((4, 1)), np.arange(4.0))
