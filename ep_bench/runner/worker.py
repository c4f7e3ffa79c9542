"""The worker process: receives jobs from a connection, runs each, and sends its record back.

A supervisor (``supervisor.py``) starts it as ``python -m ep_bench.runner.worker FD`` and may kill it at any moment. It
stores nothing.
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys

from ep_bench.processes.child_process import serve
from ep_bench.runner.jobs import Job

IDLE = 600.0  # seconds without a job after which a worker process exits, as its run may have ended on another machine
IDLE_EXIT = 75  # exit code in that case
STARTED = "started"  # sent when the work of a cell begins, after loading and compilation


def main(descriptor: int) -> None:
    """Run jobs until the supervisor closes the connection."""
    connection = serve(descriptor)
    faulthandler.enable()
    from ep_bench import adapters
    from ep_bench.runner.execute import keep_dataset, run_cell

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while connection.poll(IDLE):
            message = connection.recv()
            if isinstance(message, Job):
                record = run_cell(message, started=lambda: connection.send(STARTED))
                sys.stdout.flush()
                connection.send(record)
                _end_idle_workers()
            elif isinstance(message, dict):
                adapters.use_copies(message)
            else:
                keep_dataset(*message)
        sys.exit(IDLE_EXIT)


def _end_idle_workers() -> None:
    """End the processes that joblib keeps after a parallel call of a method, so that this process can be reused."""
    reusable = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(reusable, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
