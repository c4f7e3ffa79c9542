"""The search for options: a tree-structured Parzen estimator that maximises a score on validation points.

``search`` calls a function that returns the score of given options, and ``validation_rows`` selects the validation
points from the training data. Both depend on the seed of the split only, so that all methods use the same validation
points. The sampler is Optuna's (Bergstra et al. 2011; Akiba et al. 2019). It models the options jointly, stays in
memory and runs one trial after the other. If the trials suffice for all combinations of a finite space, each is tried
once.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import json
import math
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench.types import Indices

# Returns the score of options, None if they fail, and a remark: the reason of a failure, or a warning.
Evaluate = Callable[[Mapping[str, Any]], tuple[float | None, str]]
Space = Mapping[str, Mapping[str, list[Any]]]  # canonical, as returned by ``spec.read_space``

LOSSES = frozenset({"rmse", "crps", "pinball", "error_rate"})  # scores that are minimised
_ROWS, _SAMPLER = 1, 2  # keys of the random streams derived from a cell's seed
_MISSING = object()
_settings = threading.Lock()


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    ``trials`` has one mapping per trial: options (the searched ones), score (None for a failed trial), seconds and
    reason. ``best`` is the index of the first trial with the best score, None if all failed. ``options`` are the
    options of that trial.
    """

    trials: list[dict[str, Any]]
    best: int | None
    options: dict[str, Any]

    def usual_reason(self) -> tuple[str, int]:
        """Return the most frequent reason of failed trials, and its count."""
        reasons = Counter(trial["reason"] for trial in self.trials if trial["score"] is None)
        return reasons.most_common(1)[0] if reasons else ("", 0)


def load() -> None:
    """Import the libraries of the search, so that no cell's time includes it."""
    importlib.import_module("optuna")


def validation_rows(n: int, fraction: float, seed: int) -> tuple[Indices, Indices]:
    """Return the indices of the fitting points and of the validation points among n training points, both sorted.

    There are round(fraction * n) validation points, at least 1 and at most n - 1. With one seed, the validation points
    of a smaller fraction are a subset of those of a larger one. Raises ValueError if n is less than 2.
    """
    if n < 2:
        raise ValueError(f"{n} training point cannot be divided for tuning; at least 2 are needed")
    n_validation = min(max(round(fraction * n), 1), n - 1)
    order = np.random.default_rng([seed, _ROWS]).permutation(n)
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])


def search(
    evaluate: Evaluate,
    space: Space,
    start: Mapping[str, Any],
    *,
    trials: int,
    score: str,
    seed: int,
    known: Sequence[Mapping[str, Any]] = (),
) -> SearchResult:
    """Run exactly ``trials`` trials, failed ones included, and return the best options.

    There are fewer trials if all options are choices with fewer combinations: each combination is then tried once.

    The first trial uses the options in ``start``. Options that ``start`` does not name are drawn from ``space``. If an
    option of ``start`` is outside ``space``, its score is not passed to the sampler. The best trial has the highest
    ``score``, or the lowest if it is one of ``LOSSES``. An exception in ``evaluate`` ends the search.

    ``known`` are the trials of an earlier search; a trial with the options of the known one is not evaluated again.
    The options of a trial depend on the earlier trials and on the seed, not on ``trials``, except for a grid.
    """
    sign = -1.0 if score in LOSSES else 1.0
    inside, outside = _parameters(space, start)
    done: list[dict[str, Any]] = []
    best, chosen = None, {}
    trials, sampler = _sampler(space, trials, seed, whole=not outside)
    sampler.begin_with(inside)
    for number in range(trials):
        options = sampler.ask() | (outside if number == 0 else {})
        same = number < len(known) and known[number]["options"] == _shown(options)
        trial = dict(known[number]) if same else _trial(evaluate, options, score)
        done.append(trial)
        outside_space = number == 0 and bool(outside)
        sampler.record(None if trial["score"] is None or outside_space else sign * trial["score"])
        if trial["score"] is not None and (best is None or sign * trial["score"] > sign * done[best]["score"]):
            best, chosen = number, copy.deepcopy(options)
    return SearchResult(done, best, chosen)


def _trial(evaluate: Evaluate, options: Mapping[str, Any], score: str) -> dict[str, Any]:
    started = time.perf_counter()
    value, reason = evaluate(copy.deepcopy(options))
    if value is not None and not math.isfinite(value):
        value, reason = None, f"non-finite {score}"
    seconds = round(time.perf_counter() - started, 6)
    return {"options": _shown(options), "score": value, "seconds": seconds, "reason": reason}


def _shown(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(option) for name, option in options.items()}


def _sampler(space: Space, trials: int, seed: int, *, whole: bool) -> tuple[int, _Grid | _Sampler]:
    """Return the number of trials and their source: a grid if ``whole`` allows it and the trials suffice for it."""
    is_finite = all(kind == "choice" for _, kind, _ in _entries(space))
    size = math.prod(len(values) for _, _, values in _entries(space)) if is_finite else math.inf
    return (int(size), _Grid(space)) if whole and size <= trials else (trials, _Sampler(space, seed))


class _Grid:
    """All combinations of a finite space, each once, in the order of the choices."""

    def __init__(self, space: Space) -> None:
        self._choices = {name: values for name, _, values in _entries(space)}
        self._left = [
            dict(zip(self._choices, places, strict=True))
            for places in itertools.product(*(range(len(values)) for values in self._choices.values()))
        ]

    def begin_with(self, parameters: Mapping[str, Any]) -> None:
        """Move combinations with these parameters to the front."""
        self._left.sort(key=lambda combination: any(combination[name] != parameters[name] for name in parameters))

    def ask(self) -> dict[str, Any]:
        """Return the options of the next trial."""
        return {name: self._choices[name][place] for name, place in self._left.pop(0).items()}

    def record(self, value: float | None) -> None:
        """Ignore the score; the trials do not depend on it."""


class _Sampler:
    """Optuna's sampler, one trial at a time; scores are maximised."""

    def __init__(self, space: Space, seed: int) -> None:
        import optuna

        self._failed = optuna.trial.TrialState.FAIL
        self._space = space
        self._distributions = {name: _distribution(kind, values) for name, kind, values in _entries(space)}
        stream = int(np.random.SeedSequence([seed, _SAMPLER]).generate_state(1)[0])
        with _quiet_optuna():
            # Set explicitly, because the defaults differ between versions of Optuna.
            tpe = optuna.samplers.TPESampler(seed=stream, multivariate=True, constant_liar=False)
            self._study = optuna.create_study(sampler=tpe, direction="maximize")
        self._asked: Any = None

    def begin_with(self, parameters: Mapping[str, Any]) -> None:
        """Use these parameters in the first trial; the others are drawn."""
        self._study.enqueue_trial(dict(parameters))

    def ask(self) -> dict[str, Any]:
        """Return the options of the next trial."""
        self._asked = self._study.ask(self._distributions)
        found = self._asked.params
        entries = _entries(self._space)
        return {name: values[found[name]] if kind == "choice" else found[name] for name, kind, values in entries}

    def record(self, value: float | None) -> None:
        """Record the score of the options that ``ask`` returned last; None if they failed."""
        if value is None:
            self._study.tell(self._asked, state=self._failed)
        else:
            self._study.tell(self._asked, value)


def _entries(space: Space) -> Iterator[tuple[str, str, list[Any]]]:
    for name, entry in space.items():
        ((kind, values),) = entry.items()
        yield name, kind, values


def _distribution(kind: str, values: list[Any]) -> Any:
    from optuna import distributions

    if kind == "choice":  # by index: a choice may be a list or a mapping, which Optuna does not accept
        return distributions.CategoricalDistribution(range(len(values)))
    low, high = values
    if kind in {"int", "log_int"}:
        return distributions.IntDistribution(low, high, log=kind == "log_int")
    return distributions.FloatDistribution(low, high, log=kind == "log")


def _parameters(space: Space, start: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of ``start`` as parameters of the sampler, and the options outside the space."""
    inside: dict[str, Any] = {}
    outside: dict[str, Any] = {}
    for name, kind, values in _entries(space):
        if name in start:
            parameter = _parameter(kind, values, start[name])
            if parameter is _MISSING:
                outside[name] = start[name]
            else:
                inside[name] = parameter
    return inside, outside


def _parameter(kind: str, values: list[Any], value: Any) -> Any:
    if kind == "choice":
        return next((i for i, choice in enumerate(values) if _same(choice, _plain(value))), _MISSING)
    known = int if kind in {"int", "log_int"} else int | float
    if isinstance(value, bool) or not isinstance(value, known):
        return _MISSING
    return value if values[0] <= value <= values[1] else _MISSING


def _same(first: Any, second: Any) -> bool:
    """Return whether two plain values are the same option: 1 equals 1.0, but not true."""
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _plain(value: Any) -> Any:
    """Return a value as a record stores it; an object is replaced by the name of its class."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return str(value) if isinstance(value, float) else type(value).__name__


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Suppress messages and warnings of Optuna, one thread at a time, because the settings are those of all threads."""
    import optuna

    with _settings, warnings.catch_warnings(action="ignore"):
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            yield
        finally:
            optuna.logging.set_verbosity(before)
