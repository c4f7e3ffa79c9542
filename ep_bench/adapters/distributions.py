"""Conversion of distributions of other libraries to predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ep_bench.predictions import (
    ASKED_LEVELS,
    DensityPrediction,
    PointPrediction,
    Prediction,
    Predictive,
    QuantilePrediction,
    real_array,
)
from ep_bench.types import Array

_NEEDED = "an ep_bench.Predictive, or a distribution with logpdf, cdf, mean and var"


def as_prediction(found: Any, n: int, call: str) -> Prediction:
    """Return the result of ``call`` for n data points as a prediction.

    Raises
    ------
    TypeError
        The object is not a distribution.
    ValueError
        The distribution has another number of data points.
    """
    if isinstance(found, PointPrediction):
        return PointPrediction(_vector(found.values, n, call))
    if isinstance(found, Predictive):
        _require_length(found.means.shape[1], n, call)
        return found
    if isinstance(found, DensityPrediction | QuantilePrediction):
        _require_length(len(found), n, call)
        return found
    if bound_method(found, "log_pdf") and hasattr(found, "index") and hasattr(found, "columns"):
        return _of_skpro(found, n, call)
    inner = getattr(found, "dist", None)  # a scipy distribution in NGBoost; the family in scipy
    return _of_scipy(inner if _is_frozen(inner) else found, n, call)


def bound_method(found: Any, name: str) -> Callable[..., Any] | None:
    """Return a method of a model or a distribution, or None; attributes of NGBoost objects may be None."""
    method = getattr(found, name, None)
    return method if callable(method) else None


def column(values: Any) -> Array:
    """Return numbers as an array; a data frame with one column becomes one-dimensional."""
    array = real_array(values, "predictions")
    return array[:, 0] if hasattr(values, "columns") and array.ndim == 2 and array.shape[1] == 1 else array


def _of_scipy(found: Any, n: int, call: str) -> Prediction:
    """Convert a frozen distribution of scipy.stats, or an object with the same methods."""
    mean, variance, cdf, quantile = (bound_method(found, name) for name in ("mean", "var", "cdf", "ppf"))
    logpdf, is_discrete = bound_method(found, "logpdf"), bound_method(found, "logpmf") is not None
    if mean is None or variance is None or cdf is None or (logpdf is None and not is_discrete):
        raise TypeError(f"{call} must return {_NEEDED}, found {type(found).__name__}")
    means = _vector(mean(), n, call)
    if logpdf is None:
        return _by_quantiles(found.ppf, means)
    if _is_frozen(found) and found.dist.name == "norm":
        return Predictive.gaussian(means, _vector(variance(), n, call))
    return DensityPrediction(
        logpdf=logpdf,
        cdf=cdf,
        mean=means,
        variance=_vector(variance(), n, call),
        quantile=quantile,
        broadcasts=_is_frozen(found),
    )


def _of_skpro(found: Any, n: int, call: str) -> Prediction:
    """Convert a skpro distribution, whose methods take and return data frames with one column."""
    import pandas as pd

    if tuple(found.shape) != (n, 1):
        raise ValueError(f"{call} returned a distribution of shape {tuple(found.shape)}, expected ({n}, 1)")

    def frame(y: Array) -> pd.DataFrame:
        return pd.DataFrame(y[:, None], index=found.index, columns=found.columns)

    def quantile(p: float) -> Array:
        return column(found.ppf(frame(np.full(n, p))))

    means = column(found.mean())
    if found.get_tag("distr:measuretype", "continuous", raise_error=False) != "continuous":
        return _by_quantiles(quantile, means)  # for example an empirical distribution, which has no density
    variance = column(found.var())
    if type(found).__name__ == "Normal":
        return Predictive.gaussian(means, variance)
    return DensityPrediction(
        logpdf=lambda y: column(found.log_pdf(frame(y))),
        cdf=lambda y: column(found.cdf(frame(y))),
        mean=means,
        variance=variance,
        quantile=quantile,
    )


def _by_quantiles(quantile: Callable[[float], Any], means: Array) -> QuantilePrediction:
    values = [np.broadcast_to(quantile(level), means.shape) for level in ASKED_LEVELS]
    return QuantilePrediction(ASKED_LEVELS, np.stack(values), means)


def _is_frozen(found: Any) -> bool:
    return type(found).__module__.startswith("scipy.stats") and hasattr(found, "kwds") and hasattr(found, "dist")


def _vector(values: Any, n: int, call: str) -> Array:
    vector = column(values)
    if vector.shape != (n,):
        raise ValueError(f"{call} returned distributions of shape {vector.shape}, expected ({n},)")
    return vector


def _require_length(length: int, n: int, call: str) -> None:
    if length != n:
        raise ValueError(f"{call} returned {length} distributions for {n} data points")
