"""What travels to a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ep_bench.types import Cell, DatasetRef, SplitScheme


@dataclass(frozen=True)
class Job:
    """A cell with all that a worker needs to run it, on this machine or another."""

    cell: Cell
    study: str
    dataset: DatasetRef
    scheme: SplitScheme
    use: str
    options: Mapping[str, Any]
    base: str  # the study's folder, for targets that are files
    seconds: float | None = None  # limits of one cell
    memory_gb: float | None = None
    tune: Mapping[str, Any] | None = None  # trials, fraction, space, score: the cell's factor of that name
    estimate: float | None = None  # seconds, from earlier records or the method's own guess
