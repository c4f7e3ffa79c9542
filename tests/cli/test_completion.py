"""Shell completion, which click provides: the scripts of the documentation in a real shell, and their answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from ep_bench.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
BASH = """
COMP_WORDS=(ep-bench {words}); COMP_CWORD={place}; _ep_bench_completion ep-bench
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_commands_and_options_are_completed(shell: str) -> None:
    found = get_completion_class(shell)
    assert found is not None
    completion = found(cli, {}, "ep-bench", "_EP_BENCH_COMPLETE")
    assert {item.value for item in completion.get_completions([], "re")} == {"report"}
    assert "--retry-failed" in {item.value for item in completion.get_completions(["run"], "--")}
    assert "_EP_BENCH_COMPLETE" in found.source_template % completion.source_vars()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected"), [("re", "report"), ("run --ret", "--retry-failed")])
def test_the_documented_line_works_in_bash(words: str, expected: str, tmp_path: Path) -> None:
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if "bash_source" in line)
    lines = line.removeprefix("$ ") + BASH.format(words=words, place=len(words.split()))
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", lines], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert expected in done.stdout.split(), done.stderr
