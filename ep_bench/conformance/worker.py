"""The child process that runs checks: ``python -m ep_bench.conformance.worker FD``, started by ``suite``."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from pathlib import Path

from ep_bench.conformance.messages import PRINT_STACK, Ready, Refused
from ep_bench.processes.child_process import serve


def main(descriptor: int) -> None:
    """Receive a target and then names of checks; send the outcome of each check."""
    connection = serve(descriptor)
    faulthandler.enable()
    faulthandler.register(PRINT_STACK, all_threads=False)
    from ep_bench.conformance.method_under_test import MethodUnderTest, silently
    from ep_bench.conformance.run_check import perform
    from ep_bench.errors import UserError

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        order = connection.recv()
        try:
            with silently():
                subject = MethodUnderTest(order.target, order.options, Path(order.base), order.task)
                subject.prepare()
        except UserError as error:
            connection.send(Refused(str(error)))
            return
        connection.send(Ready(subject.registered, subject.source, subject.task or "regression"))
        while True:
            outcome = perform(subject, connection.recv())
            sys.stdout.flush()
            connection.send(outcome)


if __name__ == "__main__":
    main(int(sys.argv[1]))
