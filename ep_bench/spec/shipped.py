"""Studies that ship with the package, found by their names."""

from __future__ import annotations

from pathlib import Path

from ep_bench.resources import shipped_folder
from ep_bench.types import UserError


def shipped_studies() -> dict[str, Path]:
    """Return the study files that ship with the package, by their names without suffix."""
    return {path.stem: path for path in sorted(shipped_folder("configs").rglob("*.yaml"))}


def find_study(study: Path) -> Path:
    """Return the file of a study: the path itself, or the study of that name that ships with the package.

    Raises
    ------
    UserError
        There is neither such a file nor such a study; the message has the names of those that ship.
    """
    is_name = study.name == str(study) and not study.suffix
    if not is_name or study.is_file():
        return study
    studies = shipped_studies()
    if str(study) in studies:
        return studies[str(study)]
    if study.exists():
        return study
    raise UserError("no such study file, and no study of that name", where=str(study), allowed=studies, name=str(study))
