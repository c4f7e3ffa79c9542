"""The process that runs checks, forked for ``suite`` by a server that has imported this module."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from dataclasses import asdict
from pathlib import Path

from ep_bench import adapters
from ep_bench.conformance.messages import PRINT_STACK, Ready, as_plain
from ep_bench.conformance.method_under_test import MethodUnderTest, silently
from ep_bench.conformance.run_check import perform
from ep_bench.errors import UserError
from ep_bench.processes.channel import Channel


def prepare() -> None:
    """Import in the fork server what most methods use."""
    adapters.preload()


def main(channel: Channel) -> None:
    """Receive a target and then names of checks; send the outcome of each check."""
    faulthandler.enable()
    faulthandler.register(PRINT_STACK, all_threads=False)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        order = channel.receive_object()
        os.chdir(order.cwd)
        try:
            with silently():
                subject = MethodUnderTest(order.target, order.options, Path(order.base), order.task)
                subject.prepare()
        except UserError as error:
            channel.send({"refused": as_plain(error)})
            return
        channel.send(Ready(subject.registered, subject.source, subject.task or "regression")._asdict())
        while True:
            outcome = perform(subject, channel.receive_object())
            sys.stdout.flush()
            channel.send(asdict(outcome))
