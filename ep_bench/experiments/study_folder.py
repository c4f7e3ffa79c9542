"""The folder of the study of an experiment, which files of external methods are relative to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_study_folder = ContextVar("study_folder", default=Path())


@contextmanager
def relative_to(folder: Path) -> Iterator[None]:
    """Read files of external methods relative to the folder of a study in the ``with`` block."""
    token = _study_folder.set(folder)
    try:
        yield
    finally:
        _study_folder.reset(token)


def study_folder() -> Path:
    """Return the folder that files of external methods are relative to."""
    return _study_folder.get()
