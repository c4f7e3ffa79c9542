"""Records of cells, created by the worker process or by its supervisor, and messages of errors."""

from __future__ import annotations

import contextlib
import random
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ep_bench.errors import UserError, visible
from ep_bench.estimator.source_code import source_hash
from ep_bench.processes.cpu_time import CPUTimer
from ep_bench.results.provenance import environment
from ep_bench.runner.jobs import Job
from ep_bench.types import UNCONVERGED, Record

# Beginnings of the reasons of cells that failed because of the machine, not of the method. Such cells are run again.
KILLED, LOST = "killed from outside", "its worker was lost"
CHANGED = "changed since the plan was made"
_REASON = 500  # largest number of characters of a reason
TRACEBACK_LENGTH = 20_000  # characters of a traceback that are sent and kept
INFRASTRUCTURE = (KILLED, LOST, CHANGED)


class CellError(Exception):
    """Ends a cell without scores; has its ``status`` and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def blank_record(job: Job) -> Record:
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
    source = {} if job.external else {"source": source_hash(job.use)}
    provenance = {**environment(), **source, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    return Record(row, dict(cell.factors), provenance)


@contextlib.contextmanager
def timed(record: Record, what: str, other: int | None = None) -> Iterator[None]:
    """Store the wall time and the CPU time of the block in ``<what>_seconds`` and ``<what>_cpu_seconds``.

    ``other`` is another process that works for the block.
    """
    cpu, started = CPUTimer(other), time.perf_counter()
    yield
    record.row[f"{what}_seconds"] = time.perf_counter() - started
    record.row[f"{what}_cpu_seconds"] = cpu.seconds()


def fail(record: Record, status: str, reason: str) -> None:
    """Mark a record as not ok, with a reason of one line."""
    record.row |= {"status": status, "reason": one_line(reason)}


def one_line(text: str) -> str:
    """Return a text as one line of at most 500 printable characters, the form stored in a row."""
    line = " ".join(printable(text).split())[:_REASON]
    return visible(line)[:_REASON]


def printable(text: str) -> str:
    """Return a text that can be encoded in UTF-8; it may contain file names that cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def reason_of(error: BaseException) -> str:
    """Return the message of an error, also if the error cannot be converted to a text."""
    name = type.__dict__["__name__"].__get__(type(error))
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 a method may define any exception
        return f"{name}; its message cannot be shown: {type(second).__name__}"
    if isinstance(error, UserError | CellError):
        return text
    return f"{name}: {text}" if text else str(name)


def status_of(error: BaseException) -> str:
    """Return the status of a cell that ended with an error."""
    return "memory" if isinstance(error, MemoryError) else "failed"


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
