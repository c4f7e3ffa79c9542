"""Files shipped with the package: data sets, studies and the citation, and a reader for YAML files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


@cache
def shipped_folder(name: str) -> Path:
    """Return ``datasets`` or ``configs``, folders, or the file ``CITATION.cff``.

    A wheel has these inside the package. An editable installation uses those of the repository.
    """
    inside = PACKAGE / name
    checkout = PACKAGE.parent
    is_checkout = (checkout / "pyproject.toml").is_file()
    return checkout / name if is_checkout and not inside.is_dir() else inside


def read_yaml(text: str) -> Any:
    """Return the content of a YAML text; libyaml's loader, if there is one, is ten times as fast as PyYAML's own."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)  # noqa: S506 both are safe
