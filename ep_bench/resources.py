"""Folders that ship with the package: data sets and studies."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@cache
def shipped_folder(name: str) -> Path:
    """Return the folder ``name`` (``datasets`` or ``configs``) of an installed wheel, else of the checkout.

    A wheel has these folders inside the package; an editable installation uses those at the top of the repository.
    """
    inside = PACKAGE / name
    checkout = PACKAGE.parent
    is_checkout = (checkout / "pyproject.toml").is_file()
    return checkout / name if is_checkout and not inside.is_dir() else inside
