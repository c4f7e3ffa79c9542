"""Shell completion, which click provides: the scripts of the documentation in real shells, and their answers."""

from __future__ import annotations

import os
import shutil
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
# Outside an editor of command lines, zsh has no completions; this function prints them.
ZSH = """
words=(ep-bench {words}); CURRENT={place}+1
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
_ep_bench_completion
"""


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_commands_and_options_are_completed(shell: str) -> None:
    found = get_completion_class(shell)
    assert found is not None
    completion = found(cli, {}, "ep-bench", "_EP_BENCH_COMPLETE")
    assert {item.value for item in completion.get_completions([], "re")} == {"report"}
    assert "--retry-failed" in {item.value for item in completion.get_completions(["run"], "--")}
    assert "_EP_BENCH_COMPLETE" in found.source_template % completion.source_vars()


def documented(shell: str) -> str:
    """Return the lines of the page that start completion."""
    page = PAGE.read_text(encoding="utf-8")
    marks = {"bash": ("bash_source",), "zsh": ("-Uz compinit", "zsh_source")}[shell]
    lines = [line for line in page.splitlines() if line.startswith("$ ") and any(mark in line for mark in marks)]
    return "\n".join(line.removeprefix("$ ") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected"), [("re", "report"), ("run --ret", "--retry-failed")])
@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("zsh", ZSH)])
def test_the_documented_lines_work_in_a_shell(
    shell: str, script: str, words: str, expected: str, tmp_path: Path
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    lines = documented(shell) + script.format(words=words, place=len(words.split()))
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run([program, "-c", lines], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert expected in done.stdout.split(), done.stderr
