"""The JSON schema of study files, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from ep_bench import catalogue
from ep_bench.options import json_schemas
from ep_bench.spec.models import (
    SPLITS,
    Accept,
    CardEntry,
    Compare,
    FileEntry,
    LeftOut,
    Limits,
    RankGroup,
    Recalibrate,
    StudyFile,
    Tune,
)

Schema = dict[str, Any]
_EXTERNAL = {
    "type": "string",
    "pattern": ":",
    "description": "an external class: package.module:Class or ./file.py:Class",
}


def study_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of a study file.

    It accepts every valid study. It does not know relations between entries, such as labels of ``overrides``, and
    options of external classes.
    """
    models: dict[str, type[BaseModel]] = {
        "": StudyFile, "limits": Limits, "tune": Tune, "accept": Accept, "left_out": LeftOut, "compare": Compare,
        "ranks": RankGroup, "card": CardEntry, "file": FileEntry, "recalibrate": Recalibrate,
    }  # fmt: skip
    models |= {f"split {key}": model for key, model in SPLITS.items()}
    methods, experiments = catalogue.option_models()
    models |= {f"method {key}": model for key, model in methods.items()}
    models |= {f"experiment {key}": model for key, model in experiments.items()}
    parts, definitions = json_schemas(models)
    found = parts[""] | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A study of ep-bench"}
    found["properties"] |= _sections(parts)
    found["allOf"] = [_experiment(key, parts[f"experiment {key}"]) for key in sorted(experiments)]
    return found | {"$defs": definitions}


def _sections(parts: Mapping[str, Schema]) -> Schema:
    """Return the schemas of the keys that `StudyFile` leaves open."""
    datasets, methods, experiments = (
        {"enum": sorted(catalogue.known(what))} for what in ("datasets", "methods", "experiments")
    )
    card = _with(parts["card"], name=datasets)
    splits = [{"enum": sorted(SPLITS)}, *(parts[f"split {key}"] for key in SPLITS)]
    return {
        "datasets": _list_of([datasets, card, parts["file"]]),
        "splits": {"anyOf": splits},
        "methods": _list_of([methods, _EXTERNAL, *_entries(parts)]),
        "limits": parts["limits"],
        "compare": parts["compare"],
        "ranks": {"type": "array", "items": parts["ranks"]},
        "accept": {"type": "array", "items": _by_dataset(parts["accept"])},
        "left_out": {"type": "array", "items": _by_dataset(parts["left_out"])},
        "experiment": experiments,
    }


def _entries(parts: Mapping[str, Schema]) -> Iterable[Schema]:
    """Yield one schema per registry method, and one for external classes."""
    own = {
        "label": {"type": "string", "description": "name of the entry in results and reports"},
        "published": {"enum": sorted(catalogue.known("published")), "description": "column of the papers' tables"},
    }
    kinds = parts["recalibrate"]["properties"]
    own["recalibrate"] = {"anyOf": [kinds["method"], parts["recalibrate"]]}
    common = {key: {"type": "boolean", "default": value} for key, value in catalogue.COMMON_OPTIONS.items()}
    for name in sorted(catalogue.known("methods")):
        options = parts[f"method {name}"].get("properties", {}) | common
        tune = _with(parts["tune"], space={"type": "object", "propertyNames": {"enum": sorted(options)}})
        yield {
            "type": "object",
            "properties": {"fraction": kinds["fraction"], "use": {"const": name}, **own, "tune": tune, **options},
            "required": ["use"],
            "additionalProperties": False,
        }
    yield {"type": "object", "properties": {"use": _EXTERNAL, **own, "tune": parts["tune"]}, "required": ["use"]}


def _experiment(name: str, options: Schema) -> Schema:
    is_this = {"properties": {"experiment": {"const": name}}, "required": ["experiment"]}
    return {"if": is_this, "then": {"properties": {"options": options}}}


def _by_dataset(schema: Schema) -> Schema:
    """Return the schema of an item that may name several data sets."""
    one = schema["properties"]["dataset"]
    return _with(schema, dataset={"anyOf": [one, {"type": "array", "minItems": 1, "items": {"type": "string"}}]})


def _with(schema: Schema, **properties: Schema) -> Schema:
    """Return the schema of a model with other schemas of some of its properties."""
    return schema | {"properties": schema["properties"] | properties}


def _list_of(kinds: list[Schema]) -> Schema:
    return {"type": "array", "minItems": 1, "items": {"anyOf": kinds}}
