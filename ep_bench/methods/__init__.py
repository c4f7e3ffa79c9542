"""The registry of methods: the modules of this folder, each with its ``METHOD``.

A method has the name of its module. The module is imported when the method is first requested, so that a list of the
names does not load the compiler.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

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


def version(name: str, config: object = None) -> str:
    """Return the version that identifies the numbers of a configuration, without one the newest of the method."""
    method = get(name)
    return str(method.version if config is None or method.version_of is None else method.version_of(config))
