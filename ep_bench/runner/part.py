"""Run one part of an experiment, in a process of its own. An error becomes a record with status and reason."""

from __future__ import annotations

import json
from collections.abc import Callable

from ep_bench.processes.failures import Failure
from ep_bench.processes.fork_server import ChildRequest
from ep_bench.processes.warm_server import WarmServer
from ep_bench.runner.jobs import PartJob
from ep_bench.runner.records import blank_record, fail
from ep_bench.types import Record

VALUE = "value"  # the note of a record with the value of its part, a JSON text


def run_part(job: PartJob, server: WarmServer, work_begins: Callable[[], None]) -> Record:
    """Run a part and return its record; a value with a ``failure`` is kept, and the part counts as failed.

    Raises ChildLostError if the process is lost.
    """
    record = blank_record(job)
    try:
        request = ChildRequest("ep_bench.experiments.parts:ServedExperiment")
        child = server.start(request, job.experiment, job.options, job.seed, job.base)
        work_begins()
        value, record.row["fit_seconds"], record.row["fit_cpu_seconds"] = child.ask("part", job.cell.split)
    except Exception as error:  # noqa: BLE001 code of a method may raise any exception; the record stores it
        failure = Failure.of(error)
        fail(record, failure.status, failure.reason, failure.traceback)
        return record
    record.notes[VALUE] = json.dumps(value)
    if isinstance(value, dict) and value.get("failure"):
        fail(record, "failed", str(value["failure"]), str(value.get("traceback", "")))
    return record
