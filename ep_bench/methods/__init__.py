"""The registry of methods: a name and the module that holds its ``METHOD``.

A module is imported when its method is first asked for, so that listing the names loads no compiler.
"""

from __future__ import annotations

from importlib import import_module

from ep_bench.types import Method, UserError

REGISTRY: dict[str, str] = {
    "pbp": "ep_bench.methods.pbp",
}


def names() -> tuple[str, ...]:
    """Return the methods' names in the order of the registry."""
    return tuple(REGISTRY)


def get(name: str) -> Method:
    """Return a method. Raises UserError with the nearest right name where there is none of that name."""
    if name not in REGISTRY:
        raise UserError("unknown method", found=name, allowed=REGISTRY, name=name)
    method: Method = import_module(REGISTRY[name]).METHOD
    return method
