"""The search for options: a tree-structured Parzen estimator on scores of validation rows, its budget used to the end.

It sees neither rows nor methods: ``search`` asks for the score of options, and ``validation_rows`` says which of the
training rows are held back for it. Both hang on the seed of the split alone, so that all methods meet the same
validation rows. The sampler is Optuna's (Bergstra et al. 2011; Akiba et al. 2019), joint over the options, in memory,
one trial after the other.
"""

from __future__ import annotations

import copy
import importlib
import json
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench.types import Indices

# The score of options on the validation rows, None where they fail, and a remark: why, or what to know of it.
Evaluate = Callable[[Mapping[str, Any]], tuple[float | None, str]]
Space = Mapping[str, Mapping[str, list[Any]]]  # canonical, as ``spec.space`` gives it

LOSSES = frozenset({"rmse", "error_rate"})  # scores of which less is better
_ROWS, _SAMPLER = 1, 2  # names of the streams that come from a cell's seed
_MISSING = object()


@dataclass(frozen=True)
class SearchResult:
    """What a search ends with.

    ``trials`` has one mapping each: options (those searched), score (None where it failed), seconds, reason. ``best``
    is the index of the best, the earliest of equals, None where all failed; ``options`` are its options.
    """

    trials: list[dict[str, Any]]
    best: int | None
    options: dict[str, Any]

    def usual_reason(self) -> tuple[str, int]:
        """Return the most frequent reason of the failed trials and how often it stands there."""
        reasons = Counter(trial["reason"] for trial in self.trials if trial["score"] is None)
        return reasons.most_common(1)[0] if reasons else ("", 0)


def load() -> None:
    """Import what the search rests on, so that no cell is charged with it."""
    importlib.import_module("optuna")


def validation_rows(n: int, fraction: float, seed: int) -> tuple[Indices, Indices]:
    """Return which of n training rows a trial is fitted to and which it is judged on; both in the order of the rows.

    round(fraction * n) rows validate, at least 1, and at least 1 is left. With one seed a larger fraction adds rows to
    those of a smaller one. Raises ValueError with fewer than 2 rows.
    """
    if n < 2:
        raise ValueError(f"{n} training row cannot be parted for tuning; it takes 2")
    held = min(max(round(fraction * n), 1), n - 1)
    order = np.random.default_rng([seed, _ROWS]).permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])


def search(
    evaluate: Evaluate, space: Space, start: Mapping[str, Any], *, trials: int, score: str, seed: int
) -> SearchResult:
    """Return what was found in exactly ``trials`` calls of ``evaluate``; a trial that fails counts.

    The first has the options of ``start``, also where one of them lies outside ``space`` (the sampler is then not told
    of its score); an option that ``start`` does not name is drawn. The highest ``score`` is the best, for ``rmse``
    and ``error_rate`` the lowest. What ``evaluate`` raises ends the search.
    """
    sign = -1.0 if score in LOSSES else 1.0
    inside, outside = _places(space, start)
    done: list[dict[str, Any]] = []
    best, chosen = None, {}
    with _quiet_optuna():
        sampler = _Sampler(space, seed)
        sampler.begin_with(inside)
        for number in range(trials):
            options = sampler.ask() | (outside if number == 0 else {})
            trial = _trial(evaluate, options, score)
            done.append(trial)
            sampler.tell(None if trial["score"] is None or (number == 0 and outside) else sign * trial["score"])
            if trial["score"] is not None and (best is None or sign * trial["score"] > sign * done[best]["score"]):
                best, chosen = number, _copy(options)
    return SearchResult(done, best, chosen)


def _trial(evaluate: Evaluate, options: Mapping[str, Any], score: str) -> dict[str, Any]:
    begun = time.perf_counter()
    value, reason = evaluate(_copy(options))
    if value is not None and not math.isfinite(value):
        value, reason = None, f"non-finite {score}"
    seconds = round(time.perf_counter() - begun, 6)
    shown = {name: _plain(option) for name, option in options.items()}
    return {"options": shown, "score": value, "seconds": seconds, "reason": reason}


class _Sampler:
    """Optuna's sampler, asked and told one trial at a time; larger is better."""

    def __init__(self, space: Space, seed: int) -> None:
        import optuna

        self._failed = optuna.trial.TrialState.FAIL
        self._space = space
        self._distributions = {name: _distribution(kind, values) for name, kind, values in _entries(space)}
        stream = int(np.random.SeedSequence([seed, _SAMPLER]).generate_state(1)[0])
        # Said and not left to defaults, which differ between the versions of Optuna.
        tpe = optuna.samplers.TPESampler(seed=stream, multivariate=True, constant_liar=False)
        self._study = optuna.create_study(sampler=tpe, direction="maximize")
        self._asked: Any = None

    def begin_with(self, places: Mapping[str, Any]) -> None:
        """Give the first trial these places; the options that have none are drawn."""
        self._study.enqueue_trial(dict(places))

    def ask(self) -> dict[str, Any]:
        """Return the next options."""
        self._asked = self._study.ask(self._distributions)
        found = self._asked.params
        entries = _entries(self._space)
        return {name: values[found[name]] if kind == "choice" else found[name] for name, kind, values in entries}

    def tell(self, value: float | None) -> None:
        """Take in how good the options last asked for are; None where they failed."""
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

    if kind == "choice":  # by index: a choice may be a list or a mapping, which Optuna does not take
        return distributions.CategoricalDistribution(range(len(values)))
    low, high = values
    if kind in {"int", "log_int"}:
        return distributions.IntDistribution(low, high, log=kind == "log_int")
    return distributions.FloatDistribution(low, high, log=kind == "log")


def _places(space: Space, start: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of ``start`` as the sampler's parameters, and those that lie outside the space."""
    inside: dict[str, Any] = {}
    outside: dict[str, Any] = {}
    for name, kind, values in _entries(space):
        if name in start:
            place = _place(kind, values, start[name])
            (outside if place is _MISSING else inside)[name] = start[name] if place is _MISSING else place
    return inside, outside


def _place(kind: str, values: list[Any], value: Any) -> Any:
    if kind == "choice":
        return next((i for i, choice in enumerate(values) if _same(choice, _plain(value))), _MISSING)
    known = int if kind in {"int", "log_int"} else int | float
    if isinstance(value, bool) or not isinstance(value, known):
        return _MISSING
    return value if values[0] <= value <= values[1] else _MISSING


def _same(first: Any, second: Any) -> bool:
    """Tell whether two plain values are one option: 1 is 1.0, and neither is true."""
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _copy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that a method may write into; an object that cannot be copied is handed on."""
    copied = dict(options)
    for name, value in options.items():
        with suppress(Exception):
            copied[name] = copy.deepcopy(value)
    return copied


def _plain(value: Any) -> Any:
    """Return a value as a record keeps it; of an object, which is a default of a class from outside, its kind."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return str(value) if isinstance(value, float) else type(value).__name__


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keep Optuna, and what a trial warns of, from printing."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
