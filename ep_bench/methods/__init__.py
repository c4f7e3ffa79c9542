"""The registry of methods: the modules of this folder, each with its ``METHOD``.

A method has the name of its module. The module is imported when the method is first requested, so that a list of the
names does not load the compiler.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from ep_bench.errors import UserError
from ep_bench.types import Method

REGISTRY: dict[str, str] = {found.name: f"{__name__}.{found.name}" for found in iter_modules(__path__)}


def names() -> tuple[str, ...]:
    """Return the names of the methods in alphabetical order."""
    return tuple(REGISTRY)


def get(name: str) -> Method:
    """Return the method with a name. Raises UserError with the nearest valid name if the name is unknown."""
    if name not in REGISTRY:
        raise UserError("unknown method", found=name, allowed=names(), name=name)
    method: Method = import_module(REGISTRY[name]).METHOD
    return method


@cache
def literals(name: str) -> dict[str, Any]:
    """Return the arguments of ``METHOD`` that are literals, read from the source: the compiler is not loaded."""
    source = Path(str(getattr(find_spec(REGISTRY[name]), "origin", ""))).read_text(encoding="utf-8")
    method = ast.parse(source[source.index("\nMETHOD = ") :]).body[0]
    given = [each for each in ast.walk(method) if isinstance(each, ast.keyword)]
    return {each.arg: ast.literal_eval(each.value) for each in given if each.arg in {"style", "bibtex"}}


def version(name: str, config: object = None) -> str:
    """Return the version that identifies the numbers of a configuration, without one the newest of the method."""
    method = get(name)
    return str(method.version if config is None or method.version_of is None else method.version_of(config))
