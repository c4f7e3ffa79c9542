"""The job that is sent to a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ep_bench import methods
from ep_bench.types import Cell, DatasetRef, SplitScheme


@dataclass(frozen=True)
class Job:
    """A cell with everything that a worker on any machine needs to run it."""

    cell: Cell
    study: str
    dataset: DatasetRef
    scheme: SplitScheme
    use: str
    options: Mapping[str, Any]
    base: str  # the folder of the study, for methods in files
    seconds: float | None = None  # limits of the cell
    memory_gb: float | None = None
    cpu_seconds: float | None = None
    tune: Mapping[str, Any] | None = None  # trials, fraction, space, score: the factor ``tune`` of the cell
    estimate: float | None = None  # seconds, from earlier records or estimated by the method

    @property
    def external(self) -> bool:
        """Return whether the method is not part of ep-bench; the answer needs no import of the method."""
        return ":" in self.use or methods.plugin(self.use) is not None
