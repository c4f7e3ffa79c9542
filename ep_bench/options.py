"""Descriptions of the options of methods and experiments, and messages for wrong ones.

Both are derived from the JSON schema of the pydantic model: choices, bounds, lengths and optional values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from ep_bench.errors import OptionProblem, UnquotedText

Schema = Mapping[str, Any]
_ANY_OF = ("anyOf", "oneOf")
_COUNTS = {1: "one", 2: "two", 3: "three", 4: "four"}
_SHORT = 40  # longest list, in characters, that a message shows
# Errors that are explained by a description of the type; for others pydantic's message is used.
_EXPLAINED_BY_TYPE = frozenset({
    "int_type", "int_parsing", "int_from_float", "float_type", "float_parsing", "bool_type", "bool_parsing",
    "string_type", "tuple_type", "list_type", "set_type", "dict_type", "model_type", "literal_error", "none_required",
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "missing", "too_short", "too_long",
})  # fmt: skip


NEUTRAL = "neutral"  # key of ``json_schema_extra`` of options that were added later


def neutral_values(config: Any) -> dict[str, Any]:
    """Return the neutral value of each option of a pydantic model that was added later.

    A method behaves with this value as before the option existed. The option is declared with
    ``Field(..., json_schema_extra={NEUTRAL: value})``; ``value`` is what the model stores, such as a tuple, not a list.
    """
    extras = {name: field.json_schema_extra for name, field in config.model_fields.items()}
    return {name: extra[NEUTRAL] for name, extra in extras.items() if isinstance(extra, dict) and NEUTRAL in extra}


def factors(config: Any) -> dict[str, Any]:
    """Return the options of a model that are factors of a cell: an option at its neutral value is left out."""
    unchanged = {name for name, value in neutral_values(type(config)).items() if getattr(config, name) == value}
    return dict(config.model_dump(mode="json", exclude=unchanged))


class Option(NamedTuple):
    """One option for display; ``default`` as in a study file, empty if the option is required."""

    name: str
    default: str
    takes: str
    description: str


def table(config: Any) -> list[Option]:
    """Return the options of a pydantic model, in the order of its fields."""
    known = _TypeNames(config)
    rows = []
    for name, field in config.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default is PydanticUndefined else written(default)
        rows.append(Option(name, shown, known.takes((name,)), field.description or ""))
    return rows


def written(value: Any) -> str:
    """Return a value as it is written in a study file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    return str(value)


def problems(config: Any, owner: str, error: ValidationError, common: Collection[str] = ()) -> Iterator[OptionProblem]:
    """Yield the problems of the options of ``owner``, a method or experiment; at most one per option.

    ``common`` are the names of further options that are not fields of the model.
    """
    known, seen = _TypeNames(config), set()
    errors = error.errors(include_url=False)
    for entry in errors:
        place = tuple(entry["loc"])
        if any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in errors):
            continue  # the list is too short only because of a wrong item, which has its own error
        problem = known.problem(entry, owner, common)
        if problem.path not in seen or not problem.path:
            seen.add(problem.path)
            yield problem


class _AnySchema(GenerateJsonSchema):
    """A generator of JSON schemas that accepts types without a schema."""

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}


def json_schemas(models: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the JSON schema of each pydantic model by its key, and the definitions that they refer to."""
    definitions: dict[str, Any] = {}
    found = {}
    for key, model in models.items():
        template = f"#/$defs/{key.replace(' ', '.')}.{{model}}"
        schema = model.model_json_schema(schema_generator=_AnySchema, ref_template=template)
        definitions |= {f"{key.replace(' ', '.')}.{name}": part for name, part in schema.pop("$defs", {}).items()}
        found[key] = schema
    return found, definitions


class _TypeNames:
    """Descriptions of the types of a model's fields."""

    def __init__(self, config: Any) -> None:
        self._root: Schema = config.model_json_schema(schema_generator=_AnySchema)
        self._definitions: Schema = self._root.get("$defs", {})

    def takes(self, place: Sequence[str | int]) -> str:
        """Return a description of the allowed values at a place, empty if unknown."""
        return _either(self._forms(self._find(place)[1]))

    def problem(self, entry: Mapping[str, Any], owner: str, common: Collection[str]) -> OptionProblem:
        """Return one of pydantic's errors as a problem."""
        kind, loc, found = entry["type"], tuple(entry["loc"]), entry["input"]
        if kind == "extra_forbidden":
            _, parent = self._find(loc[:-1])
            names = {*parent.get("properties", {}), *(common if len(loc) == 1 else ())}
            return OptionProblem(loc, f"{owner} has no such option", None, sorted(names), str(loc[-1]))
        place, schema = self._find(loc[:-1] if kind == "missing" and isinstance(loc[-1], int) else loc)
        forms = self._forms(schema)
        words = [form for form in forms if form in self._choices(schema)]
        if kind not in _EXPLAINED_BY_TYPE or not forms or (kind == "missing" and place == loc):
            return self._with_original_message(entry)
        if words:
            return OptionProblem(
                place, "unknown value", _plain(found), forms, found if isinstance(found, str) else None
            )
        return OptionProblem(place, f"must be {_either(forms)}{self._example(place, schema)}", _plain(found))

    def _with_original_message(self, entry: Mapping[str, Any]) -> OptionProblem:
        """Return an error of a validator or a rare constraint with its own message."""
        message, place, found = str(entry["msg"]).removeprefix("Value error, "), tuple(entry["loc"]), entry["input"]
        message = re.sub(r"^(Input|String|List|Dictionary|Tuple) should ", "must ", message)
        message = message[:1].lower() + message[1:]
        if entry["type"] == "missing":
            return OptionProblem(place, "is missing")
        is_shown = not place or isinstance(found, Mapping) or "; found " in message
        return OptionProblem(place, message, None if is_shown else _plain(found))

    def _find(self, place: Sequence[str | int]) -> tuple[tuple[str | int, ...], Schema]:
        """Return the schema at a place and the place; a union of types ends the search early."""
        at: tuple[str | int, ...] = ()
        schema = self._follow(self._root)
        for part in place:
            inner = self._follow(schema, past_null=True)
            if any(key in inner for key in _ANY_OF):
                break
            at, schema = (*at, part), self._follow(_below(inner, part))
        return at, schema

    def _follow(self, schema: Schema, *, past_null: bool = False) -> Schema:
        """Return the target of a reference; with ``past_null`` also the single alternative to null."""
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
        """Return a description of a list."""
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        first = schema.get("prefixItems", [])
        if first and all(item == first[0] for item in first) and len(first) == high:
            if high == 1:
                return f"one {_either(self._forms(first[0])).removeprefix('a ') or 'value'}"
            return f"{_COUNTS.get(high, high)} {_either(self._forms(first[0], many=True)) or 'values'}"
        if first:
            return f"a list of {' and '.join(_either(self._forms(item)) or 'a value' for item in first)}"
        items = _either(self._forms(schema.get("items", {}), many=True)) or "values"
        if high is not None:
            return f"a list of {low} to {high} {items}" if low != high else f"{_COUNTS.get(high, high)} {items}"
        minimum = f"{_COUNTS.get(low, low)} or more " if low else ""
        return f"a list of {minimum}{items}"

    def _choices(self, schema: Schema) -> set[str]:
        """Return the allowed texts."""
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
    """Return a description such as "a positive number" or "whole numbers above 2 and at most 5"."""
    noun = f"{'whole ' if schema['type'] == 'integer' else ''}number{'s' if many else ''}"
    above, minimum = schema.get("exclusiveMinimum"), schema.get("minimum")
    below, maximum = schema.get("exclusiveMaximum"), schema.get("maximum")
    if below is None and maximum is None and (above == 0 or (minimum == 1 and schema["type"] == "integer")):
        return f"{'' if many else 'a '}positive {noun}"
    low = _bound("above", above) or _bound("of at least", minimum)
    high = _bound("below", below) or _bound("at most", maximum)
    high = f"of {high}" if high.startswith("at") and not low else high
    return " ".join(filter(None, ("" if many else "a", noun, " and ".join(filter(None, (low, high))))))


def _bound(words: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"


def _either(forms: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(forms[:-1]), *forms[-1:]) if part)


def _plain(value: Any) -> Any:
    """Return a value for a message: short lists in full, and None as null."""
    if isinstance(value, list | tuple) and len(text := written(value)) <= _SHORT:
        return UnquotedText(text)
    return UnquotedText("null") if value is None else value
