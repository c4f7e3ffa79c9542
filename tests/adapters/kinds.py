"""One regressor per kind of prediction of external methods; all fit the same line and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ep_bench.predictions import DensityPrediction, Predictive


class Line:
    """Least squares; ``scale`` is the standard deviation of the residuals."""

    def fit(self, X: Any, y: Any) -> Line:
        A = np.column_stack([np.asarray(X, dtype=float), np.ones(len(X))])
        target = np.asarray(y, dtype=float).reshape(-1)
        self.weights, *_ = np.linalg.lstsq(A, target, rcond=None)
        self.scale = float(np.std(target - A @ self.weights))
        return self

    def line(self, X: Any) -> Any:
        return np.asarray(X, dtype=float) @ self.weights[:-1] + self.weights[-1]


class Points(Line):
    def predict(self, X: Any) -> Any:
        return self.line(X)


class Deviation(Line):
    def predict(self, X: Any, return_std: bool = False) -> Any:
        mean = self.line(X)
        return (mean, np.full(len(mean), self.scale)) if return_std else mean


class Keywords(Line):
    """Takes any keyword and heeds none."""

    def predict(self, X: Any, **_: Any) -> Any:
        return self.line(X)


class Forwards(Line):
    """Passes all keywords on."""

    def predict(self, X: Any, **keywords: Any) -> Any:
        return Deviation.predict(self, X, **keywords)  # type: ignore[arg-type]


class Refuses(Line):
    """Passes all keywords on to what does not know them."""

    def predict(self, X: Any, **keywords: Any) -> Any:
        return self.line(X, **keywords)


class NoPrediction:
    def fit(self, X: Any, y: Any) -> None:
        """Do nothing."""


class OnInstances(NoPrediction):
    """Has a method for predictions as an attribute of each instance."""

    def __init__(self) -> None:
        self.predict = lambda X: np.zeros(len(X))


class Mixture(Line):
    def predict_dist(self, X: Any) -> Predictive:
        mean, variance = self.line(X), np.full(len(X), self.scale**2)
        return Predictive([0.5, 0.5], [mean - 1.0, mean + 1.0], [variance, 4.0 * variance])


class Frozen(Line):
    """Gives a frozen distribution of scipy.stats: a family's name and shape parameters are its options."""

    def __init__(self, family: str = "laplace", shapes: tuple[float, ...] = ()) -> None:
        self.family, self.shapes = family, shapes

    def predict_dist(self, X: Any) -> Any:
        return getattr(stats, self.family)(*self.shapes, loc=self.line(X), scale=self.scale)


class Bare(Line):
    """Gives an object with the fewest methods there may be: logpdf, cdf, mean, var."""

    def predict_dist(self, X: Any) -> Any:
        frozen, names = stats.logistic(loc=self.line(X), scale=self.scale), ("logpdf", "cdf", "mean", "var")
        return type("Bare", (), {name: staticmethod(getattr(frozen, name)) for name in names})()


class Density(Line):
    def predict_dist(self, X: Any) -> DensityPrediction:
        d = stats.laplace(loc=self.line(X), scale=self.scale)
        return DensityPrediction(logpdf=d.logpdf, cdf=d.cdf, mean=d.mean(), variance=d.var())


class Boosted(Line):
    """As NGBoost: scipy's distribution under ``dist``, None for any other name, ``var`` no method."""

    def __init__(self, family: str = "laplace", shapes: tuple[float, ...] = ()) -> None:
        self.family, self.shapes = family, shapes

    def pred_dist(self, X: Any) -> Any:
        return BoostedDistribution(getattr(stats, self.family)(*self.shapes, loc=self.line(X), scale=self.scale))


class BoostedDistribution:
    def __init__(self, dist: Any) -> None:
        self.dist = dist
        self.var = np.full(3, -7.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["dist"], name, None)


class Tabular(Line):
    """As skpro: a distribution over a data frame's cells, every answer a data frame."""

    def predict_proba(self, X: Any) -> Any:
        return TabularDistribution(stats.laplace(loc=self.line(X)[:, None], scale=self.scale))


class TabularDistribution:
    def __init__(self, dist: Any, measure: str = "continuous") -> None:
        self._dist, self._measure = dist, measure
        self.shape = dist.mean().shape
        self.index, self.columns = pd.RangeIndex(self.shape[0]), pd.Index(["y"])

    def get_tag(self, name: str, *_: Any, **__: Any) -> Any:
        return {"distr:measuretype": self._measure}[name]

    def _frame(self, values: Any) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.index, columns=self.columns)

    def _ask(self, name: str, x: pd.DataFrame) -> pd.DataFrame:
        assert x.shape == self.shape
        assert x.columns.equals(self.columns)
        return self._frame(getattr(self._dist, name)(x.to_numpy()))

    def log_pdf(self, x: pd.DataFrame) -> pd.DataFrame:
        return self._ask("logpdf", x)

    def cdf(self, x: pd.DataFrame) -> pd.DataFrame:
        return self._ask("cdf", x)

    def ppf(self, p: pd.DataFrame) -> pd.DataFrame:
        return self._ask("ppf", p)

    def mean(self) -> pd.DataFrame:
        return self._frame(self._dist.mean())

    def var(self) -> pd.DataFrame:
        return self._frame(self._dist.var())


class Sampled(Tabular):
    def predict_proba(self, X: Any) -> Any:
        return TabularDistribution(stats.laplace(loc=self.line(X)[:, None], scale=self.scale), "discrete")


class QuantileOption(Points):
    """As quantile-forest: ``predict(X, quantiles=[...])`` gives (N, Q)."""

    def predict(self, X: Any, quantiles: Any = None) -> Any:
        if quantiles is None:
            return self.line(X)
        return stats.norm.ppf(np.asarray(quantiles), loc=self.line(X)[:, None], scale=self.scale)


class QuantileMethod(Line):
    """Quantiles alone, without points."""

    def predict_quantiles(self, X: Any, levels: Any) -> Any:
        return stats.norm.ppf(np.asarray(levels), loc=self.line(X)[:, None], scale=self.scale)


class TabularQuantiles(Points):
    def predict_proba(self, X: Any) -> Any:
        raise NotImplementedError

    def predict_quantiles(self, X: Any, alpha: Any = None) -> pd.DataFrame:
        columns = pd.MultiIndex.from_product([["y"], alpha])
        return pd.DataFrame(
            stats.norm.ppf(np.asarray(alpha), loc=self.line(X)[:, None], scale=self.scale), columns=columns
        )


class TabularInterval(Points):
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> pd.DataFrame:
        columns = pd.MultiIndex.from_product([["y"], coverage, ["lower", "upper"]])
        levels = [0.5 - c / 2 if end == "lower" else 0.5 + c / 2 for _, c, end in columns]
        return pd.DataFrame(stats.norm.ppf(levels, loc=self.line(X)[:, None], scale=self.scale), columns=columns)


class OddInterval(Points):
    """An interval by another convention, which nobody asks for."""

    def predict_interval(self, X: Any) -> Any:
        return np.zeros((len(X), 2))


class Classifier(Points):
    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), 0.5)
