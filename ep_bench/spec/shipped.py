"""Studies that are shipped with the package, found by name."""

from __future__ import annotations

from pathlib import Path

from ep_bench.errors import UserError
from ep_bench.resources import shipped_folder


def shipped_studies() -> dict[str, Path]:
    """Return the shipped study files by their names without suffix."""
    return {path.stem: path for path in sorted(shipped_folder("configs").rglob("*.yaml"))}


def find_study(study: str | Path) -> Path:
    """Return the file of a study: an existing file, or the shipped study with this name.

    A name has no folder and no suffix; ``./name`` and a ``Path`` are paths.

    Raises
    ------
    UserError
        Neither the file nor the shipped study exists; the message lists the shipped studies.
    """
    path, studies = Path(study), shipped_studies()
    if not path.is_file() and study in studies:
        return studies[str(study)]
    if not path.exists():
        problem = "no such study file, and no shipped study with this name"
        raise UserError(problem, where=str(study), allowed=studies, name=path.stem)
    return path
