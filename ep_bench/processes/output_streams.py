"""Standard streams that are absent, have a small character set, or whose reader has exited."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO


def complete_streams() -> None:
    """Open absent standard streams, and let the others write every character, as an escape if necessary.

    A stream is absent if the shell has closed it. Its descriptor would otherwise be that of the next file opened.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            os.set_inheritable(number, True)
            if null != number:
                os.close(null)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 lives as long as the process
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_line(line: str, stream: TextIO) -> None:
    """Print a line; if the stream cannot be written, as after its reader has exited, discard this and later lines."""
    try:
        print(line, file=stream, flush=True)
    except OSError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Discard what a stream has not written yet, and all later output."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
