"""The registry of methods: the modules of this folder, each with its ``METHOD``, and the methods of installed plugins.

A method has the name of its module. The module is imported when the method is first requested, so that a list of the
names does not load the compiler.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ep_bench import plugins
from ep_bench.errors import UserError
from ep_bench.plugins import Plugin
from ep_bench.types import Method

REGISTRY: dict[str, str] = {found.name: f"{__name__}.{found.name}" for found in iter_modules(__path__)}


def names() -> tuple[str, ...]:
    """Return the names of the methods in alphabetical order, then those of plugins."""
    return (*REGISTRY, *(name for name in plugins.names(plugins.METHODS) if name not in REGISTRY))


def plugin(name: str) -> Plugin | None:
    """Return the plugin (a method or a class) with a name, or None. Raises UserError if two plugins have the name."""
    return plugins.find(plugins.METHODS, name, REGISTRY)


def get(name: str) -> Method:
    """Return the method with a name.

    Raises UserError with the nearest valid name if the name is unknown. Also raises UserError if the method belongs to
    a plugin that cannot be imported or is not a ``types.Method``.
    """
    plugged = plugin(name)
    if plugged is None and name not in REGISTRY:
        raise UserError("unknown method", found=name, allowed=names(), name=name)
    method = import_module(REGISTRY[name]).METHOD if plugged is None else plugged.load()
    if not isinstance(method, Method):
        kind = type(method).__name__
        raise UserError(f"is of type {kind}, not ep_bench.types.Method", where=plugged.place if plugged else name)
    return method


def version(name: str, config: object = None) -> str:
    """Return the version that identifies the numbers of a configuration, without one the newest version of the method.

    For a plugin, the name of its package is in front.
    """
    plugged, method = plugin(name), get(name)
    own = str(method.version if config is None or method.version_of is None else method.version_of(config))
    return own if plugged is None else f"{plugged.package} {own}"
