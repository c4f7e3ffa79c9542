"""Output whose stream is closed, has a small character set, or has no reader."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

from ep_bench.cli.commands.common import EXIT_UNREAD
from ep_bench.processes.output_streams import complete_streams, print_line

HELP = [sys.executable, "-m", "ep_bench", "--help"]


@contextmanager
def unread_stream() -> Iterator[TextIO]:
    """Open a pipe whose reader has exited."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream


def test_a_reader_that_has_exited_is_no_regression() -> None:
    with unread_stream() as stream:
        done = subprocess.run(HELP, stdout=stream, stderr=subprocess.PIPE)
    assert done.returncode == EXIT_UNREAD
    assert not done.stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    code = "from ep_bench.cli import main; import sys; sys.argv = ['ep-bench', '--help']; main()"
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_characters_that_a_stream_does_not_have_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    complete_streams()
    print("café†\udcff", flush=True)
    assert written.getvalue() == b"caf\xe9\\u2020\\udcff\n"


def test_lines_without_a_reader_are_discarded() -> None:
    with unread_stream() as stream:
        print_line("one", stream)
        print_line("two", stream)
        print("three", file=stream, flush=True)
