"""The libraries themselves, if they are installed; ``kinds`` has replacements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ep_bench import adapters, scoring
from ep_bench.predictions import DensityPrediction, PointPrediction, Predictive, QuantilePrediction

HERE = Path("/")
rng = np.random.default_rng(0)
X = rng.normal(5.0, 3.0, (80, 3))
y = np.exp(0.1 * X[:, 0] + 0.2 * rng.normal(size=80))
pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(use: str, **options: Any) -> Any:
    return adapters.build(use, options, HERE, seed=1).fit(X, y)


@pytest.mark.parametrize(
    "family", ["Normal", "Laplace", "T", "TFixedDf", "LogNormal", "Exponential", "Gamma", "Weibull", "HalfNormal"]
)
def test_ngboost(family: str) -> None:
    pytest.importorskip("ngboost")
    named = {"object": f"ngboost.distns:{family}"}
    model = fitted("ngboost:NGBRegressor", n_estimators=15, verbose=False, Dist=named)
    theirs, ours = model.model.pred_dist(X), model.predict_dist(X)
    assert isinstance(ours, Predictive if family == "Normal" else DensityPrediction)
    np.testing.assert_allclose(ours.logpdf(y), theirs.dist.logpdf(y), rtol=1e-9, atol=1e-9)
    assert np.isfinite(list(scoring.score(ours, y).values())).all()


@pytest.mark.parametrize("family", ["Normal", "Laplace", "T", "TFixedDf"])
def test_ngboost_on_standardised_rows(family: str) -> None:
    pytest.importorskip("ngboost")
    named = {"object": f"ngboost.distns:{family}"}
    model = fitted("ngboost:NGBRegressor", n_estimators=15, verbose=False, Dist=named, standardize=True)
    theirs = model.model.pred_dist((X - X.mean(axis=0)) / X.std(axis=0)).dist
    expected = theirs.logpdf((y - y.mean()) / y.std()) - np.log(y.std())
    np.testing.assert_allclose(model.predict_dist(X).logpdf(y), expected, rtol=1e-9, atol=1e-9)


def test_ngboosts_counts_and_what_has_no_density() -> None:
    pytest.importorskip("ngboost")
    counts = adapters.build(
        "ngboost:NGBRegressor",
        {"Dist": {"object": "ngboost.distns:Poisson"}, "n_estimators": 5, "verbose": False},
        HERE,
    )
    found = counts.fit(X, np.floor(5.0 * y)).predict_dist(X)
    assert isinstance(found, QuantilePrediction)
    np.testing.assert_allclose(found.mean(), counts.model.pred_dist(X).mean())
    logit = adapters.build(
        "ngboost:NGBRegressor",
        {"Dist": {"object": "ngboost.distns:LogitNormal"}, "n_estimators": 5, "verbose": False},
        HERE,
    )
    with pytest.raises(TypeError, match="found LogitNormal"):
        logit.fit(X, y / 20.0).predict_dist(X)


def test_skpro() -> None:
    pytest.importorskip("skpro")
    line = {"use": "sklearn.linear_model:LinearRegression"}
    normal = fitted("skpro.regression.residual:ResidualDouble", estimator=line)
    found = normal.predict_dist(X)
    assert isinstance(found, Predictive)
    theirs = normal.model.predict_proba(_frame())
    np.testing.assert_allclose(found.mean(), theirs.mean().to_numpy()[:, 0])
    np.testing.assert_allclose(found.logpdf(y), theirs.log_pdf(y[:, None]).to_numpy()[:, 0], rtol=1e-9)
    for dist, parameters in (("Laplace", {}), ("t", {"df": 4.0})):
        options = {"estimator": line, "dist": dist, "distr_params": parameters}
        model = fitted("skpro.regression.residual:ResidualDouble", **options)
        theirs, ours = model.model.predict_proba(_frame()), model.predict_dist(X)
        assert isinstance(ours, DensityPrediction)
        np.testing.assert_allclose(ours.logpdf(y), theirs.log_pdf(y[:, None]).to_numpy()[:, 0], rtol=1e-9)
        np.testing.assert_allclose(ours.cdf(ours.quantile(0.9)), 0.9, rtol=1e-8)
        scores = scoring.score(ours, y)
        assert np.isfinite(list(scores.values())).all()
        assert scores["crps"] > 0.0
    scaled = fitted("skpro.regression.residual:ResidualDouble", estimator=line, dist="Laplace", standardize=True)
    plain = fitted("skpro.regression.residual:ResidualDouble", estimator=line, dist="Laplace")
    np.testing.assert_allclose(scaled.predict_dist(X).logpdf(y), plain.predict_dist(X).logpdf(y), rtol=1e-6)


def test_skpros_samples_have_no_density() -> None:
    pytest.importorskip("skpro")
    inner = {"use": "skpro.regression.residual:ResidualDouble", "estimator": {"use": "sklearn.linear_model:Ridge"}}
    found = fitted("skpro.regression.bootstrap:BootstrapRegressor", estimator=inner, n_bootstrap_samples=10)
    assert isinstance(found.predict_dist(X), DensityPrediction | QuantilePrediction)


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=["x1", "x2", "x3"])


def test_quantile_forest() -> None:
    pytest.importorskip("quantile_forest")
    model = fitted("quantile_forest:RandomForestQuantileRegressor", n_estimators=20)
    found = model.predict_dist(X)
    assert isinstance(found, QuantilePrediction)
    np.testing.assert_allclose(found.quantile(0.975), model.model.predict(X, quantiles=[0.975]).ravel())
    np.testing.assert_allclose(found.mean(), model.model.predict(X))
    scores = scoring.score(found, y)
    assert {"rmse", "crps", "coverage50", "coverage90", "coverage95", "width95"} <= scores.keys()
    assert "ll" not in scores


def test_scikit_learns_own() -> None:
    found = fitted("sklearn.gaussian_process:GaussianProcessRegressor", alpha=0.1).predict_dist(X)
    assert isinstance(found, Predictive)
    assert isinstance(fitted("sklearn.linear_model:QuantileRegressor", alpha=0.0).predict_dist(X), PointPrediction)
    search = {"estimator": {"use": "sklearn.linear_model:Ridge"}, "param_grid": {"alpha": [0.1, 1.0]}}
    assert isinstance(fitted("sklearn.model_selection:GridSearchCV", **search).predict_dist(X), PointPrediction)
    assert stats.norm.name == "norm"  # what a frozen Gaussian is recognised by
