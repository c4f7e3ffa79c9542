"""Studies that are shipped with the package, found by name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NoReturn

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
    path = Path(study)
    studies = shipped_studies()
    with suppress(ValueError, OSError):  # not a valid file name; the reader of the file reports it
        if path.is_file():
            return path
        if study in studies:
            return studies[str(study)]
        if not path.exists():
            _refuse(study, studies)
        if path.is_dir():
            meant = path.name.replace("-", "_")
            hint = f"; the study of its results is {meant}" if meant in studies else ""
            raise UserError(f"is a folder, not a study file{hint}", where=str(study))
    return path


def _refuse(study: str | Path, studies: dict[str, Path]) -> NoReturn:
    problem = "no such study file, and no shipped study with this name"
    raise UserError(problem, where=str(study), allowed=studies, name=Path(study).stem)
