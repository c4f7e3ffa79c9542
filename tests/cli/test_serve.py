"""`serve`: the reports below a folder at a local address."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from ep_bench.cli import cli
from ep_bench.errors import UserError


def test_reports_are_served_until_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "my study" / "report").mkdir(parents=True)
    (tmp_path / "my study" / "report" / "report.html").write_text("<h1>Scores</h1>")
    command = [sys.executable, "-u", "-m", "ep_bench", "serve", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        address = process.stdout.readline().strip()
        assert address.endswith("/my%20study/report/report.html")
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310
            assert answer.read() == b"<h1>Scores</h1>"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "Press Ctrl-C to stop.\nstopped\n"
        assert process.wait() == 0


def test_a_folder_without_a_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no report below this folder; write one with `ep-bench report`"):
        CliRunner().invoke(cli, ["serve", str(tmp_path)], catch_exceptions=False)
