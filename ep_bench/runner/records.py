"""Records of cells: a blank one, failures, and convergence warnings."""

from __future__ import annotations

import random
import time
import warnings
from typing import Any

import numpy as np

from ep_bench.estimator.source_code import source_hash
from ep_bench.processes.failures import one_line
from ep_bench.results.provenance import environment
from ep_bench.runner.jobs import AnyJob, Job
from ep_bench.types import UNCONVERGED, Record

# Beginnings of the reasons of cells that failed because of the machine, not of the method. Such cells are run again.
KILLED, LOST = "killed from outside", "its worker was lost"
CHANGED = "changed since the plan was made"
INFRASTRUCTURE = (KILLED, LOST, CHANGED)


def blank_record(job: AnyJob) -> Record:
    """Return the record of a cell before it is computed."""
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
    source = {"source": source_hash(job.use)} if isinstance(job, Job) and not job.external else {}
    provenance = {**environment(), **source, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    return Record(row, dict(cell.factors), provenance)


def fail(record: Record, status: str, reason: str, traceback: str = "") -> None:
    """Mark a record as not ok, with a reason of one line."""
    record.row |= {"status": status, "reason": one_line(reason)}
    record.traceback = traceback


def unconverged(warned: list[warnings.WarningMessage], use: str) -> str:
    """Return the reason of a method that issued a ``ConvergenceWarning`` as in scikit-learn, empty if none did.

    The name of the method at the beginning of the message is removed, because the row already has it.
    """
    found = (str(w.message) for w in warned if "Convergence" in w.category.__name__)
    first = next(found, "").removeprefix(f"{use}: ")
    return f"{UNCONVERGED}: {' '.join(first.split())[:200]}" if first else ""


def seed_globals(seed: int) -> None:
    """Seed the global random generators, which external methods may use."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
