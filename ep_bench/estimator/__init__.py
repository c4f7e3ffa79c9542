"""The scikit-learn interface of registry methods: standardise, fit, predict in original units.

``Estimator("pbp", hidden=[50])`` returns an instance of the method's scikit-learn class (``PbpRegressor``), whose
constructor has one parameter per option. With ``task="classification"`` it is a classifier (``DgpEpClassifier``).
Inputs, and in regression the target, are standardised by the mean and the standard deviation (ddof 0) of the training
data; an input that is constant in the training data becomes 0. ``adapters`` gives external methods the same interface.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import time
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ep_bench import methods
from ep_bench.errors import UserError, nearest
from ep_bench.estimator.config import (
    COMMON_OPTIONS,
    ResolvedOptions,
    parse_options,
    resolve,
    restore,
    split_common,
)
from ep_bench.estimator.model import ClassificationModel, MethodModel, RegressionModel
from ep_bench.estimator.scaling import Scaling, standardisation
from ep_bench.types import Task

if TYPE_CHECKING:
    from ep_bench.estimator.classifier import MethodClassifier
    from ep_bench.estimator.fitting import MethodEstimator
    from ep_bench.estimator.regressor import MethodRegressor

# Names whose modules load scikit-learn, which a plan does not need; they are imported on first use.
_LATER = {
    "MethodClassifier": "ep_bench.estimator.classifier",
    "MethodEstimator": "ep_bench.estimator.fitting",
    "MethodRegressor": "ep_bench.estimator.regressor",
}
_SUFFIXES = {"regression": "Regressor", "classification": "Classifier"}
_warm: set[str] = set()  # methods, with the options that can select a kernel, compiled in this process


@cache
def estimator_class(name: str, task: Task | None = None) -> Any:
    """Return the scikit-learn class of a registry method for a task, by default the first task of the method.

    Raises UserError for an unknown name, or a task that the method does not support.
    """
    if task is None:
        return estimator_class(name, methods.get(name).tasks[0])
    require_task(name, task)
    return _class(name, task, _base(task), _class_name(name, task))


@cache
def model_class(name: str, task: Task) -> Any:
    """Return the class of a registry method for a task without the interface of scikit-learn, which need not be loaded.

    Raises UserError for an unknown name, or a task that the method does not support.
    """
    require_task(name, task)
    return _class(name, task, RegressionModel if task == "regression" else ClassificationModel, f"{name}_model")


def _class(name: str, task: Task, base: type[MethodModel], class_name: str) -> Any:
    method = methods.get(name)
    fields = method.config.model_fields  # type: ignore[attr-defined]
    defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    defaults |= {**COMMON_OPTIONS, "constant_inputs": None, "random_state": None}
    defaults |= {"classes": None} if task == "classification" else {}

    def __init__(self: Any, **options: Any) -> None:  # noqa: N807
        unknown = sorted(options.keys() - defaults.keys())
        if unknown:
            hint = nearest(unknown[0], defaults)
            suffix = f"; did you mean {hint!r}?" if hint else ""
            raise TypeError(f"{name} has no option {unknown[0]!r}; it has {', '.join(sorted(defaults))}{suffix}")
        for key, default in defaults.items():
            setattr(self, key, options.get(key, default))

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()
    ]
    __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    body = {
        "__init__": __init__,
        "__module__": __name__,
        "__doc__": f"{method.title} ({method.paper}), options as in ``ep-bench methods show {name}``.\n\n"
        "Attributes after ``fit``: ``help(ep_bench.Estimator)``.",
        "method": method,
    }
    return type(class_name, (base,), body)


def _base(task: Task) -> type[MethodEstimator]:
    from ep_bench.estimator.classifier import MethodClassifier
    from ep_bench.estimator.regressor import MethodRegressor

    return MethodClassifier if task == "classification" else MethodRegressor


def require_task(name: str, task: Task) -> None:
    """Raise UserError unless a registry method supports a task."""
    tasks = methods.get(name).tasks
    if task not in tasks:
        raise UserError(f"{name} supports {' and '.join(tasks)} only", field="task", found=task, allowed=tasks)


@overload
def Estimator(name: str, task: Literal["classification"], **options: Any) -> MethodClassifier: ...
@overload
def Estimator(name: str, task: Literal["regression"] | None = None, **options: Any) -> MethodRegressor: ...
@overload
def Estimator(name: str, task: Any = None, **options: Any) -> Any: ...
def Estimator(name: str, task: Task | None = None, **options: Any) -> Any:
    """Return a scikit-learn regressor or classifier for a registry method.

    Parameters
    ----------
    name : str
        Name in the registry; ``ep-bench methods list`` prints all.
    task : str, optional
        ``regression`` or ``classification``, by default regression if the method supports both.
    **options
        The method's options, and ``standardize``, ``random_state`` and ``constant_inputs``, the standardised values
        {column: value} of inputs that are constant in the training data. For classifiers also ``classes``, all labels,
        if the training data may lack some.

    Returns
    -------
    MethodRegressor or MethodClassifier
        An estimator that is not fitted. Its attributes after ``fit`` are below, in standardised units unless stated
        otherwise; a method has those that apply to it.

    Attributes
    ----------
    state_ : tuple
        The method's State, a tuple of named arrays.
    trace_ : dict of list
        Values per epoch or iteration by name (``objective``, ``noise_deviation``, ...), including the warm-up of a
        sampler; the ``fit`` of the method documents the names.
    log_evidence_ : float
        Log evidence of the standardised targets (nats).
    hyperparameters_ : dict
        Gaussian processes: learned and fixed hyperparameters by name; ``ep_nn``: standard deviations of noise and
        weights; ``vi``, ``bb_alpha``, ``laplace`` and ``dropout``: ``noise_variance`` and others.
    n_iterations_ : int
        Gaussian processes, ``ep_nn`` (sweeps) and ``ensemble`` (epochs): number of iterations.
    converged_ : bool or None
        Whether the fit met its criterion of convergence; None if the method has no criterion.
    criterion_ : str
        ``ep_nn``: criterion of convergence that the fit met, empty if none.
    start_evidences_ : ndarray
        ``laplace``, ``ep_nn``, ``vi``: log evidence or bound (nats) of each start, -inf if it failed.
    site_precisions_ : ndarray of shape (n,)
        ``gp_t`` except with ``mcmc``: precisions of the likelihood terms.
    jitter_ : float
        Sparse Gaussian processes: jitter of the inducing covariance, relative to its mean diagonal element.
    chains_ : dict of ndarray of shape (chains, draws)
        Samplers: draws after warm-up by name, thinned to 2,000. ``hmc`` has ``log_joint`` (nats), ``noise_deviation``
        and ``prior_deviation`` (``prior_deviation_1`` etc. for several groups of weights), ``sgld`` has
        ``noise_deviation``, ``gp_t`` has ``log_joint`` and the sampled hyperparameters. All have ``prediction``, the
        monitored prediction with the largest R-hat. Diagnostics monitor 32 training inputs and 32 midpoints between
        training inputs.
    diagnostics_ : dict of float
        Samplers: ``r_hat_*``, ``ess_bulk_*`` and ``ess_tail_*`` of these quantities and of ``predictions`` (the worst
        monitored input). They are absent if a quantity is constant or there are too few draws; if all predictions are
        constant, their R-hat is 100. ``hmc`` also has ``divergences`` and ``gradients`` (sums over chains),
        ``acceptance`` and ``step_size`` (means); ``gp_t`` has ``factorisations`` of covariances (sum).
    classes_ : ndarray of shape (C,)
        Classifiers: the labels of the columns of ``predict_proba``.

    Raises
    ------
    UserError
        Unknown name, or a task that the method does not support.
    TypeError
        Unknown option.
    """
    return estimator_class(name, task)(**options)


def warm_up(name: str, options: Mapping[str, Any], task: Task | None = None) -> float:
    """Compile the kernels of a registry method by a small fit; return the seconds, 0 if they are compiled already.

    Numerical options are ignored, since they do not select a kernel.
    """
    words = {
        key: value for key, value in options.items() if isinstance(value, bool) or not isinstance(value, int | float)
    }
    key = f"{name} {task or methods.get(name).tasks[0]} {json.dumps(words, sort_keys=True, default=str)}"
    if key in _warm:
        return 0.0
    started = time.perf_counter()
    X, y = np.arange(9.0).reshape(3, 3) % 4.0, np.arange(3.0)
    # The method may reject these data or warn; the kernels that it called are compiled nevertheless.
    with contextlib.suppress(ArithmeticError, ValueError), warnings.catch_warnings(action="ignore"):
        model = model_class(name, task or methods.get(name).tasks[0])
        model(**{**options, **methods.get(name).warmup}, random_state=0).fit(X, y).predict_dist(X)
    _warm.add(key)
    return time.perf_counter() - started


def _class_name(name: str, task: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + _SUFFIXES[task]


def __getattr__(attribute: str) -> Any:
    """Return the names of ``_LATER``, and the generated classes, which pickle needs to find by name."""
    if attribute in _LATER:
        return getattr(import_module(_LATER[attribute]), attribute)
    for task, suffix in _SUFFIXES.items():
        for name in methods.names() if attribute.endswith(suffix) else ():
            if _class_name(name, task) == attribute:
                return estimator_class(name, task)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")


__all__ = [
    "COMMON_OPTIONS",
    "Estimator",
    "MethodClassifier",
    "MethodEstimator",
    "MethodRegressor",
    "ResolvedOptions",
    "Scaling",
    "estimator_class",
    "model_class",
    "parse_options",
    "resolve",
    "restore",
    "split_common",
    "standardisation",
    "warm_up",
]
