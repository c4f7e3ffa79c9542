"""The child process that runs checks: ``python -m ep_bench.conformance.worker FD``, started by ``suite``."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from dataclasses import asdict
from pathlib import Path

from ep_bench.conformance.messages import PRINT_STACK, Ready
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
        order = connection.receive_object()
        try:
            with silently():
                subject = MethodUnderTest(order.target, order.options, Path(order.base), order.task)
                subject.prepare()
        except UserError as error:
            connection.send({"refused": str(error)})
            return
        connection.send(Ready(subject.registered, subject.source, subject.task or "regression")._asdict())
        while True:
            outcome = perform(subject, connection.receive_object())
            sys.stdout.flush()
            connection.send(asdict(outcome))


if __name__ == "__main__":
    main(int(sys.argv[1]))
