"""Studies that ship with the package, found by their names."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ep_bench.resources import shipped_folder
from ep_bench.types import UserError


def shipped_studies() -> dict[str, Path]:
    """Return the study files that ship with the package, by their names without suffix."""
    return {path.stem: path for path in sorted(shipped_folder("configs").rglob("*.yaml"))}


def find_study(study: str | Path) -> Path:
    """Return the file of a study: an existing file, or the study of that name that ships with the package.

    A name is a text without a folder and without a suffix; ``./name`` and a ``Path`` are paths.

    Raises
    ------
    UserError
        There is neither such a file nor such a study; the message has the names of those that ship.
    """
    path = Path(study)
    studies = shipped_studies()
    with suppress(ValueError, OSError):  # a name that no file can have; the reader of the file explains it
        if path.is_file():
            return path
        if study in studies:
            return studies[str(study)]
        if not path.exists():
            _refuse(study, studies)
    return path


def _refuse(study: str | Path, studies: dict[str, Path]) -> NoReturn:
    problem = "no such study file, and no study of that name ships with ep-bench"
    raise UserError(problem, where=str(study), allowed=studies, name=Path(study).stem)
