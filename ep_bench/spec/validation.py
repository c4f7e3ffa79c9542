"""Validation of a mapping in a study file by a pydantic model, with messages for its mistakes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from ep_bench import options
from ep_bench.errors import OptionProblem, UnquotedText
from ep_bench.spec.models import Strict
from ep_bench.spec.problems import Place, Problems

M = TypeVar("M", bound=Strict)


def validate(model: type[M], raw: Any, place: Place, problems: Problems, allowed: Collection[str] = ()) -> M | None:
    """Return ``raw`` as an instance of the model, or None; mistakes are recorded at ``place``.

    ``allowed`` are the keys that a message lists, by default those of the model. A key without a value is a mistake.
    """
    keys = allowed or tuple(model.model_fields)
    if not isinstance(raw, Mapping):
        problems.add(place, "must be a mapping", found=UnquotedText("null") if raw is None else raw, allowed=keys)
        return None
    unknown = [key for key in raw if key not in model.model_fields]
    empty = [key for key, value in raw.items() if value is None and key not in unknown]
    for key in unknown:
        problems.add((*place, key), "unknown key", allowed=keys, name=str(key))
    for key in empty:
        problems.add((*place, key), "has no value")
    try:
        return model.model_validate({key: value for key, value in raw.items() if key not in (*unknown, *empty)})
    except ValidationError as error:
        for problem in options.problems(model, "this mapping", error):
            if problem.path[0] not in empty:
                problems.add_option(place, _of_study(problem))
        return None


def _of_study(problem: OptionProblem) -> OptionProblem:
    """Adapt a message to keys of a study, which cannot be null, and to YAML, where unquoted digits are a number."""
    message = problem.problem.removesuffix(" or null")
    if message.endswith("must be text") and isinstance(problem.found, int | float):
        message += "; quote it to mean text"
    return replace(problem, problem=message)
