"""The jobs that are sent to a supervisor: cells of a study, and parts of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ep_bench import methods
from ep_bench.types import Cell, DatasetRef, SplitScheme


@dataclass(frozen=True)
class Job:
    """A cell with everything that is needed to run it on any machine."""

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


PARTS = "parts"  # the data set of a part


@dataclass(frozen=True)
class PartJob:
    """A part of an experiment. As a cell it has the experiment as method and the number of the part as split."""

    cell: Cell
    study: str
    experiment: str
    options: Mapping[str, Any]
    seed: int
    base: str  # the folder of the study, for files of methods and data
    seconds: float | None = None  # limits of the part
    memory_gb: float | None = None
    cpu_seconds: float | None = None
    estimate: float | None = None

    external = False


AnyJob = Job | PartJob
