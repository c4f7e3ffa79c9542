"""The method under test: built as the runner builds it, called so that its own exceptions are told from ours."""

from __future__ import annotations

import copy
import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ep_bench import adapters, estimator, methods
from ep_bench.runner.records import seed_globals
from ep_bench.types import Array, Task, UserError, spell

SEED = 11
CLASSES = 3  # of the rows that classifiers are fitted to
DISTRIBUTIONS = ("predict_dist", "pred_dist")  # methods that return a distribution


class ExampleRows(NamedTuple):
    """Inputs (n, d) and targets (n,)."""

    X: Array
    y: Array


class Answer(NamedTuple):
    """Predictions: means (n,), deviations (n,) or None, and the distribution that they come from."""

    mean: Array
    deviation: Array | None
    distribution: Any


class RawAnswer(NamedTuple):
    """One answer of the instance itself: the words for it, which part it is, and its value, whatever that is."""

    what: str
    part: str  # mean or std
    value: Any


class MethodError(Exception):
    """The method raised: the message says in which step what was raised, and where; ``error`` is what it raised."""

    def __init__(self, step: str, error: Exception, source: str) -> None:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        super().__init__(f"{step} raised {_shortened(text)}{_place(error, source)}")
        self.error = error


class MethodUnderTest:
    """A target with its options; ``face()`` gives a fresh instance behind the runner's face.

    ``source`` is the file that the class stands in, or empty. ``task`` is what it is tested in, None until it is
    prepared where the target is to say so itself: classification where it can do nothing else.
    """

    def __init__(self, target: str, options: Mapping[str, Any], base: Path, task: Task | None = None) -> None:
        self.target, self.options, self.base, self.task = target, dict(options), base, task
        self.registered = not adapters.is_target(target)
        self.source = ""

    def prepare(self) -> None:
        """Import the target, hold its options against what it takes, build it once. Raises UserError."""
        able = methods.get(self.target).tasks if self.registered else adapters.tasks(self.target, self.base)
        self.task = self.task or able[0]
        if self.task not in able:
            raise UserError(f"does {able[0]} only", where=self.target, field="--task", found=self.task, allowed=able)
        if self.registered:
            own, _ = estimator.split_common(self.options)
            model = self._first()
            own.pop("random_state", None), own.pop("constant_inputs", None)
            try:
                estimator.parse_options(model.method, own)
            except ValueError as error:
                raise UserError(str(error)) from None
            self.source = inspect.getsourcefile(model.method.fit) or ""
            with suppress(Exception):  # kernels are compiled before the clock starts; what fails here fails in a check
                estimator.warm_up(self.target, self.options, self.task)
            return
        for place, problem, found, allowed, name in adapters.problems(self.target, self.options, self.base):
            where = spell(place)
            raise UserError(problem, where=self.target, field=where, found=found, allowed=allowed, name=name)
        self.source = _source(adapters.resolve(self.target, self.base))
        self._first()

    def face(self, *, brief: bool = False, seed: int = SEED) -> Any:
        """Return a fresh instance with ``fit(X, y)`` and ``predict_dist(X)``, original units.

        ``brief`` gives a registry method the options under which a fit is shortest, unless others were asked for: for
        checks that do not judge how good its numbers are.
        """
        classes = CLASSES if self.task == "classification" else 0
        if not self.registered:
            with self.guarded("the constructor"):
                return adapters.build(self.target, self.options, self.base, seed=seed, classes=classes)
        known = {"classes": tuple(range(CLASSES))} if classes else {}
        return self._estimator({**known, "random_state": seed}, brief=brief)

    def instance(self) -> Any:
        """Return a fresh instance itself, as users have it: of a classifier, not told of any classes."""
        return self._estimator({"random_state": SEED}, brief=True) if self.registered else self.face().model

    def _estimator(self, known: Mapping[str, Any], *, brief: bool) -> Any:
        warmup = methods.get(self.target).warmup if brief else {}
        return estimator.Estimator(self.target, self.task, **{**known, **warmup, **self.options})

    def model(self, face: Any) -> Any:
        """Return the instance itself, without the face."""
        return face if self.registered else face.model

    def takes_seed(self) -> bool:
        """Tell whether the class has the parameter ``random_state``."""
        known = None if self.registered else adapters.parameters(adapters.resolve(self.target, self.base))
        return self.registered or (known is not None and "random_state" in known)

    def fit(self, face: Any, rows: ExampleRows, *, global_seed: int = SEED) -> Any:
        """Fit to copies of the rows, the global generators seeded as the runner seeds them; return the face."""
        seed_globals(global_seed)
        with self.guarded("fit"):
            face.fit(rows.X.copy(), rows.y.copy())
        return face

    def fitted(self, rows: ExampleRows, *, brief: bool = False) -> Any:
        """Return a fresh instance, fitted."""
        return self.fit(self.face(brief=brief), rows)

    def answer(self, face: Any, X: Array) -> Answer:
        """Return predictions of rows X (n, d) as the runner sees them."""
        with self.guarded("predict"):
            found = face.predict_dist(X.copy())
            mean = found.mean() if hasattr(found, "mean") else found.quantile(0.5)
            deviation = found.std() if hasattr(found, "std") else None
            return Answer(np.asarray(mean, float), None if deviation is None else np.asarray(deviation, float), found)

    def replaced(self, model: Any, like: Any = None) -> Any:
        """Return the face ``like``, by default a fresh one, around another instance."""
        if self.registered:
            return model
        shell = copy.copy(self.face() if like is None else like)
        shell.model = model
        return shell

    def raw_answers(self, model: Any, X: Array) -> Iterator[RawAnswer]:
        """Yield what an instance itself, without its face, answers to rows X.

        Models that speak in data frames, as skpro's, are left out: the face turns those into arrays.
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
                yield RawAnswer("the deviation of predict(X, return_std=True)", "std", both[1])

    def _with_std(self, model: Any, X: Array) -> tuple[Any, Any] | None:
        known = adapters.parameters(model.predict)
        if known is not None and "return_std" not in known:
            return None
        with self.guarded("predict(X, return_std=True)"):
            try:
                mean, std = model.predict(X, return_std=True)
            except Exception:
                if known is not None:
                    raise
                return None  # the signature is hidden: it was worth a try
        return mean, std

    def _first(self) -> Any:
        try:
            return self.model(self.face())
        except UserError:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, MethodError | TypeError) else f"{type(error).__name__}: {error}"
            raise UserError(f"cannot be built: {text}", where=self.target) from error

    @contextmanager
    def guarded(self, step: str) -> Iterator[None]:
        """Turn what the method raises inside into a MethodError that names the step."""
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
    """Return the line of the method's own file where an exception passed, or nothing where it did not."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if source and frame.filename == source]
    return f" ({Path(source).name}, line {own[-1].lineno})" if own else ""


def _shortened(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " ..."


@contextmanager
def silently() -> Iterator[None]:
    """Run without warnings, of which the checks that follow say what matters."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
