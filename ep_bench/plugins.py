"""What installed packages bring along: their entry points, found without importing anything.

A package offers methods in the group ``ep_bench.methods`` and data sets in ``ep_bench.datasets``. A built-in name means
what is built in, whatever a package offers under it, which ``clashes`` tells; the use of a name that two packages give
is an error, and nothing else is.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ep_bench.types import UserError

METHODS, DATASETS = "ep_bench.methods", "ep_bench.datasets"


@dataclass(frozen=True)
class Plugin:
    """One entry point: its name, the package that has it, and what it refers to (``module:attribute``)."""

    group: str
    name: str
    package: str  # name of the distribution
    version: str  # of the distribution
    reference: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def place(self) -> str:
        """Return where a message says that the entry point stands."""
        return f"{self.package} {self.version}: entry point {self.group}: {self.name} = {self.reference}"

    def load(self) -> Any:
        """Return what the entry point refers to. Raises UserError where that cannot be imported."""
        return _load(self)


def names(group: str) -> tuple[str, ...]:
    """Return the names that plugins give in a group, sorted; nothing is imported."""
    return tuple(sorted({plugin.name for plugin in found(group)}))


def find(group: str, name: str, built_in: Collection[str]) -> Plugin | None:
    """Return the plugin of a name, or None where no package has one or the name is built in.

    Raises UserError where several packages give it.
    """
    if name in built_in:
        return None
    clash = clashes(group, built_in).get(name)
    if clash is not None:
        raise UserError(clash, found=name)
    return next((plugin for plugin in found(group) if plugin.name == name), None)


def clashes(group: str, built_in: Collection[str]) -> dict[str, str]:
    """Return the plugins' names that do not lead to them, each with why and how to mend it."""
    owners: dict[str, list[str]] = {}
    for plugin in found(group):
        owners.setdefault(plugin.name, []).append(str(plugin))
    taken = {name: f"the name is built in, {', '.join(of)} should rename its own" for name, of in owners.items()}
    shared = {
        name: f"two things have this name: {', '.join(of)}; uninstall or rename all but one"
        for name, of in owners.items()
        if len(of) > 1
    }
    return {name: taken[name] for name in taken if name in built_in} | {
        name: problem for name, problem in shared.items() if name not in built_in
    }


def found(group: str) -> tuple[Plugin, ...]:
    """Return every entry point of a group, in the order of their names and packages."""
    return _found(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _found(group: str, path: tuple[str, ...]) -> tuple[Plugin, ...]:  # noqa: ARG001 another path has other packages
    plugins = {
        Plugin(group, entry.name, entry.dist.name, entry.dist.version, entry.value)
        for entry in importlib.metadata.entry_points(group=group)
        if entry.dist is not None
    }
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.package)))


@cache
def _load(plugin: Plugin) -> Any:
    try:
        return importlib.metadata.EntryPoint(plugin.name, plugin.reference, plugin.group).load()
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot be imported: {type(error).__name__}: {error}", where=plugin.place) from error
