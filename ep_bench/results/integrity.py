"""Integrity of stored rows and files: their checksums in the lock file, and scores that are impossible.

A row of ``results.csv`` counts only if its checksum is the one in the lock file. A file that was cut or edited is
therefore recognised, and the affected cells are computed again.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ep_bench.errors import visible
from ep_bench.results.files import canonical
from ep_bench.types import COLUMNS, COUNT_COLUMNS, TEXT_COLUMNS

Row = dict[str, Any]

_NUMBER_COLUMNS = frozenset(COLUMNS) - TEXT_COLUMNS - COUNT_COLUMNS
_LABELS = frozenset({"study", "method", "dataset"})  # from the plan, which may change them
_HASHED = frozenset(COLUMNS) - _LABELS
_FRACTIONS = ("coverage95", "coverage50", "coverage90", "error_rate", "pit_error")
_NOT_NEGATIVE = (
    "rmse", "mae", "crps", "ll_std", "se_std", "se_prct99", "width50", "width90", "width95", "train_rmse", "target_std",
    "brier", "fit_seconds", "predict_seconds", "compile_seconds", "tune_seconds", "peak_mb", "fit_cpu_seconds",
    "predict_cpu_seconds", "tune_cpu_seconds", "r_hat", "split", "seed",
)  # fmt: skip
_LARGEST = sys.float_info.max
_POSSIBLE = {
    column: (-_LARGEST, math.inf if column.startswith("width") else _LARGEST)
    for column in COLUMNS
    if column not in TEXT_COLUMNS
}
_POSSIBLE |= {column: (0.0, _POSSIBLE[column][1]) for column in _NOT_NEGATIVE}
_POSSIBLE |= dict.fromkeys(_FRACTIONS, (0.0, 1.0)) | dict.fromkeys(("n_train", "n_test"), (1.0, _LARGEST))


@dataclass(frozen=True)
class SuspectRow:
    """A stored row, or a file of an experiment, that cannot be trusted; labels and hash are empty where unknown."""

    file: str
    reason: str
    method: str = ""
    dataset: str = ""
    split: int | None = None
    cell: str = ""

    def __str__(self) -> str:
        place = f"{self.method} on {self.dataset}, split {self.split}: " if self.method else ""
        return f"{self.file}: {place}{self.reason}"


def text(value: Any) -> str:
    """Return a value as it is written to a table; None and nan are empty."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    return visible(" ".join(str(value).encode("utf-8", "backslashreplace").decode("utf-8").split()))


def checksum(row: Mapping[str, Any]) -> str:
    """Return the checksum of a row without its labels, 16 hexadecimal digits."""
    filled = {}
    for column, value in row.items():
        if type(value) is float and column in _NUMBER_COLUMNS and value == value:  # nearly all; `text` would be slow
            filled[column] = repr(value)
        elif column in _HASHED and (found := _canonical_text(column, value)):
            filled[column] = found
    return hashlib.sha256(canonical(filled).encode()).hexdigest()[:16]


def _canonical_text(column: str, value: Any) -> str:
    return text(float(value) if column in _NUMBER_COLUMNS and value is not None else value)


def file_checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the checksum of each file of a folder, 16 hexadecimal digits."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] for name in names}


def suspect_files(folder: Path, lock: Mapping[str, Any]) -> list[SuspectRow]:
    """Return the files of an experiment that are absent or do not match their checksums in its lock file."""
    found = []
    for name, expected in lock.get("files", {}).items():
        if not (folder / name).exists():
            found.append(SuspectRow(name, "the file is absent"))
        elif file_checksums(folder, [name]) != {name: expected}:
            found.append(SuspectRow(name, "the file does not match its checksum in the lock file"))
    return found


def impossible(row: Mapping[str, Any]) -> str:
    """Return why the values of a row are impossible, empty if they are not."""
    for column, value in row.items():
        if column in _POSSIBLE and not _POSSIBLE[column][0] <= value <= _POSSIBLE[column][1]:
            return f"impossible value: {column} is {value!r}"
    return ""
