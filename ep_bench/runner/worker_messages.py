"""Messages between a supervisor and its worker process."""

from __future__ import annotations

from typing import NamedTuple

from ep_bench.runner.jobs import Job
from ep_bench.types import Dataset, DatasetRef

IDLE = 600.0  # seconds without a job after which a worker process exits, as its run may have ended on another machine
IDLE_EXIT = 75  # exit code in that case
STARTED = "started"  # sent when the work of a cell begins, after loading and compilation


class Assignment(NamedTuple):
    """A job; for an external method also the id of its process, and copies of files that the run has sent."""

    job: Job
    method_pid: int | None = None
    copies: dict[str, str] | None = None


class SentDataset(NamedTuple):
    """A data set that this machine does not have."""

    ref: DatasetRef
    dataset: Dataset


class LostMethod(NamedTuple):
    """The answer if the process of the method has ended, or if its answers are invalid for a reason."""

    reason: str
