"""The worker process: receives jobs from a channel, runs each, and sends its record back.

A fork server that has imported this module forks it for a supervisor (``supervisor.py``), which may kill it at any
moment. It stores nothing. It runs the code of ep-bench alone: an external method has a process of its own, and the
descriptor of a channel to that process comes with the job.
"""

from __future__ import annotations

import contextlib
import sys

from ep_bench import adapters, scoring
from ep_bench.processes.channel import Channel
from ep_bench.results.provenance import environment
from ep_bench.runner import method_process  # noqa: F401 imported before the first fork
from ep_bench.runner.execute import MethodConnection, keep_dataset, run_cell
from ep_bench.runner.remote_method import MethodLostError
from ep_bench.runner.worker_messages import IDLE, IDLE_EXIT, STARTED, Assignment, LostMethod, SentDataset
from ep_bench.types import Record


def prepare() -> None:
    """Import in the fork server what cells use, so that no cell's time includes it."""
    adapters.preload()
    scoring.load()
    environment()


def main(channel: Channel) -> None:
    """Run jobs until the supervisor closes the connection."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while channel.poll(IDLE):
            message = channel.receive()
            content = Channel.unpickled(message)
            if isinstance(content, SentDataset):
                keep_dataset(*content)
            else:
                answer = _run(channel, content, *message.descriptors)
                sys.stdout.flush()
                channel.send_object(answer)
        sys.exit(IDLE_EXIT)


def _run(channel: Channel, assignment: Assignment, descriptor: int | None = None) -> Record | LostMethod:
    job, pid, copies = assignment

    def started() -> None:
        channel.send_object(STARTED)

    if descriptor is None or pid is None:
        return run_cell(job, started)
    with Channel(descriptor) as connection:
        try:
            return run_cell(job, started, MethodConnection(connection, pid, copies or {}))
        except MethodLostError as lost:
            return LostMethod(str(lost))
