"""The supervisor of a cell: starts its process, enforces its limits, and scores its predictions.

``run`` is executed by a thread of the run, or of a worker of a cluster; the code of a method runs in a child of a fork
server. A crash, a time-out or excessive memory therefore ends processes of one cell. A supervisor keeps one warm fork
server for all of its cells.
"""

from __future__ import annotations

import atexit
import json
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ep_bench import data
from ep_bench.errors import Failure
from ep_bench.experiments.parts import ServedExperiment
from ep_bench.predictions import DensityPrediction
from ep_bench.processes.fork_server import ChildRequest
from ep_bench.processes.warm_server import ChildLostError, RemoteObject, ServerLostError, WarmServer, ending
from ep_bench.runner.cell import keep_dataset, run_cell, variants
from ep_bench.runner.cell_limits import LimitWatch
from ep_bench.runner.jobs import (
    KILLED,
    LOST,
    VALUE,
    AnyJob,
    Evaluation,
    Job,
    MethodSetup,
    Opened,
    Options,
    PartJob,
    Predicted,
    SentDensity,
    blank_record,
    fail,
)
from ep_bench.types import Array, Dataset, DatasetRef, Record

ABANDONED = f"{LOST}: the run has ended or given it to another worker"

_METHOD = "ep_bench.runner.method_process"
_LOAD_LIBRARIES = f"{_METHOD}:load_libraries"
_FUNCTIONS = ("logpdf", "cdf", "quantile")  # of a density

_local = threading.local()  # one supervisor per thread
_all: list[Supervisor] = []
_payloads: dict[str, UnpackedPayload] = {}  # of the runs that use this cluster worker


def run(job: AnyJob, name: str | None = None, tag: str | None = None) -> Record:
    """Run a job and return its record; run it once more if it failed because of the machine.

    ``name`` is that of the run, for ``end_run``. On a cluster, ``tag`` identifies the job for ``abandon``.
    """
    record = _attempt(job, name, tag)
    reason = record.row["reason"]
    return _attempt(job, name, tag) if reason.startswith((KILLED, LOST)) and reason != ABANDONED else record


def _attempt(job: AnyJob, name: str | None, tag: str | None) -> Record:
    """Run a job once. All errors become a failed record, because an exception would end the whole run."""
    record = blank_record(job)
    try:
        return _own().run(job, name, tag)
    except OSError as error:  # out of memory or processes, or the disk is full
        fail(record, "failed", f"{LOST}: no process can be started: {error}")
    except Exception as error:  # noqa: BLE001
        failure = Failure.of(error)
        fail(record, "failed", failure.reason, failure.traceback)
    except BaseException:
        close()
        raise
    return record


class Supervisor:
    """A fork server and the job that its child works for."""

    def __init__(self) -> None:
        self.works_for: str | None = None  # name of a run
        self.tag: str | None = None  # of the current job
        self._abandoned = False
        self._server = WarmServer(f"{_METHOD}:prepare")

    @property
    def alive(self) -> bool:
        return self._server.alive

    def run(self, job: AnyJob, name: str | None, tag: str | None) -> Record:
        """Return the record of a job. Raises OSError if no process can be started."""
        self.works_for, self.tag = name, tag
        unpacked = _payloads.get(name or "")
        self._server.end_child()
        started, watch = time.monotonic(), LimitWatch(job, self._server)
        try:
            with watch:
                return self._compute(job, watch.work_begins, unpacked.paths if unpacked else {})
        except ChildLostError as lost:
            record = blank_record(job)
            status, reason = watch.exceeded or ("failed", self._loss(lost, time.monotonic() - started))
            fail(record, status, reason, self._server.tail())
            return record
        finally:
            self.tag = None
            self._server.release_child()

    def _loss(self, lost: ChildLostError, seconds: float) -> str:
        """Return why a child was lost."""
        if self._abandoned:
            return ABANDONED
        if isinstance(lost, ServerLostError):
            return f"{LOST}: {lost}"
        if str(lost):
            return str(lost)
        code = self._server.code()
        how = f"{KILLED}: SIGKILL" if code == -signal.SIGKILL else ending(code)
        return f"{how} after {seconds:.1f} s"

    def _compute(self, job: AnyJob, work_begins: Callable[[], None], copies: Mapping[str, str]) -> Record:
        if isinstance(job, PartJob):
            return run_part(job, self._open_experiment, work_begins)

        def open_method(setup: MethodSetup) -> Any:
            kernels = (setup.use, setup.task, list(variants(job)))
            before = (_LOAD_LIBRARIES, (job.use,)) if job.external else (f"{_METHOD}:load_kernels", kernels)
            request = ChildRequest(f"{_METHOD}:ServedMethod", *before)
            return RemoteMethod(self._server.start(request, setup))

        return run_cell(job, open_method, work_begins, copies)

    def _open_experiment(self, *arguments: Any) -> Any:
        request = ChildRequest("ep_bench.experiments.parts:ServedExperiment", _LOAD_LIBRARIES)
        return RemoteObject(self._server.start(request, *arguments))

    def abandon(self) -> None:
        """Kill the processes because their result is no longer awaited."""
        self._abandoned = True
        self._server.kill()

    def stop(self) -> None:
        """Kill all processes and release their resources."""
        self._server.stop()


class RemoteMethod(RemoteObject):
    """The ``CellMethod`` of a child."""

    def open(self, variants: Sequence[Options], strict: bool) -> Opened:
        """Import modules and compile kernels; the time of compilation includes that in the fork server."""
        found: Opened = self._child.ask("open", variants, strict)
        return found._replace(compile_seconds=found.compile_seconds + (self._child.prepared or 0.0))

    def predict(self, X: Array) -> Predicted:
        """Predict at X (n, d), in original units."""
        found: Predicted = self._child.ask("predict", X)
        return found._replace(prediction=self._received(found.prediction))

    def evaluate(self, *arguments: Any) -> Evaluation:
        """Build and fit a model, and predict."""
        found: Evaluation = self._child.ask("evaluate", *arguments)
        test = found.test._replace(prediction=self._received(found.test.prediction))
        return found._replace(test=test, training=self._received(found.training))

    def _received(self, prediction: Any) -> Any:
        """Return a prediction; the functions of a density ask the child."""
        if not isinstance(prediction, SentDensity):
            return prediction
        place, mean, variance = prediction
        functions = {name: partial(self._child.ask, "density", place, name) for name in _FUNCTIONS}
        return DensityPrediction(**functions, mean=mean, variance=variance, broadcasts=True)


def _own() -> Supervisor:
    """Return the supervisor of this thread; a new one if its server has ended."""
    known: Supervisor | None = getattr(_local, "supervisor", None)
    if known is None or not known.alive:
        close()
        known = _local.supervisor = Supervisor()
        _all.append(known)
    return known


def close(run: str | None = None) -> None:
    """End the processes of this thread or, of a run whose threads have ended, those of all of its threads."""
    own = getattr(_local, "supervisor", None)
    for each in [each for each in _all if (each is own if run is None else each.works_for == run)]:
        _all.remove(each)
        each.stop()


@atexit.register
def _close_all() -> None:
    for each in _all:
        each.stop()


# Files and data sets of a run on a cluster


@dataclass(frozen=True)
class Payload:
    """The payload of a run: data sets by their references in the study, and files by their paths on the run's machine.

    Modules outside the folder of a file that it imports must be installed on every machine.
    """

    run: str
    datasets: Mapping[DatasetRef, Dataset] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class UnpackedPayload:
    """A payload on the machine that received it; its files are written to a temporary folder."""

    def __init__(self, payload: Payload) -> None:
        for ref, dataset in payload.datasets.items():
            keep_dataset(ref, dataset)
        self._folder = tempfile.mkdtemp(prefix="ep-bench-") if payload.files else ""
        self.paths = {path: self._write(Path(path), content) for path, content in payload.files.items()}

    def drop(self) -> None:
        """Delete the temporary folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, path: Path, content: bytes) -> str:
        # Files keep their places relative to each other, so that they can import each other.
        copy = Path(self._folder, *path.parts[1:])
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        return str(copy)


def pack(run: str, jobs: Sequence[AnyJob]) -> Payload:
    """Return the payload of jobs: data sets and method files that are not part of the installed package.

    Files that an experiment names must be on every machine.
    """
    from ep_bench import adapters

    cells = [job for job in jobs if isinstance(job, Job)]
    refs = dict.fromkeys(job.dataset for job in cells)
    datasets = {ref: data.load(ref) for ref in refs if ref.csv or not data.card(ref.name).embedded}
    used = {(job.use, job.base): job for job in cells}.values()
    paths = {path for job in used for path in adapters.files(job.use, Path(job.base), job.options)}
    return Payload(run, datasets, {str(path): path.read_bytes() for path in sorted(paths)})


def unpack(payload: Payload) -> None:
    """Unpack the payload of a run; it is kept until ``end_run``."""
    if payload.run in _payloads:
        _payloads[payload.run].drop()
    _payloads[payload.run] = UnpackedPayload(payload)


def end_run(run: str) -> None:
    """Delete the payload of a run and end its processes."""
    for each in [each for each in _all if each.works_for == run]:
        each.abandon()
    unpacked = _payloads.pop(run, None)
    if unpacked is not None:
        unpacked.drop()


def abandon(tag: str) -> None:
    """Kill the processes of a job whose result is no longer awaited."""
    for each in [each for each in _all if each.tag == tag]:
        each.abandon()


def run_part(
    job: PartJob, open_experiment: Callable[..., Any] = ServedExperiment, started: Callable[[], None] = lambda: None
) -> Record:
    """Run a part of an experiment and return its record; exceptions become failed records.

    ``open_experiment`` returns the experiment, by default in this process. A value with a ``failure`` is kept, and the
    part counts as failed. Raises ChildLostError if the process of the experiment is lost.
    """
    record = blank_record(job)
    try:
        experiment = open_experiment(job.experiment, job.options, job.seed, job.base)
        started()
        value, record.row["fit_seconds"], record.row["fit_cpu_seconds"] = experiment.part(job.cell.split)
    except Exception as error:  # noqa: BLE001 code of a method may raise any exception; the record stores it
        failure = Failure.of(error)
        fail(record, failure.status, failure.reason, failure.traceback)
        return record
    record.notes[VALUE] = json.dumps(value)
    if isinstance(value, dict) and value.get("failure"):
        fail(record, "failed", str(value["failure"]), str(value.get("traceback", "")))
    return record
