"""The scikit-learn face of every method: standardise, fit, predict in original units.

``Estimator("pbp", hidden=[50])`` makes an instance of the method's own scikit-learn class (``PbpRegressor``), whose
constructor has one parameter an option. Inputs and target are standardised by the mean and the standard deviation
(ddof 0) of the training rows; an input that is constant there becomes 0. ``adapters`` gives methods from outside the
same face.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ValidationError
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench import methods
from ep_bench.numerics import mixing
from ep_bench.options import problems
from ep_bench.types import OFFERED, Array, Method, Predictive, Rows, UserError, nearest, spell

RandomState = int | np.random.Generator | np.random.RandomState | None

# Options that every registry method has beside its own.
COMMON_OPTIONS: Mapping[str, Any] = {"standardize": True}


_warm: set[str] = set()  # methods, with the options that may choose a kernel, that this process has compiled


class Scaling(NamedTuple):
    """Shift and scale to standardised units, from training rows."""

    shift: Array  # (d,)
    scale: Array  # (d,)
    offset: Array  # (d,) what a constant input becomes

    @classmethod
    def of(cls, X: Array, constants: Mapping[int, float] | None = None) -> Scaling:
        """Return the scaling of columns to mean 0 and deviation 1 (ddof 0).

        A constant column is found by max == min, since rounding can give it a deviation above 0; it becomes 0, or
        what ``constants`` says of its index.
        """
        constant = X.max(axis=0) == X.min(axis=0)
        offset = np.zeros(X.shape[1])
        for column, value in (constants or {}).items():
            if not 0 <= column < X.shape[1]:
                raise ValueError(f"constant_inputs names input {column}; the inputs are 0 to {X.shape[1] - 1}")
            if constant[column]:
                offset[column] = value
        shift = np.where(constant, X[0], X.mean(axis=0))
        scale = np.where(constant, 1.0, X.std(axis=0))
        return cls(shift, np.where(scale > 0.0, scale, 1.0), offset)

    @classmethod
    def none(cls, d: int) -> Scaling:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(d), np.ones(d), np.zeros(d))

    def apply(self, X: Array) -> Array:
        """Return the rows (n, d) in standardised units, row-contiguous."""
        out = np.subtract(X, self.shift, order="C")
        out /= self.scale
        out += self.offset
        return out


def standardisation(
    X: Array, y: Array, constants: Mapping[int, float] | None = None, *, active: bool = True
) -> tuple[Scaling, Scaling]:
    """Return the scalings of inputs (n, d) and target (n,); both change nothing where not ``active``."""
    if not active:
        return Scaling.none(X.shape[1]), Scaling.none(1)
    return Scaling.of(X, constants), Scaling.of(y[:, None])


class MethodRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Common part of the registry methods' scikit-learn classes; ``Estimator`` says what they have after ``fit``."""

    method: ClassVar[Method]
    standardize: bool
    constant_inputs: Mapping[int, float] | None
    random_state: RandomState

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> MethodRegressor:
        """Fit to rows X (n, d) and targets y (n,) in original units.

        ``extra`` goes to the method's own ``fit`` (PBP takes ``start`` and ``orders``).
        Raises ValueError for bad arrays or options, FloatingPointError where the method diverges. Warns by
        scikit-learn's ConvergenceWarning, with the method's name, where it did not reach its own criterion.
        """
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        targets = np.asarray(targets, dtype=np.float64)
        config = self._config()
        self.x_scaling_, self.y_scaling_ = standardisation(
            inputs, targets, self.constant_inputs, active=self.standardize
        )
        fit_rng, self.predict_seed_ = _streams(self.random_state)
        rows = Rows(self.x_scaling_.apply(inputs), self.y_scaling_.apply(targets[:, None])[:, 0])
        unconverged: list[tuple[str, type[Warning]]] = []
        try:
            with _set_aside(unconverged):
                self.state_, self.trace_ = self.method.fit(rows, config, fit_rng, **extra)
        finally:
            for words, category in unconverged:
                warnings.warn(f"{self.method.name}: {words}", category, stacklevel=2)
        self._take_over_offers()
        return self

    def _take_over_offers(self) -> None:
        """Set an attribute for each thing that the state offers, and remove those of a fit before."""
        for name in OFFERED:
            self.__dict__.pop(f"{name}_", None)
            if hasattr(self.state_, name):
                setattr(self, f"{name}_", getattr(self.state_, name))

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Return the predictive distribution of rows X (n, d): original units, noise included."""
        check_is_fitted(self, "state_")
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        rng = np.random.default_rng(self.predict_seed_)
        standardised = self.method.predict(self.state_, self.x_scaling_.apply(inputs), rng)
        return standardised.rescale(float(self.y_scaling_.shift[0]), float(self.y_scaling_.scale[0]))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return means (n,), with ``return_std`` also standard deviations (n,), noise included; original units."""
        distribution = self.predict_dist(X)
        return (distribution.mean(), distribution.std()) if return_std else distribution.mean()

    def diagnose(self, X: ArrayLike, name: str = "predictions") -> dict[str, float]:
        """Return how well a sampler's predictions for rows X (n, d) have mixed; empty for methods that are none.

        By ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` with ``name``, the worst of the rows, of the draws that are kept
        for predictions: ``numerics.mixing.measures``.
        """
        distribution = self.predict_dist(X)
        chain = getattr(self.state_, "chain", None)
        if chain is None:
            return {}
        means = distribution.means[:: len(distribution.means) // len(chain)]  # parts of a draw have one mean
        by_chain = np.array([means[chain == place] for place in range(int(chain.max()) + 1)])
        return mixing.measures(name, by_chain)[0]

    @available_if(lambda self: self.method.latent is not None)  # type: ignore[untyped-decorator]
    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return means (n,) and variances (n,) of the function at rows X (n, d), noise left out; original units."""
        check_is_fitted(self, "state_")
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        mean, variance = self.method.latent(self.state_, self.x_scaling_.apply(inputs))  # type: ignore[misc]
        scale = float(self.y_scaling_.scale[0])
        return float(self.y_scaling_.shift[0]) + scale * mean, scale**2 * variance

    def _config(self) -> Any:
        options = {name: getattr(self, name) for name in self.method.config.model_fields}  # type: ignore[attr-defined]
        return parse_options(self.method, options)


@contextlib.contextmanager
def _set_aside(found: list[tuple[str, type[Warning]]]) -> Iterator[None]:
    """Keep this thread's convergence warnings back, words and category, and show all others as before.

    Kept back whatever the filters say of them: these hold where the warnings are given anew. The filters are the
    process's own, so that fits in several threads may leave them in each other's order; the hook therefore lets pass
    what is not its own, and everything once its fit is over.
    """
    show, thread, fitting = warnings.showwarning, threading.get_ident(), True

    def hook(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if fitting and threading.get_ident() == thread and issubclass(category, ConvergenceWarning):
            found.append((str(message), category))
        else:
            show(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = hook
        try:
            yield
        finally:
            fitting = False


@cache
def estimator_class(name: str) -> type[MethodRegressor]:
    """Return the scikit-learn class of a registry method. Raises UserError for an unknown name."""
    method = methods.get(name)
    fields = method.config.model_fields  # type: ignore[attr-defined]
    defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    defaults |= {**COMMON_OPTIONS, "constant_inputs": None, "random_state": None}

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
    class_name = _class_name(name)
    body = {
        "__init__": __init__,
        "__module__": __name__,
        "__doc__": f"{method.title} ({method.paper}), options as in ``ep-bench methods show {name}``.\n\n"
        "What it has after ``fit``: ``help(ep_bench.Estimator)``.",
        "method": method,
    }
    return type(class_name, (MethodRegressor,), body)


def Estimator(name: str, **options: Any) -> MethodRegressor:
    """Return a scikit-learn regressor for a registry method.

    Parameters
    ----------
    name : a registry name, ``ep-bench methods list`` prints them
    **options : the method's options, and ``standardize``, ``constant_inputs`` ({column: standardised value} of
        inputs constant in the training rows) and ``random_state``

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

    Raises UserError for an unknown name, TypeError for an unknown option.
    """
    return estimator_class(name)(**options)


def warm_up(name: str, options: Mapping[str, Any]) -> float:
    """Compile a registry method's kernels by the smallest fit there is; return the seconds, 0 where it was done.

    Numbers among the options choose no kernel: what was compiled for others serves.
    """
    words = {
        key: value for key, value in options.items() if isinstance(value, bool) or not isinstance(value, int | float)
    }
    key = f"{name} {json.dumps(words, sort_keys=True, default=str)}"
    if key in _warm:
        return 0.0
    started = time.perf_counter()
    X, y = np.arange(9.0).reshape(3, 3) % 4.0, np.arange(3.0)
    # A method may refuse these rows, or warn of them; what it ran is compiled.
    with contextlib.suppress(ArithmeticError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Estimator(name, **{**options, **methods.get(name).warmup}, random_state=0).fit(X, y).predict_dist(X)
    _warm.add(key)
    return time.perf_counter() - started


def parse_options(method: Method, options: Mapping[str, Any]) -> Any:
    """Return the method's frozen Config. Raises ValueError with one line a wrong option."""
    try:
        return method.config(**options)
    except ValidationError as error:
        wrong = [
            str(UserError(problem, field=spell(place), found=found, allowed=allowed, name=name))
            for place, problem, found, allowed, name in problems(method.config, method.name, error)
        ]
        lead = " " if len(wrong) == 1 else "\n  "
        raise ValueError(f"options of {method.name}:{lead}{lead.join(wrong)}") from None


def split_common(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a registry method's own options and the common ones, the latter with their defaults filled in."""
    own = {key: value for key, value in options.items() if key not in COMMON_OPTIONS}
    return own, {**COMMON_OPTIONS, **{key: options[key] for key in COMMON_OPTIONS if key in options}}


def _streams(random_state: RandomState) -> tuple[np.random.Generator, int]:
    """Return the generator of the fit and the seed of the predictions."""
    if isinstance(random_state, np.random.Generator):
        return random_state, int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    root = np.random.SeedSequence(random_state)
    fit, predict = root.spawn(2)
    return np.random.default_rng(fit), int(predict.generate_state(1, np.uint64)[0])


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Regressor"


def __getattr__(attribute: str) -> Any:
    """Find the generated classes by name, so that their instances pickle."""
    for name in methods.names():
        if _class_name(name) == attribute:
            return estimator_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")


__all__ = [
    "Estimator",
    "MethodRegressor",
    "UserError",
    "estimator_class",
    "parse_options",
    "standardisation",
    "warm_up",
]
