"""Jobs, the records of their outcome, and what the plans of cells and of experiments have in common."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ep_bench.errors import one_line
from ep_bench.results import store
from ep_bench.results.selection import Wanted, matches, require_matches, selection
from ep_bench.types import Array, Cell, Dataset, DatasetRef, Record, SplitScheme, Task

if TYPE_CHECKING:
    from ep_bench.runner.earlier_results import Neighbour
    from ep_bench.spec import Study
    from ep_bench.spec.models import Tune

Options = Mapping[str, Any]


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
    recalibrate: Mapping[str, Any] | None = None  # method, fraction, cross, refit: the factor of the cell
    estimate: float | None = None  # seconds, from earlier records or estimated by the method
    longer_search: str | None = None  # file of the cell with the same search and as many or more trials

    @property
    def external(self) -> bool:
        """Return whether the method is not part of ep-bench; the answer needs no import of the method."""
        return ":" in self.use


def with_longer_search(jobs: list[Job], tune: Tune | None, folder: Path) -> list[Job]:
    """Return the jobs of an entry with the files of the cells whose search has its largest budget.

    Cells without recalibration have the same search as those that are recalibrated and fitted again.
    """
    if tune is None or not tune.budgets:
        return jobs
    trials, refit = max(tune.budgets), bool((jobs[0].recalibrate or {}).get("refit"))
    if trials == tune.trials and not refit:
        return jobs
    kept = jobs[0].cell.factors.keys() - ({"recalibrate"} if refit else set())
    longest = [
        {key: job.cell.factors[key] for key in kept} | {"tune": {**(job.tune or {}), "trials": trials}} for job in jobs
    ]
    files = [folder.resolve() / store.CELLS / f"{store.factor_hash(factors)}.json" for factors in longest]
    return [replace(job, longer_search=str(file)) for job, file in zip(jobs, files, strict=True)]


PARTS = "parts"  # the data set of a part
VALUE = "value"  # the note of a record with the value of its part, a JSON text


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


# Beginnings of the reasons of cells that failed because of the machine, not of the method. Such cells are run again.
KILLED, LOST = "killed from outside", "its worker was lost"
CHANGED = "changed since the plan was made"
INFRASTRUCTURE = (KILLED, LOST, CHANGED)


class ObjectDefault(NamedTuple):
    """Stands for the default of an option that is no plain value."""

    option: str


@dataclass(frozen=True)
class MethodSetup:
    """What a process needs to know of a cell to build its method. ``copies`` are those of files sent by a run."""

    use: str
    base: str
    options: Options
    seed: int
    task: Task
    classes: int  # number of classes, 0 in regression
    tuned: bool
    constants: Mapping[int, float] = field(default_factory=dict)  # values of constant inputs after standardisation
    copies: Mapping[str, str] = field(default_factory=dict)
    recalibrate: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, job: Job, dataset: Dataset, copies: Mapping[str, str]) -> MethodSetup:
        """Return the setup of a cell."""
        return cls(
            job.use, job.base, job.options, job.cell.seed, dataset.task, len(dataset.classes), job.tune is not None,
            dataset.constants, copies, job.recalibrate,
        )  # fmt: skip


class Fitted(NamedTuple):
    """Wall and CPU time of a fit in seconds, and its trace."""

    seconds: float
    cpu_seconds: float
    trace: dict[str, list[float]]


class Opened(NamedTuple):
    """The version of a method, its provenance, and the time of compilation in seconds."""

    version: str
    provenance: dict[str, Any]
    compile_seconds: float


class Predicted(NamedTuple):
    """Wall and CPU time of a prediction in seconds, and the prediction."""

    seconds: float
    cpu_seconds: float
    prediction: Any  # an ``AnyPrediction``


class Summary(NamedTuple):
    """The note of diagnostics, and whether the fit met its criterion of convergence, None without one."""

    notes: dict[str, Any]
    converged: bool | None


class Evaluation(NamedTuple):
    """A fit, the prediction at the test inputs and, on request, at the training inputs; peak memory in MiB."""

    fit: Fitted
    test: Predicted
    training: Any
    summary: Summary
    peak_mb: float


class SentDensity(NamedTuple):
    """What is sent of a density: means and variances (N,), and its place among the densities kept in its process."""

    place: int
    mean: Array
    variance: Array


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
    return Record(row, dict(cell.factors), {"finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})


def fail(record: Record, status: str, reason: str, traceback: str = "") -> None:
    """Mark a record as not ok, with a reason of one line."""
    record.row |= {"status": status, "reason": one_line(reason)}
    record.traceback = traceback


def seed_globals(seed: int) -> None:
    """Seed the global random generators, which external methods may use."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@dataclass(frozen=True)
class PlannedCell:
    """A job and its state, with the reason.

    The states are ``done``, ``failed`` (finished, not ok), ``elsewhere`` (finished in the folder of another study),
    ``missing`` and ``stale``.
    """

    job: Any  # Job or PartJob
    state: str
    why: str = ""
    source: Neighbour | None = None  # the folder of another study that has the cell, finished or failed


@dataclass
class BasePlan:
    """The cells of a study, or the parts of an experiment, with what a run and the command line need of them."""

    study: Study
    folder: Path
    cells: list[PlannedCell]
    stamps: dict[str, int] = field(default_factory=dict)  # modification times of the cell files before they were read
    finished: store.FinishedRows = field(default_factory=store.FinishedRows)  # all finished rows in the folder
    whole: Self | None = None  # the plan before a selection

    unit: ClassVar[str] = "cells"
    table: ClassVar[str] = store.RESULTS

    def to_run(self, *, retry_failed: bool = False) -> list[AnyJob]:
        """Return the unfinished jobs, the longest first."""
        wanted = {"missing", "stale", "failed"} if retry_failed else {"missing", "stale"}
        # By hash: a configuration with two labels is run once.
        jobs = {planned.job.cell.key: planned.job for planned in self.cells if planned.state in wanted}
        return sorted(jobs.values(), key=lambda job: -(job.estimate or 0.0))

    def absent(self, *, retry_failed: bool = False) -> list[str]:  # noqa: ARG002 of those to run
        """Return the data sets of cells to run whose files are missing on this machine."""
        return []

    def warnings(self) -> list[str]:
        """Return warnings about the study and its results."""
        return []

    def left_out(self) -> list[dict[str, str]]:
        """Return the selected combinations of method and data set that the study leaves out, with reasons."""
        return []

    def select(self, patterns: Sequence[str]) -> Self:
        """Return the plan of the cells that match every ``key=glob``; several globs of one key are alternatives.

        Raises UserError for an invalid pattern, or if no cell of the study matches one of them, or all.
        """
        wanted = selection(patterns)
        require_matches(wanted, (vars(planned.job.cell) for planned in self.cells))
        kept = [planned for planned in self.cells if matches(vars(planned.job.cell), wanted)]
        return self._restricted(kept, wanted)

    def _restricted(self, kept: list[PlannedCell], wanted: Wanted) -> Self:  # noqa: ARG002
        return replace(self, cells=kept, whole=self)

    def statuses(self) -> Counter[str]:
        """Return the number of cells by status, or ``missing``."""
        rows = (self.finished.rows.get(planned.job.cell.key) for planned in self.cells)
        return Counter(row["status"] if row else "missing" for row in rows)

    def begin(self, jobs: Sequence[AnyJob]) -> None:
        """Prepare the results folder for a run of these jobs."""

    def take_over(self, *, failed: bool) -> Counter[str]:  # noqa: ARG002
        """Copy finished cells of other studies; return their number by the name of the folder."""
        return Counter()

    def check(self, record: Record) -> None:
        """Raise UserError if a finished job shows that no further job is worth running."""

    def save(self, *, with_curves: bool = True) -> None:
        """Write the finished cells to the tables of the folder."""
