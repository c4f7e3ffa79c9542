"""How to write what a study file seems to mean, for messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def as_class(use: str) -> str:
    """Return the external class that a name with a dot seems to mean."""
    if use.endswith(".py"):
        return f"'{use if use.startswith(('.', '/', '~')) else './' + use}:ClassName'"
    module, _, name = use.rpartition(".")
    return f"'{module}:{name}'" if module and name else "package.module:Class"


def as_entry(raw: Mapping[Any, Any], methods: Collection[str]) -> str:
    """Return the entry that ``{pbp: {hidden: [50]}}`` seems to mean, empty if there is no method among the keys."""
    for key, value in raw.items():
        is_method = isinstance(key, str) and (key in methods or ":" in key)
        if is_method and (value is None or isinstance(value, Mapping)):
            options = [*(value or {}), *(other for other in raw if other != key)]
            name = f"'{key}'" if ":" in key else key
            return "{" + ", ".join([f"use: {name}", *(f"{option}: ..." for option in options)]) + "}"
    return ""


def as_data_file(name: str) -> str:
    """Return the entry that the name of a CSV file seems to mean, empty if it is another name."""
    path = Path(name)
    if not {".csv", ".tsv", ".txt"} & {suffix.lower() for suffix in path.suffixes}:
        return ""
    return f"{{name: {path.name.partition('.')[0]}, csv: {name}, target: COLUMN}}"
