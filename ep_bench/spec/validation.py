"""Shapes: a mapping of the file against a pydantic model, its errors in the words of the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ep_bench.spec.models import PATTERNS, Strict
from ep_bench.spec.problems import Place, Problems
from ep_bench.types import UnquotedText

M = TypeVar("M", bound=Strict)

_WORDS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "finite_number": "must be a finite number",
}


def validate(model: type[M], raw: Any, place: Place, problems: Problems, allowed: Collection[str] = ()) -> M | None:
    """Return ``raw`` as the model, or None with its mistakes noted at ``place``.

    ``allowed`` are the known keys that a message lists, by default the model's. A key without a value is a mistake.
    """
    if not isinstance(raw, Mapping):
        problems.add(place, "must be a mapping", found=_word(raw), allowed=allowed or tuple(model.model_fields))
        return None
    empty = [key for key, value in raw.items() if value is None and key in model.model_fields]
    for key in empty:
        problems.add((*place, key), "has no value")
    given = {key: value for key, value in raw.items() if key not in empty}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            if not (details["type"] == "missing" and details["loc"][0] in empty):
                _note(details, place, problems, allowed or tuple(model.model_fields))
        return None


def _note(details: ErrorDetails, place: Place, problems: Problems, keys: Collection[str]) -> None:
    kind, path, found = details["type"], (*place, *details["loc"]), details["input"]
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(details["loc"][-1])
        problems.add(path, "unknown key", allowed=keys, name=key)
    elif kind == "missing":
        problems.add(path, _WORDS[kind])
    elif kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        name = found if isinstance(found, str) else None
        problems.add(path, "unknown value", found=_word(found), allowed=choices, name=name)
    elif kind == "string_pattern_mismatch":
        problems.add(path, "unusable text", found=found, allowed=PATTERNS[str(context["pattern"])])
    elif kind == "too_short" and context["min_length"] > 1:
        problems.add(path, f"must have at least {context['min_length']} entries", found=_word(found))
    else:
        hint = "; quote it to mean text" if kind == "string_type" and isinstance(found, int | float) else ""
        problems.add(path, _WORDS.get(kind, _plain(details["msg"])) + hint, found=_word(found))


def _plain(message: str) -> str:
    """Return pydantic's message in the tone of ours."""
    text = re.sub(r"^Input should ", "must ", message)
    text = re.sub(r"^(String|List|Dictionary) should ", "must ", text)
    return text[:1].lower() + text[1:]


def _word(value: Any) -> Any:
    """Return a value for a message; an absent one is said to be nothing."""
    return UnquotedText("nothing") if value is None else value
