"""The method of one cell, in the process that fits it.

A child of a fork server serves a ``CellMethod`` (``processes.fork_server``). It receives training data and test inputs,
and returns a prediction, which the run scores. Test targets arrive after ``predict`` only, for the log densities of a
distribution that is no mixture of Gaussians.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from inspect import Parameter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench import adapters, estimator, methods
from ep_bench.estimator.model import MethodModel
from ep_bench.estimator.source_code import source_hash
from ep_bench.predictions import (
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
)
from ep_bench.processes.fork_server import convergence_warnings
from ep_bench.processes.tree import own_cpu_seconds, peak_megabytes
from ep_bench.recalibration import RecalibratedModel
from ep_bench.results.provenance import environment
from ep_bench.runner.jobs import (
    Evaluation,
    Fitted,
    MethodSetup,
    ObjectDefault,
    Opened,
    Options,
    Predicted,
    SentDensity,
    Summary,
    seed_globals,
)
from ep_bench.types import Array, Task

DIAGNOSED = 1000  # largest number of test points whose predictions are diagnosed
_PLAIN = (Predictive, QuantilePrediction, PointPrediction, ClassProbabilities, ClassLabels)


class CellMethod:
    """The method of one cell; the current model is the one that ``build`` made last."""

    warned: list[str]  # convergence warnings, which the objects collect that pass on the calls of a run

    def __init__(self, setup: MethodSetup) -> None:
        adapters.use_copies(setup.copies)
        self._setup = setup
        self._model: Any = None
        self._densities: list[DensityPrediction] = []  # of the current model
        self._is_class = adapters.is_target(setup.use)
        self._version = _version(setup.use, setup.base, json.dumps(setup.options), setup.tuned)

    def open(self, variants: Sequence[Options], strict: bool) -> Opened:
        """Import the modules and compile the kernels of options.

        Errors are ignored unless ``strict``: in a search they occur again in their trial, which records them.
        """
        source = {} if self._is_class else {"source": source_hash(self._setup.use)}
        return Opened(self._version, {**environment(), **source}, self._load(variants, strict))

    def _load(self, variants: Sequence[Options], strict: bool) -> float:
        if not self._is_class:
            return load_kernels(self._setup.use, self._setup.task, variants, strict=strict)
        for options in () if strict else variants:
            with contextlib.suppress(Exception):
                self.build(options)
        return 0.0

    def defaults(self, names: Collection[str]) -> dict[str, Any]:
        """Return the defaults of an external class, of the options ``names`` that have one."""
        if not self._is_class:
            return {}
        known = adapters.parameters(adapters.resolve(self._setup.use, Path(self._setup.base))) or {}
        known = {**known, adapters.STANDARDIZE: False}
        found = {name: known[name] for name in names if known.get(name, Parameter.empty) is not Parameter.empty}
        return {name: value if _is_plain(value) else ObjectDefault(name) for name, value in found.items()}

    def build(self, options: Options, only_mean: bool = False) -> None:
        """Construct a model; with ``only_mean``, a registry method may save what only its variances need."""
        self._densities.clear()
        options = {name: value for name, value in options.items() if not isinstance(value, ObjectDefault)}
        self._model = self._made(options)
        if only_mean and isinstance(self._model, MethodModel):
            self._model.only_mean = True

    def _made(self, options: Options) -> Any:
        """Return a new model of the method, which is not recalibrated."""
        setup = self._setup
        if self._is_class:
            return adapters.build(setup.use, options, Path(setup.base), seed=setup.seed, classes=setup.classes)
        known: dict[str, Any] = {"constant_inputs": dict(setup.constants) or None, "random_state": setup.seed}
        if setup.task == "classification":
            known["classes"] = tuple(range(setup.classes))
        return estimator.model_class(setup.use, setup.task)(**options, **known)

    def _recalibrate(self, options: Options) -> None:
        """Replace the current model by one that is recalibrated, if the cell has it so."""
        found = self._setup.recalibrate
        if found is not None:
            kind, fraction, cross = found["method"], found["fraction"], found["cross"]
            make = partial(self._made, dict(options))
            refit = found.get("refit", False)
            self._model = RecalibratedModel(make, kind, fraction, self._setup.seed, cross, refit=refit)

    def fit(self, X: Array, y: NDArray[Any]) -> Fitted:
        """Seed the global generators and fit the model to X (n, d) and y (n,), in original units."""
        seed_globals(self._setup.seed)
        cpu, started = own_cpu_seconds(), perf_counter()
        self._model.fit(X, y)
        seconds, used = perf_counter() - started, own_cpu_seconds() - cpu
        trace = {str(name): [float(v) for v in values] for name, values in self._model.trace_.items()}
        return Fitted(seconds, used, trace)

    def predict(self, X: Array) -> Predicted:
        """Predict at X (n, d), in original units."""
        cpu, started = own_cpu_seconds(), perf_counter()
        prediction = self._model.predict_dist(X)
        return Predicted(perf_counter() - started, own_cpu_seconds() - cpu, prediction)

    def evaluate(self, options: Options, X: Array, y: NDArray[Any], test: Array, training: bool) -> Evaluation:
        """Build and fit a model, and predict at the test inputs (N, d), with ``training`` also at X (n, d)."""
        self.build(options)
        self._recalibrate(options)
        fit, found = self.fit(X, y), self.predict(test)
        again = self.predict(X).prediction if training else None
        return Evaluation(fit, found, again, self.summary(test), peak_megabytes())

    def summary(self, X: Array) -> Summary:
        """Return what the model states of its fit, for test inputs X (n, d)."""
        return Summary(diagnostics(self._model, X), self._model.converged_)

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process and its descendants so far."""
        return own_cpu_seconds()


def diagnostics(model: Any, test: Array) -> dict[str, Any]:
    """Return the note ``diagnostics`` of a fitted model that has an attribute of this name, numbers by name.

    What is no number, or not finite, becomes None. If the model can diagnose predictions, this is done for at most
    DIAGNOSED evenly spaced test points of ``test`` (n, d).
    """
    found = getattr(model, "diagnostics_", None)
    if not isinstance(found, Mapping) or not found:
        return {}
    numbers = {str(name): _number(value) for name, value in found.items()}
    if hasattr(model, "diagnose"):
        chosen = np.round(np.linspace(0, len(test) - 1, min(len(test), DIAGNOSED))).astype(np.int64)
        numbers |= {name: _number(value) for name, value in model.diagnose(test[chosen], "test_rows").items()}
    return {"diagnostics": numbers}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 attributes of external methods may have any content; scores do not depend on it
        return None
    return float(f"{number:.6g}") if math.isfinite(number) else None


class RecordedMethod:
    """A ``CellMethod`` in this process; as of one in a child, convergence warnings are added to ``warned``."""

    def __init__(self, method: CellMethod) -> None:
        self._method, self.warned = method, list[str]()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            with convergence_warnings(self.warned):
                return getattr(self._method, name)(*arguments)

        return call


class ServedMethod(CellMethod):
    """A ``CellMethod`` whose predictions are sent to another process; the functions of densities stay here."""

    def predict(self, X: Array) -> Predicted:
        """Predict at X (n, d), in original units."""
        found = super().predict(X)
        return found._replace(prediction=self._sent(found.prediction))

    def _sent(self, prediction: Any) -> Any:
        """Return a prediction without the class that a method derived from its type, which only this process knows."""
        if isinstance(prediction, DensityPrediction):
            self._densities.append(prediction)
            return SentDensity(len(self._densities) - 1, prediction.mean(), prediction.variance())
        kind = next((kind for kind in _PLAIN if isinstance(prediction, kind)), type(prediction))
        if type(prediction) is kind:
            return prediction
        plain = object.__new__(kind)
        plain.__dict__.update(vars(prediction))
        return plain

    def density(self, place: int, function: str, point: Any) -> Array:
        """Return ``logpdf``, ``cdf`` or ``quantile`` of a density that was predicted."""
        values: Array = getattr(self._densities[place], function)(point)
        return values


def prepare() -> None:
    """Load in the fork server what most methods use, so that no cell's time includes it."""
    methods.names()
    environment()


def load_libraries(use: str = "") -> float:
    """Load in the fork server what external methods use; the time in seconds does not count as compilation."""
    adapters.preload(use)
    return 0.0


def load_kernels(use: str, task: Task, variants: Iterable[Options], *, strict: bool = False) -> float:
    """Compile the kernels of a method of the registry; return the time in seconds. See ``CellMethod.load``."""
    seconds = 0.0
    for options in variants:
        with contextlib.nullcontext() if strict else contextlib.suppress(Exception):
            seconds += estimator.warm_up(use, options, task)
    source_hash(use)  # is kept for the children
    return seconds


def _is_plain(value: Any) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        json.dumps(value, allow_nan=False)
        return not isinstance(value, np.generic)
    return False


@lru_cache(maxsize=256)
def _version(use: str, base: str, options: str, tuned: bool) -> str:
    if adapters.is_target(use):
        return adapters.version(use, Path(base), json.loads(options), loaded=True)
    return estimator.resolve(use, json.loads(options), tuned=tuned).version
