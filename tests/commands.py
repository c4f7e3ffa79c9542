"""The command line, called in this process to save the start-up of another one."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from ep_bench import cli


def ep_bench(*words: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run a command as `ep-bench` does; return its exit code and its output."""
    command = ["ep-bench", *map(str, words)]
    printed, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", command),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return CompletedProcess(command, code, printed.getvalue(), errors.getvalue())
