"""The experiments' sections, with the names that ``builder`` uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ep_bench.experiments.figures import section
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.page import Table as ExperimentTable
from ep_bench.results import store

__all__ = ["DrawnExperiment", "ExperimentTable", "draw"]


@dataclass(frozen=True)
class DrawnExperiment(Section):
    """The section of an experiment."""

    def for_page(self, embedded: Callable[[Picture], dict[str, str]]) -> dict[str, Any]:
        """Return the parts that the template names."""
        pictures = [embedded(picture) for picture in self.pictures]
        return {"id": self.id, "title": self.title, "pictures": pictures, "tables": self.tables}


def draw(study: store.StudyResults) -> DrawnExperiment:
    """Return the section of an experiment."""
    return DrawnExperiment(**vars(section(study)))
