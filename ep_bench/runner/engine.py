"""The process that computes: takes jobs from a connection, runs each, sends its record back.

A lane (``lane.py``) starts it as ``python -m ep_bench.runner.engine FD`` and may kill it at any moment: it stores
nothing, and nothing else lives in it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys

from ep_bench.runner.child import serve

STARTED = "started"  # sent when a cell's own work begins: libraries loaded, data read, kernels compiled


def main(descriptor: int) -> None:
    """Serve jobs until the lane closes the connection."""
    connection = serve(descriptor)
    faulthandler.enable()
    from ep_bench.runner.execute import run_cell

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job = connection.recv()
            record = run_cell(job, started=lambda: connection.send(STARTED))
            sys.stdout.flush()
            connection.send(record)


if __name__ == "__main__":
    main(int(sys.argv[1]))
