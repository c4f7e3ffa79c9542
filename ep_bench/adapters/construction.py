"""Options of external methods: checks, and the construction of instances."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.adapters.best_prediction import PREDICTION_METHODS, can_predict
from ep_bench.adapters.targets import OBJECT, nested, parameters, reference, resolve, resolve_for_use
from ep_bench.errors import OptionProblem, UserError

STANDARDIZE = "standardize"


def problems(use: str, options: Mapping[str, Any], base: Path) -> Iterator[OptionProblem]:
    """Yield the problems of a target and its options. Raises UserError if the target is not available."""
    if not callable(getattr(resolve(use, base), "fit", None)):
        yield OptionProblem(("use",), "has no method fit", use, "a class with fit and predict")
        return
    standardize = options.get(STANDARDIZE, False)
    if not isinstance(standardize, bool):
        yield OptionProblem((STANDARDIZE,), "wrong type", standardize, "true or false")
    own = {key: value for key, value in options.items() if key != STANDARDIZE}
    yield from _option_problems(use, own, base, (), extra=(STANDARDIZE,))


def missing_prediction(use: str, options: Mapping[str, Any], base: Path) -> Iterator[OptionProblem]:
    """Yield the problem of a target that has no prediction method, neither the class nor an instance."""
    if can_predict(resolve(use, base)):
        return
    try:
        model = build_model(use, options, base)
    except Exception:  # noqa: BLE001 - the class accepts no instance without data
        model = None
    if not can_predict(model):
        allowed = f"a class with fit and one of {', '.join(PREDICTION_METHODS)}"
        yield OptionProblem(("use",), "has no method for predictions", use, allowed)


def build_model(use: str, options: Mapping[str, Any], base: Path, seed: int | None = None) -> Any:
    """Return an instance of a target; ``seed`` is its ``random_state`` if it has this parameter.

    Options such as ``ridge__alpha`` are those of its parts, as in scikit-learn. Raises UserError if the target or an
    option is not available.
    """
    target = resolve_for_use(use, base)
    own = {key: _value(value, base) for key, value in options.items() if key != STANDARDIZE}
    known = parameters(target)
    of_parts = {key: own.pop(key) for key in [*own] if _is_of_a_part(key, target, known)}
    if seed is not None and known is not None and "random_state" in known and "random_state" not in own:
        own["random_state"] = seed % 2**32
    try:
        model = target(**own)
        return model.set_params(**of_parts) if of_parts else model
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and not of_parts:
            raise
        raise UserError(f"cannot be constructed: {error}", found=use) from error


def accepts_missing(model: Any) -> bool:
    """Return whether an instance accepts missing inputs (NaN): its ``accepts_missing``, else its scikit-learn tag."""
    stated = getattr(model, "accepts_missing", None)
    if stated is None and hasattr(model, "__sklearn_tags__"):
        stated = model.__sklearn_tags__().input_tags.allow_nan
    return stated is True


def _is_of_a_part(key: str, target: Any, known: Mapping[str, Any] | None) -> bool:
    """Return whether an option is one of a part of an estimator, ``part__option``, as in a pipeline."""
    return "__" in key and key not in (known or {}) and callable(getattr(target, "set_params", None))


def _option_problems(
    use: str, options: Mapping[str, Any], base: Path, place: tuple[Any, ...], extra: tuple[str, ...] = ()
) -> Iterator[OptionProblem]:
    try:
        target = resolve(use, base)
        known = parameters(target)
    except UserError as error:
        yield OptionProblem.of((*place, "use"), error)
        return
    for name in known or {}:
        if known[name] is inspect.Parameter.empty and name not in options:  # type: ignore[index]
            yield OptionProblem((*place, name), f"{use} requires this option")
    of_parts = [key for key in options if not place and _is_of_a_part(key, target, known)]
    for key, value in options.items():
        if known is not None and key not in known and key not in of_parts:
            allowed = sorted({*known, *extra})
            yield OptionProblem((*place, key), f"{use} has no such option", None, allowed, key)
        for inner, named, inner_options in nested(value, (*place, key)):
            if inner_options is None:
                yield from _reference_problems(named, base, (*inner, OBJECT))
            else:
                yield from _option_problems(named, inner_options, base, inner)
    if of_parts:
        yield from _part_problems(use, options, of_parts, base)


def _part_problems(use: str, options: Mapping[str, Any], of_parts: list[str], base: Path) -> Iterator[OptionProblem]:
    """Yield the options of parts that an instance with the other options does not have."""
    try:
        model = build_model(use, {key: value for key, value in options.items() if key not in of_parts}, base)
    except Exception:  # noqa: BLE001 - another option is wrong, or the class accepts no instance without data
        return
    known = model.get_params(deep=True)
    for key in of_parts:
        if key not in known:
            part = key.rpartition("__")[0]
            allowed = sorted(name for name in known if name.rpartition("__")[0] == part) or sorted(known)
            yield OptionProblem((key,), f"{use} has no such option", None, allowed, key)


def _reference_problems(target: str, base: Path, place: tuple[Any, ...]) -> Iterator[OptionProblem]:
    try:
        resolve(target, base)
    except UserError as error:
        yield OptionProblem.of(place, error)


def _value(value: Any, base: Path) -> Any:
    """Return the value of an option with all nested objects constructed."""
    itself = reference(value)
    if itself is not None:
        return resolve_for_use(itself, base)
    if isinstance(value, Mapping):
        inner = {key: _value(item, base) for key, item in value.items() if key != "use"}
        return resolve_for_use(value["use"], base)(**inner) if "use" in value else inner
    return [_value(item, base) for item in value] if isinstance(value, list) else value
