"""The process that runs checks, a child of a fork server that has imported this module."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ep_bench import adapters
from ep_bench.conformance.checks import PRINT_STACK, CheckOutcome, Ready
from ep_bench.conformance.method_under_test import MethodUnderTest, silently
from ep_bench.conformance.run_check import perform
from ep_bench.errors import UserError
from ep_bench.types import Task


def prepare() -> None:
    """Import in the fork server what most methods use."""
    adapters.preload()


class ServedChecks:
    """The checks of one method."""

    def __init__(self, target: str, options: Mapping[str, Any], base: Path, cwd: Path, task: Task | None) -> None:
        faulthandler.register(PRINT_STACK, all_threads=False)
        os.chdir(cwd)
        self._subject = MethodUnderTest(target, options, base, task)

    def prepare(self) -> Ready | UserError:
        """Import and construct the target; return the error if this fails."""
        try:
            with silently():
                self._subject.prepare()
        except UserError as error:
            return error
        return Ready(self._subject.registered, self._subject.source, self._subject.task or "regression")

    def perform(self, name: str) -> CheckOutcome:
        """Return the outcome of a check."""
        return perform(self._subject, name)
