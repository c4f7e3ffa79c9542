"""The scikit-learn face of every method: standardise, fit, predict in original units.

``Estimator("pbp", hidden=[50])`` makes an instance of the method's own scikit-learn class (``PbpRegressor``), whose
constructor has one parameter an option; with ``task="classification"`` it is a classifier (``DgpEpClassifier``). Inputs
and, in regression, target are standardised by the mean and the standard deviation (ddof 0) of the training rows; an
input that is constant there becomes 0. ``adapters`` gives methods from outside the same face.
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
from ep_bench.estimator.config import COMMON_OPTIONS, parse_options, split_common
from ep_bench.estimator.scaling import Scaling, standardisation
from ep_bench.types import Task, UserError, nearest

if TYPE_CHECKING:
    from ep_bench.estimator.classifier import MethodClassifier
    from ep_bench.estimator.fitting import MethodEstimator, RandomState
    from ep_bench.estimator.regressor import MethodRegressor

# Names whose modules load scikit-learn, which a plan does not need: imported when they are first used.
_LATER = {
    "MethodClassifier": "ep_bench.estimator.classifier",
    "MethodEstimator": "ep_bench.estimator.fitting",
    "MethodRegressor": "ep_bench.estimator.regressor",
    "RandomState": "ep_bench.estimator.fitting",
}
_SUFFIXES = {"regression": "Regressor", "classification": "Classifier"}
_warm: set[str] = set()  # methods, with the options that may choose a kernel, that this process has compiled


@cache
def estimator_class(name: str, task: Task | None = None) -> Any:
    """Return the scikit-learn class of a registry method for a task, by default the method's first.

    Raises UserError for an unknown name, and for a task that the method cannot do.
    """
    if task is None:
        return estimator_class(name, methods.get(name).tasks[0])
    method = methods.get(name)
    fields = method.config.model_fields  # type: ignore[attr-defined]
    defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    defaults |= {**COMMON_OPTIONS, "constant_inputs": None, "random_state": None}
    defaults |= {"classes": None} if task == "classification" else {}
    require_task(name, task)

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
    class_name = _class_name(name, task)
    body = {
        "__init__": __init__,
        "__module__": __name__,
        "__doc__": f"{method.title} ({method.paper}), options as in ``ep-bench methods show {name}``.\n\n"
        "What it has after ``fit``: ``help(ep_bench.Estimator)``.",
        "method": method,
    }
    return type(class_name, (_base(task),), body)


def _base(task: Task) -> type[MethodEstimator]:
    from ep_bench.estimator.classifier import MethodClassifier
    from ep_bench.estimator.regressor import MethodRegressor

    return MethodClassifier if task == "classification" else MethodRegressor


def require_task(name: str, task: Task) -> None:
    """Raise UserError where a registry method cannot do a task."""
    tasks = methods.get(name).tasks
    if task not in tasks:
        raise UserError(f"{name} does {' and '.join(tasks)} only", field="task", found=task, allowed=tasks)


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
    name : a registry name, ``ep-bench methods list`` prints them
    task : ``regression`` or ``classification``; by default the first that the method can do, which is regression
        wherever it can do both
    **options : the method's options, and ``standardize``, ``constant_inputs`` ({column: standardised value} of
        inputs constant in the training rows) and ``random_state``; of a classifier also ``classes``, all labels there
        are, where training rows may lack some

    A classifier has ``predict_proba``, columns by ``classes_``, and ``predict_dist(X).logpdf(y)``, log probabilities.

    Attributes after ``fit``
    ------------------------
    ``state_`` : the method's own State, a tuple of named arrays, standardised units
    ``trace_`` : name -> list, one value an epoch or iteration, a sampler's warm-up included; which names, the method's
        ``fit`` says (``objective``, ``noise_deviation``, ...), standardised units or nats
    ``log_evidence_`` : of methods that have an evidence, nats, of the standardised targets
    ``hyperparameters_``, ``n_iterations_``, ``converged_`` : of Gaussian processes, values by name (standardised
        units), iterations of the search, whether it met its own criterion; ``latent(X)`` has mean and variance of f.
        ``site_precisions_`` of ``gp_t``, but by ``mcmc``, which has no ``log_evidence_`` either: one a training row.
        ``jitter_`` of sparse ones: what stands on the inducing outputs' diagonal, in parts of its mean

    Of samplers (``hmc``, ``sgld``, ``gp_t`` by ``mcmc``) also:

    ``chains_`` : name -> array (chains, draws) after warm-up, standardised units or nats: ``log_joint``,
        ``noise_deviation``, ``prior_deviation`` (``prior_deviation_1`` and so on of several groups of weights), or
        hyperparameters by name, as far as the sampler has them, and ``prediction``, that of the watched row whose
        R-hat is the largest; watched are 32 training rows (all, where there are fewer) and as many midpoints between
        two of them. Of very long chains 2,000 draws each, evenly spaced
    ``diagnostics_`` : name -> number: ``r_hat_*``, ``ess_bulk_*`` and ``ess_tail_*`` of these quantities and of
        ``predictions`` (the worst of the watched rows), absent where a quantity never changes or draws are too few; in
        ``hmc`` also ``divergences`` and ``gradients``, sums over the chains, ``acceptance`` and ``step_size``, means

    Raises UserError for an unknown name or a task that the method cannot do, TypeError for an unknown option.
    """
    return estimator_class(name, task)(**options)


def warm_up(name: str, options: Mapping[str, Any], task: Task | None = None) -> float:
    """Compile a registry method's kernels by the smallest fit there is; return the seconds, 0 where it was done.

    Numbers among the options choose no kernel: what was compiled for others serves.
    """
    words = {
        key: value for key, value in options.items() if isinstance(value, bool) or not isinstance(value, int | float)
    }
    key = f"{name} {task or methods.get(name).tasks[0]} {json.dumps(words, sort_keys=True, default=str)}"
    if key in _warm:
        return 0.0
    started = time.perf_counter()
    X, y = np.arange(9.0).reshape(3, 3) % 4.0, np.arange(3.0)
    # A method may refuse these rows, or warn of them; what it ran is compiled.
    with contextlib.suppress(ArithmeticError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Estimator(name, task, **{**options, **methods.get(name).warmup}, random_state=0).fit(X, y).predict_dist(X)
    _warm.add(key)
    return time.perf_counter() - started


def _class_name(name: str, task: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + _SUFFIXES[task]


def __getattr__(attribute: str) -> Any:
    """Import the names of ``_LATER``; find the generated classes by name, so that their instances pickle."""
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
    "RandomState",
    "Scaling",
    "UserError",
    "estimator_class",
    "parse_options",
    "require_task",
    "split_common",
    "standardisation",
    "warm_up",
]
