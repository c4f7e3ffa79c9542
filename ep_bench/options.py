"""Options of methods and experiments in words: what each one takes, and what is wrong with those given.

Both are read off the pydantic model, by way of its JSON schema: choices, bounds, lengths, and what stands for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from ep_bench.types import OptionProblem, UnquotedText

Schema = Mapping[str, Any]
_ANY_OF = ("anyOf", "oneOf")
_COUNTS = {1: "one", 2: "two", 3: "three", 4: "four"}
_SHORT = 40  # characters of a list that a message shows
# Mistakes that the words of the type say all about; others keep pydantic's message.
_TOLD_BY_TYPE = frozenset({
    "int_type", "int_parsing", "int_from_float", "float_type", "float_parsing", "bool_type", "bool_parsing",
    "string_type", "tuple_type", "list_type", "set_type", "dict_type", "model_type", "literal_error", "none_required",
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "missing", "too_short", "too_long",
})  # fmt: skip


class Option(NamedTuple):
    """An option as it is shown; ``default`` as a study writes it, empty where one must be given."""

    name: str
    default: str
    takes: str
    description: str


def table(config: Any) -> list[Option]:
    """Return the options of a pydantic model in its order."""
    known = _TypeNames(config)
    rows = []
    for name, field in config.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default is PydanticUndefined else written(default)
        rows.append(Option(name, shown, known.takes((name,)), field.description or ""))
    return rows


def written(value: Any) -> str:
    """Return a value as a study writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    return str(value)


def problems(config: Any, owner: str, error: ValidationError, common: Collection[str] = ()) -> Iterator[OptionProblem]:
    """Yield what is wrong with the options of ``owner``, one mistake a place.

    ``common`` are the names of options that it has beside those of the model.
    """
    known, seen = _TypeNames(config), set()
    errors = error.errors(include_url=False)
    for entry in errors:
        place = tuple(entry["loc"])
        if any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in errors):
            continue  # a list that is short only because of the item named beside it
        problem = known.problem(entry, owner, common)
        if problem.path not in seen or not problem.path:
            seen.add(problem.path)
            yield problem


class _AnySchema(GenerateJsonSchema):
    """A schema that leaves types without one open, instead of giving up."""

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}


class _TypeNames:
    """The words for a model's types."""

    def __init__(self, config: Any) -> None:
        self._root: Schema = config.model_json_schema(schema_generator=_AnySchema)
        self._definitions: Schema = self._root.get("$defs", {})

    def takes(self, place: Sequence[str | int]) -> str:
        """Return what may stand at a place, empty where that is not known."""
        return _either(self._forms(self._find(place)[1]))

    def problem(self, entry: Mapping[str, Any], owner: str, common: Collection[str]) -> OptionProblem:
        """Return one of pydantic's errors in our words."""
        kind, loc, found = entry["type"], tuple(entry["loc"]), entry["input"]
        if kind == "extra_forbidden":
            _, parent = self._find(loc[:-1])
            names = {*parent.get("properties", {}), *(common if len(loc) == 1 else ())}
            return OptionProblem(loc, f"{owner} has no such option", None, sorted(names), str(loc[-1]))
        place, schema = self._find(loc[:-1] if kind == "missing" and isinstance(loc[-1], int) else loc)
        forms = self._forms(schema)
        words = [form for form in forms if form in self._choices(schema)]
        if kind not in _TOLD_BY_TYPE or not forms or (kind == "missing" and place == loc):
            return self._as_said(entry)
        if words:
            return OptionProblem(
                place, "unknown value", _plain(found), forms, found if isinstance(found, str) else None
            )
        return OptionProblem(place, f"must be {_either(forms)}{self._example(place, schema)}", _plain(found))

    def _as_said(self, entry: Mapping[str, Any]) -> OptionProblem:
        """Return an error that the model's own code or a rare constraint has, with what was found unless it says so."""
        message, place, found = str(entry["msg"]).removeprefix("Value error, "), tuple(entry["loc"]), entry["input"]
        message = re.sub(r"^(Input|String|List|Dictionary|Tuple) should ", "must ", message)
        message = message[:1].lower() + message[1:]
        if entry["type"] == "missing":
            return OptionProblem(place, "is missing")
        is_shown = not place or isinstance(found, Mapping) or "; found " in message
        return OptionProblem(place, message, None if is_shown else _plain(found))

    def _find(self, place: Sequence[str | int]) -> tuple[tuple[str | int, ...], Schema]:
        """Return the schema of a place, or of the last part of it where several types are to choose from."""
        at: tuple[str | int, ...] = ()
        schema = self._follow(self._root)
        for part in place:
            inner = self._follow(schema, past_null=True)
            if any(key in inner for key in _ANY_OF):
                break
            at, schema = (*at, part), self._follow(_below(inner, part))
        return at, schema

    def _follow(self, schema: Schema, *, past_null: bool = False) -> Schema:
        """Return what a reference stands for, with ``past_null`` also the one type beside null."""
        if "$ref" in schema:
            schema = self._definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
        if past_null:
            kinds = [kind for key in _ANY_OF for kind in schema.get(key, ()) if kind.get("type") != "null"]
            return self._follow(kinds[0], past_null=True) if len(kinds) == 1 else schema
        return schema

    def _forms(self, schema: Schema, *, many: bool = False) -> list[str]:
        """Return what a schema lets through, one phrase a kind of value; ``many`` in the plural."""
        schema = self._follow(schema)
        for key in _ANY_OF:
            if key in schema:
                inner = [self._forms(kind, many=many) for kind in schema[key]]
                return [form for forms in inner for form in forms] if all(inner) else []
        if "enum" in schema or "const" in schema:
            return [written(value) for value in schema.get("enum", [schema.get("const")])]
        kind = schema.get("type")
        if kind in {"integer", "number"}:
            return [_number(schema, many=many)]
        if kind == "array":
            return ["lists" if many else self._list(schema)]
        others = {
            "boolean": ["true", "false"],
            "null": ["null"],
            "string": ["texts" if many else "text"],
            "object": ["mappings" if many else "a non-empty mapping" if schema.get("minProperties") else "a mapping"],
        }
        return others.get(str(kind), [])

    def _list(self, schema: Schema) -> str:
        """Return the words for a list of a fixed length, or of items that are all of a kind."""
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        first = schema.get("prefixItems", [])
        if first and all(item == first[0] for item in first) and len(first) == high:
            return f"{_COUNTS.get(high, high)} {_either(self._forms(first[0], many=True)) or 'values'}"
        if first:
            return f"a list of {' and '.join(_either(self._forms(item)) or 'a value' for item in first)}"
        items = _either(self._forms(schema.get("items", {}), many=True)) or "values"
        if high is not None:
            return f"a list of {low} to {high} {items}" if low != high else f"{_COUNTS.get(high, high)} {items}"
        least = f"{_COUNTS.get(low, low)} or more " if low else ""
        return f"a list of {least}{items}"

    def _choices(self, schema: Schema) -> set[str]:
        """Return the words, of text, that may be chosen from."""
        schema = self._follow(schema)
        inner = {word for key in _ANY_OF for kind in schema.get(key, ()) for word in self._choices(kind)}
        own = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return inner | {value for value in own if isinstance(value, str)}

    def _example(self, place: Sequence[str | int], schema: Schema) -> str:
        """Return the default of a list as an example."""
        default = schema.get("default")
        short = isinstance(default, list) and default and len(written(default)) <= _SHORT
        return f" such as {written(default)}" if len(place) == 1 and short else ""


def _below(schema: Schema, part: str | int) -> Schema:
    if isinstance(part, str):
        found = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
    else:
        first = schema.get("prefixItems", [])
        found = first[part] if part < len(first) else schema.get("items", {})
    return found if isinstance(found, Mapping) else {}


def _number(schema: Schema, *, many: bool) -> str:
    """Return "a positive number", "whole numbers above 2 and at most 5" and the like."""
    noun = f"{'whole ' if schema['type'] == 'integer' else ''}number{'s' if many else ''}"
    over, least = schema.get("exclusiveMinimum"), schema.get("minimum")
    under, most = schema.get("exclusiveMaximum"), schema.get("maximum")
    if under is None and most is None and (over == 0 or (least == 1 and schema["type"] == "integer")):
        return f"{'' if many else 'a '}positive {noun}"
    low = f"above {_figure(over)}" if over is not None else f"of at least {_figure(least)}" if least is not None else ""
    high = f"below {_figure(under)}" if under is not None else f"at most {_figure(most)}" if most is not None else ""
    high = f"of {high}" if high.startswith("at") and not low else high
    return " ".join(filter(None, ("" if many else "a", noun, " and ".join(filter(None, (low, high))))))


def _figure(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _either(forms: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(forms[:-1]), *forms[-1:]) if part)


def _plain(value: Any) -> Any:
    """Return a value as a message shows it: short lists in full, and null for nothing."""
    if isinstance(value, list | tuple) and len(text := written(value)) <= _SHORT:
        return UnquotedText(text)
    return UnquotedText("null") if value is None else value
