"""Records of cells, made where a cell ends: in its engine, or in the lane that had to end it."""

from __future__ import annotations

import time
from typing import Any

from ep_bench.environment import environment
from ep_bench.runner.jobs import Job
from ep_bench.types import Record

# How the reasons begin of cells that the machine ended, not the method; such a cell is run again.
KILLED, LOST = "killed from outside", "its worker was lost"
INFRASTRUCTURE = (KILLED, LOST)


def blank_record(job: Job) -> Record:
    """Return the record of a cell before anything was computed."""
    cell = job.cell
    row: dict[str, Any] = {
        "study": job.study,
        "method": cell.method,
        "dataset": cell.dataset,
        "split": cell.split,
        "seed": cell.seed,
        "cell": cell.key,
        "status": "ok",
        "reason": "",
    }
    provenance = {**environment(), "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    return Record(row, dict(cell.factors), provenance)


def fail(record: Record, status: str, reason: str) -> None:
    """Mark a record as not ok; its reason is one line."""
    record.row |= {"status": status, "reason": " ".join(reason.split())[:500]}
