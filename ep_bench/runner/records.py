"""Records of cells, made in the worker process or in the supervisor that had to end it; messages of errors."""

from __future__ import annotations

import random
import time
import warnings
from typing import Any

import numpy as np

from ep_bench.results.provenance import environment
from ep_bench.runner.jobs import Job
from ep_bench.types import UNCONVERGED, Record, UserError

# How the reasons begin of cells that the machine ended, not the method; such a cell is run again.
KILLED, LOST = "killed from outside", "its worker was lost"
CHANGED = "changed since the plan was made"
INFRASTRUCTURE = (KILLED, LOST, CHANGED)


class CellError(Exception):
    """A cell that ends without numbers: ``status`` and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


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
    record.row |= {"status": status, "reason": one_line(reason)}


def one_line(text: str) -> str:
    """Return a text as a row keeps it."""
    return " ".join(printable(text).split())[:500]


def printable(text: str) -> str:
    """Return a text that can be written: a file's name that is no UTF-8 may stand in it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def reason_of(error: Exception) -> str:
    """Return what went wrong, in words."""
    if isinstance(error, UserError | CellError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def unconverged(warned: list[warnings.WarningMessage], use: str) -> str:
    """Return the reason of a method that warned, as scikit-learn's do, that it did not converge; else none.

    Its own name, which a method of the registry has before its words, stands in the row already.
    """
    found = (str(w.message) for w in warned if "Convergence" in w.category.__name__)
    first = next(found, "").removeprefix(f"{use}: ")
    return f"{UNCONVERGED}: {' '.join(first.split())[:200]}" if first else ""


def seed_globals(seed: int) -> None:
    """Seed the generators that a method from outside may draw from without asking."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
