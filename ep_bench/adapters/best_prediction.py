"""The most informative prediction of an external model: a distribution, a standard deviation, quantiles or points."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ep_bench.adapters.distributions import as_prediction, bound_method, column
from ep_bench.adapters.target_transforms import of_target
from ep_bench.adapters.targets import distributions
from ep_bench.estimator.model import convergence
from ep_bench.predictions import ASKED_LEVELS, PointPrediction, Prediction, Predictive, QuantilePrediction, real_array
from ep_bench.types import Array, Task

# Methods of a model that give predictions, the most informative first.
PREDICTION_METHODS = ("predict_dist", "pred_dist", "predict_proba", "predict", "predict_quantiles", "predict_interval")
_COVERAGES = (0.5, 0.9, 0.95)
_Ask = Callable[[Any, Any, int], Prediction | None]  # of a model, inputs and their number


def preload(use: str = "") -> None:
    """Import what adapted classes use of scikit-learn, and read the installed distributions.

    For a process that others are forked from. The module of the target ``use`` is imported if it is one of
    scikit-learn. The first validation of data in a process reads the entry points of all packages, so that it is done
    here.
    """
    if use.startswith("sklearn."):
        with contextlib.suppress(ImportError):  # the process of the method reports it
            importlib.import_module(use.partition(":")[0])
    importlib.import_module("sklearn.pipeline")
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data

    validate_data(BaseEstimator(), [[0.0]], [0.0])
    distributions()


def fit(model: Any, X: Array, y: Array) -> None:
    """Fit a model to inputs X (n, d) and targets y (n,), which are data frames for skpro."""
    if _is_skpro(model):
        import pandas as pd

        model.fit(_frame(X), pd.DataFrame({"y": y}))
    else:
        model.fit(X, y)


def stated_convergence(model: Any) -> bool | None:
    """Return the attribute ``converged_`` of a fitted model or of the estimator inside it, None without one.

    Issues a ConvergenceWarning if it is false, so that the cell has a reason.
    """
    met = convergence(getattr(_innermost(model), "converged_", None))
    if met is False:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn("the class states so by converged_", ConvergenceWarning, stacklevel=2)
    return met


def predict_dist(model: Any, X: Any) -> Prediction:
    """Return the most informative prediction of a fitted regressor: a distribution, quantiles or points.

    Parameters
    ----------
    model : object
        A regressor of ``ep_bench.Estimator`` or of another library. Of a scikit-learn ``Pipeline`` and a
        ``TransformedTargetRegressor``, the estimator inside is asked, and its prediction is transformed back.
    X : array-like of shape (n, d)
        Inputs.

    Returns
    -------
    Predictive, DensityPrediction, QuantilePrediction or PointPrediction
        In the units of the targets of ``fit``, noise included.

    Raises
    ------
    ValueError, TypeError
        The model returns an object of wrong type or shape, or the transform of the target is not strictly increasing.
    """
    n = len(X)
    if _is(model, "TransformedTargetRegressor"):
        return of_target(predict_dist(model.regressor_, X), model.transformer_)
    if _is(model, "Pipeline"):
        return predict_dist(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X)
    rows = _frame(X) if _is_skpro(model) else X
    for ask in _ASKS:
        found = ask(model, rows, n)
        if found is not None:
            return found
    return PointPrediction(_points(model, rows, n))


def _innermost(model: Any) -> Any:
    """Return the estimator that predicts inside pipelines and transforms of the target, fitted if they are.

    They hide its prediction methods and the signatures of these.
    """
    while True:
        if _is(model, "Pipeline"):
            model = model.steps[-1][-1]
        elif _is(model, "TransformedTargetRegressor"):
            model = getattr(model, "regressor_", model.regressor)
        else:
            return model


def _is(model: Any, name: str) -> bool:
    """Return whether a model is of a class of scikit-learn, whose import is slow."""
    return any(base.__name__ == name and base.__module__.startswith("sklearn.") for base in type(model).__mro__)


def _distribution(name: str) -> _Ask:
    """Return the function that calls a prediction method which returns a distribution."""

    def ask(model: Any, X: Any, n: int) -> Prediction | None:
        method = bound_method(model, name)
        return None if method is None else as_prediction(method(X), n, name)

    return ask


def _predict_proba(model: Any, X: Any, n: int) -> Prediction | None:
    ask = bound_method(model, "predict_proba")
    if ask is None:
        return None
    try:
        found = ask(X)
    except NotImplementedError:  # the base class of skpro has the method even if the model does not support it
        return None
    if isinstance(found, np.ndarray | list | tuple):
        raise TypeError(
            f"predict_proba returned an array of shape {np.shape(found)}, like a classifier; in regression it must "
            "return a distribution of the target; derive a classifier from sklearn.base.ClassifierMixin"
        )
    return as_prediction(found, n, "predict_proba")


def _return_std(model: Any, X: Any, n: int) -> Prediction | None:
    """Call ``predict(X, return_std=True)`` as for Gaussian models of scikit-learn."""
    ask = bound_method(model, "predict")
    if ask is None:
        return None
    if accepts(ask, "return_std"):
        found = ask(X, return_std=True)
    elif (found := _pair_by_any_keyword(ask, X)) is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        kind = type(found).__name__
        raise ValueError(f"predict(X, return_std=True) returned {kind}, expected means and standard deviations")
    mean, std = _vector(found[0], n, "mean"), _vector(found[1], n, "standard deviation")
    if np.any(std < 0.0):
        raise ValueError(f"predict returned a negative standard deviation, {std.min():g}")
    return Predictive.gaussian(mean, std**2)


def _pair_by_any_keyword(ask: Callable[..., Any], X: Any) -> tuple[Any, Any] | None:
    """Return the pair that ``predict(X, **kwargs)`` returns for ``return_std=True``, None if it does not know this."""
    if not _takes_any_keyword(ask):
        return None
    try:
        found = ask(X, return_std=True)
    except Exception:  # noqa: BLE001 - what receives the keyword refuses it; other errors occur again without it
        return None
    return found if isinstance(found, tuple) and len(found) == 2 else None


def _predict_quantiles(model: Any, X: Any, n: int) -> Prediction | None:
    ask = bound_method(model, "predict_quantiles")
    if ask is None:
        return None
    levels = list(ASKED_LEVELS)
    try:
        found = ask(X, alpha=levels) if accepts(ask, "alpha") else ask(X, levels)
    except NotImplementedError:
        return None
    return _quantiles(model, X, n, found, "predict_quantiles")


def _quantile_option(model: Any, X: Any, n: int) -> Prediction | None:
    ask = bound_method(model, "predict")
    if ask is None or not accepts(ask, "quantiles"):
        return None
    return _quantiles(model, X, n, ask(X, quantiles=list(ASKED_LEVELS)), "predict(X, quantiles=...)")


def _predict_interval(model: Any, X: Any, n: int) -> Prediction | None:
    """Call ``predict_interval`` of a skpro model; models of other libraries are not supported."""
    ask = bound_method(model, "predict_interval")
    if ask is None or not accepts(ask, "coverage"):
        return None
    try:
        found = ask(X, coverage=list(_COVERAGES))
    except NotImplementedError:
        return None
    if getattr(getattr(found, "columns", None), "nlevels", 1) != 3:
        raise ValueError("predict_interval must return a frame with columns (variable, coverage, lower or upper)")
    ends = {"lower": -0.5, "upper": 0.5}
    levels = [round(0.5 + ends[end] * float(coverage), 12) for _, coverage, end in found.columns]
    order = np.argsort(levels)
    values = real_array(found, "quantiles").T
    if values.shape != (2 * len(_COVERAGES), n):
        raise ValueError(f"predict_interval returned a frame of shape {found.shape} for {n} data points")
    return QuantilePrediction(np.array(levels)[order], values[order], _points_if_any(model, X, n))


def tuning_scores(model: Any, task: Task) -> tuple[str, ...]:
    """Return the scores by which the options of an unfitted model can be searched, from its prediction methods.

    All of the task, if the model does not show whether it has a density.
    """
    model = _innermost(model)
    distributions = any(bound_method(model, name) for name in ("predict_dist", "pred_dist", "predict_proba"))
    is_open = distributions or any("__getattr__" in vars(base) for base in type(model).__mro__)
    if task == "classification":
        return ("ll", "error_rate") if is_open else ("error_rate",)
    point = bound_method(model, "predict")
    if is_open or (point and (accepts(point, "return_std") or _takes_any_keyword(point))):
        return ("ll", "rmse", "crps", "pinball")
    if bound_method(model, "predict_quantiles") or (point and accepts(point, "quantiles")):
        return ("rmse", "crps", "pinball")
    return ("rmse", "pinball") if bound_method(model, "predict_interval") else ("rmse",)


_ASKS: tuple[_Ask, ...] = (
    _distribution("predict_dist"),
    _distribution("pred_dist"),
    _predict_proba,
    _return_std,
    _predict_quantiles,
    _quantile_option,
    _predict_interval,
)


def _quantiles(model: Any, X: Any, n: int, found: Any, call: str) -> QuantilePrediction:
    values = real_array(found, "quantiles")
    if values.shape != (n, len(ASKED_LEVELS)):
        expected = f"({n}, {len(ASKED_LEVELS)}), one column per level"
        raise ValueError(f"{call} returned quantiles of shape {values.shape}, expected {expected}")
    return QuantilePrediction(ASKED_LEVELS, values.T, _points_if_any(model, X, n))


def _points_if_any(model: Any, X: Any, n: int) -> Array | None:
    return None if bound_method(model, "predict") is None else _points(model, X, n)


def _points(model: Any, X: Any, n: int) -> Array:
    return _vector(model.predict(X), n, "mean")


def _vector(values: Any, n: int, what: str) -> Array:
    vector = column(values)
    if vector.shape != (n,):
        raise ValueError(f"predict returned a {what} of shape {vector.shape} for {n} data points, expected ({n},)")
    return vector


def can_predict(model: Any) -> bool:
    """Return whether a model, or its class, has a prediction method."""
    return any(bound_method(model, name) for name in PREDICTION_METHODS)


def accepts(method: Callable[..., Any], name: str) -> bool:
    """Return whether the signature of a method has a parameter of this name."""
    return name in _parameters(method)


def _takes_any_keyword(method: Callable[..., Any]) -> bool:
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in _parameters(method).values())


def _parameters(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):  # there is no signature
        return {}


def _is_skpro(model: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "skpro" for base in type(model).__mro__)


def _frame(X: Any) -> Any:
    """Return inputs as a data frame with named columns, as skpro requires."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])
