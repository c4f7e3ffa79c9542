"""What cells need beside themselves on a machine that does not have it: data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ep_bench.types import Dataset, DatasetRef


@dataclass(frozen=True)
class Luggage:
    """The luggage of one run: data sets by their names in the study."""

    run: str
    datasets: Mapping[DatasetRef, Dataset] = field(default_factory=dict)
