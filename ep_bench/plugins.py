"""Entry points of installed packages, found without importing the packages.

The group ``ep_bench.methods`` holds methods and ``ep_bench.datasets`` data sets. A built-in name always means the
built-in object; ``clashes`` reports plugins of that name. Using a name that two packages define is an error.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ep_bench.errors import UserError

METHODS, DATASETS = "ep_bench.methods", "ep_bench.datasets"


@dataclass(frozen=True)
class Plugin:
    """One entry point: its name, its package, and the object that it refers to (``module:attribute``)."""

    group: str
    name: str
    package: str  # name of the distribution
    version: str  # of the distribution
    reference: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def place(self) -> str:
        """Return the location of the entry point, for messages."""
        return f"{self.package} {self.version}: entry point {self.group}: {self.name} = {self.reference}"

    def load(self) -> Any:
        """Return the object that the entry point refers to. Raises UserError if it cannot be imported."""
        return _load(self)


def names(group: str) -> tuple[str, ...]:
    """Return the sorted names of the plugins of a group; nothing is imported."""
    return tuple(sorted({plugin.name for plugin in found(group)}))


def find(group: str, name: str, built_in: Collection[str]) -> Plugin | None:
    """Return the plugin of a name, or None if the name is built in or no package defines it.

    Raises UserError if several packages define it.
    """
    if name in built_in:
        return None
    clash = clashes(group, built_in).get(name)
    if clash is not None:
        raise UserError(clash, found=name)
    return next((plugin for plugin in found(group) if plugin.name == name), None)


def clashes(group: str, built_in: Collection[str]) -> dict[str, str]:
    """Return the names of plugins that cannot be used, each with the reason and the remedy."""
    owners: dict[str, list[str]] = {}
    for plugin in found(group):
        owners.setdefault(plugin.name, []).append(str(plugin))
    problems = {}
    for name, packages in owners.items():
        listed = ", ".join(packages)
        if name in built_in:
            problems[name] = f"the name is built in; rename the entry point of {listed}"
        elif len(packages) > 1:
            problems[name] = f"several packages define this name: {listed}; uninstall or rename all but one"
    return problems


def described(group: str, built_in: Collection[str]) -> list[tuple[str, str]]:
    """Return name and description of each plugin of a group; a name that clashes has the reason. None is loaded."""
    problems = clashes(group, built_in)
    usable = {p.name: f"of {p}: {p.reference}" for p in found(group) if p.name not in problems}
    return sorted({**usable, **{name: f"not usable: {problem}" for name, problem in problems.items()}}.items())


def found(group: str) -> tuple[Plugin, ...]:
    """Return all entry points of a group, sorted by name and package."""
    return _found(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _found(group: str, path: tuple[str, ...]) -> tuple[Plugin, ...]:  # noqa: ARG001 the packages depend on the path
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
