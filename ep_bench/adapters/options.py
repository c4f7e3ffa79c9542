"""Options of targets: what is wrong with them, and the object that they make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.adapters.best_prediction import FACES
from ep_bench.adapters.targets import OBJECT, nested, parameters, reference, resolve
from ep_bench.types import UserError

STANDARDIZE = "standardize"
_SHOWN = 12  # methods of a class that a message names
_SETS_FACE = re.compile(rf"\bself\.({'|'.join(FACES)})\s*=[^=]")

Problem = tuple[tuple[Any, ...], str, Any, Any, str | None]  # place, problem, value, allowed, name


def problems(use: str, options: Mapping[str, Any], base: Path) -> Iterator[Problem]:
    """Yield what is wrong with a target and its options, each as place, problem, value, allowed, name.

    Raises UserError where the target cannot be had.
    """
    lack = _lack(resolve(use, base))
    if lack is not None:
        yield ("use",), lack, use, "a class with fit and predict", None
        return
    standardize = options.get(STANDARDIZE, False)
    if not isinstance(standardize, bool):
        yield (STANDARDIZE,), "wrong type", standardize, "true or false", None
    own = {key: value for key, value in options.items() if key != STANDARDIZE}
    yield from _option_problems(use, own, base, (), extra=(STANDARDIZE,))


def build_model(use: str, options: Mapping[str, Any], base: Path, seed: int | None = None) -> Any:
    """Return a target's instance, its options given and its ``random_state``, where it has one, seeded."""
    target = resolve(use, base)
    own = {key: _value(value, base) for key, value in options.items() if key != STANDARDIZE}
    known = parameters(target)
    if seed is not None and known is not None and "random_state" in known and "random_state" not in own:
        own["random_state"] = seed % 2**32
    try:
        return target(**own)
    except TypeError as error:
        raise UserError(f"cannot be built: {error}", found=use) from error


def _lack(target: Any) -> str | None:
    """Return what a class lacks to be a method; None where it has what it needs."""
    if not callable(getattr(target, "fit", None)):
        return "names nothing with a fit"
    if any(callable(getattr(target, face, None)) for face in FACES) or _is_dynamic(target):
        return None
    public = [name for name in dir(target) if not name.startswith("_") and callable(getattr(target, name, None))]
    return f"needs {', '.join(FACES[:-1])} or {FACES[-1]}; it has {', '.join(public[:_SHOWN])}"


def _is_dynamic(target: Any) -> bool:
    """Tell whether an instance may answer to more than its class: by __getattr__, or by what __init__ gives it."""
    return not isinstance(target, type) or hasattr(target, "__getattr__") or _sets_faces(target)


def _sets_faces(target: type) -> bool:
    """Tell whether the code of a class may give its instances a way to predict: ``self.predict = ...``."""
    try:
        return any(_SETS_FACE.search(inspect.getsource(base)) for base in target.__mro__[:-1])
    except (OSError, TypeError):
        return True


def _option_problems(
    use: str, options: Mapping[str, Any], base: Path, place: tuple[Any, ...], extra: tuple[str, ...] = ()
) -> Iterator[Problem]:
    try:
        known = parameters(resolve(use, base))
    except UserError as error:
        yield (*place, "use"), str(error), None, None, None
        return
    for name in known or {}:
        if known[name] is inspect.Parameter.empty and name not in options:  # type: ignore[index]
            yield (*place, name), f"{use} needs this option", None, None, None
    for key, value in options.items():
        if known is not None and key not in known:
            yield (*place, key), f"{use} has no such option", None, sorted({*known, *extra}), key
        for inner, target, inner_options in nested(value, (*place, key)):
            if inner_options is None:
                yield from _reference_problems(target, base, (*inner, OBJECT))
            else:
                yield from _option_problems(target, inner_options, base, inner)


def _reference_problems(target: str, base: Path, place: tuple[Any, ...]) -> Iterator[Problem]:
    try:
        resolve(target, base)
    except UserError as error:
        yield place, str(error), None, None, None


def _value(value: Any, base: Path) -> Any:
    """Build the objects that a study spells out, however deep they stand."""
    itself = reference(value)
    if itself is not None:
        return resolve(itself, base)
    if isinstance(value, Mapping):
        inner = {key: _value(item, base) for key, item in value.items() if key != "use"}
        return resolve(value["use"], base)(**inner) if "use" in value else inner
    return [_value(item, base) for item in value] if isinstance(value, list) else value
