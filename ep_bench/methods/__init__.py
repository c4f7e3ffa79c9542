"""The registry of methods: each name with the module of its ``METHOD``, and the methods of installed plugins.

A module is imported when its method is first requested, so that listing the names does not load the compiler.
"""

from __future__ import annotations

from importlib import import_module

from ep_bench import plugins
from ep_bench.errors import UserError
from ep_bench.plugins import Plugin
from ep_bench.types import Method

REGISTRY: dict[str, str] = {
    "pbp": "ep_bench.methods.pbp",
    "bp": "ep_bench.methods.bp",
    "vi_graves": "ep_bench.methods.vi_graves",
    "vi": "ep_bench.methods.vi",
    "dropout": "ep_bench.methods.dropout",
    "ensemble": "ep_bench.methods.ensemble",
    "bb_alpha": "ep_bench.methods.bb_alpha",
    "hmc": "ep_bench.methods.hmc",
    "sgld": "ep_bench.methods.sgld",
    "laplace": "ep_bench.methods.laplace",
    "gp": "ep_bench.methods.gp",
    "sgp": "ep_bench.methods.sgp",
    "gp_t": "ep_bench.methods.gp_t",
    "dgp_ep": "ep_bench.methods.dgp_ep",
    "ep_nn": "ep_bench.methods.ep_nn",
}


def names() -> tuple[str, ...]:
    """Return the names of the methods in the order of the registry, then those of plugins."""
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
