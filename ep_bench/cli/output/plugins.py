"""Lines about plugins: entry points of installed packages."""

from __future__ import annotations

from collections.abc import Collection

from ep_bench import plugins


def plugin_rows(group: str, built_in: Collection[str]) -> list[tuple[str, str]]:
    """Return name and description of each plugin of a group; a name that clashes has the reason. None is loaded."""
    clashes = plugins.clashes(group, built_in)
    usable = {p.name: f"of {p}: {p.reference}" for p in plugins.found(group) if p.name not in clashes}
    return sorted({**usable, **{name: f"not usable: {problem}" for name, problem in clashes.items()}}.items())
