"""The method under test, constructed and called as in a run; its exceptions become `MethodError`."""

from __future__ import annotations

import inspect
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ep_bench import adapters, estimator, methods
from ep_bench.adapters import best_prediction
from ep_bench.errors import UserError
from ep_bench.predictions import ClassLabels, ClassProbabilities
from ep_bench.runner.jobs import seed_globals
from ep_bench.types import Array, Task

SEED = 11
CLASSES = 3  # number of classes in the example data
PREDICTIONS = ("predict", "predict_proba", "predict_dist")  # methods of classifiers
DISTRIBUTIONS = ("predict_dist", "pred_dist")  # methods that return a distribution


class ExampleRows(NamedTuple):
    """Inputs (n, d) and targets (n,)."""

    X: Array
    y: Array


class Answer(NamedTuple):
    """Predictions in original units: means (n,), standard deviations (n,) or None, and their distribution.

    For a classifier, the means are the probabilities (n, C) of the classes; without probabilities, that of the
    predicted class is 1.
    """

    mean: Array
    std: Array | None
    distribution: Any


class RawAnswer(NamedTuple):
    """One prediction of the instance itself, not checked for type or shape."""

    what: str  # the call, for messages
    part: str  # mean or std
    value: Any


class MethodError(Exception):
    """An exception of the method; the message names the step and the line, ``error`` is the exception."""

    def __init__(self, step: str, error: Exception, source: str) -> None:
        text = textwrap.shorten(f"{type(error).__name__}: {error}", 300, placeholder=" ...")
        super().__init__(f"{step} raised {text}{_place(error, source)}")
        self.error = error


class MethodUnderTest:
    """A target with its options.

    Instances are used in two forms: the *model* is the object of the method's own class; the *wrapped* instance has the
    runner's interface, ``fit`` and ``predict_dist``. For registry methods they are the same.

    ``source`` is the file of the class, or empty. ``task`` may be None until `prepare` chooses the first task of the
    target.
    """

    def __init__(self, target: str, options: Mapping[str, Any], base: Path, task: Task | None = None) -> None:
        self.target, self.options, self.base, self.task = target, dict(options), base, task
        self.registered = not adapters.is_target(target)
        self.source = ""

    def prepare(self) -> None:
        """Import the target, check its options and construct it. Raises UserError if one of these fails."""
        able = methods.get(self.target).tasks if self.registered else adapters.tasks(self.target, self.base)
        self.task = self.task or able[0]
        if self.task not in able:
            raise UserError(
                f"supports {able[0]} only", where=self.target, field="--task", found=self.task, allowed=able
            )
        if self.registered:
            own, _ = estimator.split_common(self.options)
            model = self._first()
            own.pop("random_state", None), own.pop("constant_inputs", None)
            try:
                estimator.parse_options(model.method, own)
            except ValueError as error:
                raise UserError(str(error)) from None
            self.source = inspect.getsourcefile(model.method.fit) or ""
            with suppress(Exception):  # compile kernels before timing starts; the checks report failures
                estimator.warm_up(self.target, self.options, self.task)
            return
        for problem in adapters.problems(self.target, self.options, self.base):
            raise problem.error(self.target)
        self.source = _source(adapters.resolve(self.target, self.base))
        self._first()

    def new(self, *, brief: bool = False) -> Any:
        """Return a new wrapped instance with ``fit(X, y)`` and ``predict_dist(X)``, in original units.

        ``brief`` uses the options for the shortest fit of a registry method, for checks that do not depend on the
        quality of the fit. Options of the target take precedence.
        """
        classes = CLASSES if self.task == "classification" else 0
        if not self.registered:
            with self.guarded("the constructor"):
                return adapters.build(self.target, self.options, self.base, seed=SEED, classes=classes)
        known = {"classes": tuple(range(CLASSES))} if classes else {}
        return self._estimator({**known, "random_state": SEED}, brief=brief)

    def _estimator(self, known: Mapping[str, Any], *, brief: bool) -> Any:
        warmup = methods.get(self.target).warmup if brief else {}
        return estimator.Estimator(self.target, self.task, **{**known, **warmup, **self.options})

    def model(self, wrapped: Any) -> Any:
        """Return the model of a wrapped instance."""
        return wrapped if self.registered else wrapped.model

    def takes_seed(self) -> bool:
        """Return whether the class has the parameter ``random_state``."""
        known = None if self.registered else adapters.parameters(adapters.resolve(self.target, self.base))
        return self.registered or (known is not None and "random_state" in known)

    def fit(self, wrapped: Any, rows: ExampleRows, *, global_seed: int = SEED) -> Any:
        """Seed the global generators as in a run, fit to copies of the data, and return the wrapped instance."""
        seed_globals(global_seed)
        with self.guarded("fit"):
            wrapped.fit(rows.X.copy(), rows.y.copy())
        return wrapped

    def fitted(self, rows: ExampleRows, *, brief: bool = False) -> Any:
        """Return a new wrapped instance, fitted."""
        return self.fit(self.new(brief=brief), rows)

    def answer(self, wrapped: Any, X: Array) -> Answer:
        """Return predictions at inputs X (n, d), in original units, through the runner's interface."""
        with self.guarded("predict"):
            found = wrapped.predict_dist(X.copy())
            if isinstance(found, ClassProbabilities):
                return Answer(found.probabilities, None, found)
            if isinstance(found, ClassLabels):
                return Answer(np.eye(len(found.classes))[found.values], None, found)
            mean = found.mean() if hasattr(found, "mean") else found.quantile(0.5)
            std = found.std() if hasattr(found, "std") else None
            return Answer(np.asarray(mean, float), None if std is None else np.asarray(std, float), found)

    def predict(self, model: Any, X: Array) -> None:
        """Call the methods of a model that predict at inputs X (n, d); one of a classifier is enough."""
        if self.task != "classification":
            for _ in self.raw_answers(model, X):
                pass
            return
        name = next((name for name in PREDICTIONS if callable(getattr(model, name, None))), PREDICTIONS[0])
        with self.guarded(name):
            getattr(model, name)(X)

    def raw_answers(self, model: Any, X: Array) -> Iterator[RawAnswer]:
        """Yield the predictions of a model at inputs X (n, d), not converted or checked.

        Models with ``predict_proba``, such as those of skpro, are skipped: they return data frames.
        """
        if callable(getattr(model, "predict_proba", None)):
            return
        for name in DISTRIBUTIONS:
            if callable(getattr(model, name, None)):
                with self.guarded(name):
                    found = getattr(model, name)(X)
                    answers = [
                        RawAnswer(f"{part}() of {name}(X)", part, getattr(found, part)())
                        for part in ("mean", "std")
                        if callable(getattr(found, part, None))
                    ]
                yield from answers
        if callable(getattr(model, "predict", None)):
            with self.guarded("predict"):
                alone = model.predict(X)
            yield RawAnswer("predict(X)", "mean", alone)
            if (both := self._with_std(model, X)) is not None:
                yield RawAnswer("the mean of predict(X, return_std=True)", "mean", both[0])
                yield RawAnswer("the standard deviation of predict(X, return_std=True)", "std", both[1])

    def _with_std(self, model: Any, X: Array) -> tuple[Any, Any] | None:
        if not best_prediction.accepts(model.predict, "return_std"):
            return None
        with self.guarded("predict(X, return_std=True)"):
            mean, std = model.predict(X, return_std=True)
        return mean, std

    def _first(self) -> Any:
        try:
            return self.model(self.new())
        except UserError:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, MethodError | TypeError) else f"{type(error).__name__}: {error}"
            raise UserError(f"cannot be constructed: {text}", where=self.target) from error

    @contextmanager
    def guarded(self, step: str) -> Iterator[None]:
        """Convert exceptions of the method, except UserError, to MethodError with the name of the step."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise MethodError(step, error, self.source) from error


def _source(target: Callable[..., Any]) -> str:
    try:
        return inspect.getsourcefile(target) or ""
    except TypeError:
        return ""


def _place(error: Exception, source: str) -> str:
    """Return the innermost line of the method's file in the traceback, for messages; empty if there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if source and frame.filename == source]
    return f" ({Path(source).name}, line {own[-1].lineno})" if own else ""
