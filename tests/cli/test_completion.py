"""Shell completion, which click provides: the scripts of the documentation in a real shell, and their answers."""

from __future__ import annotations

import pytest
from click.shell_completion import get_completion_class

from ep_bench.cli import cli


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_commands_and_options_are_completed(shell: str) -> None:
    found = get_completion_class(shell)
    assert found is not None
    completion = found(cli, {}, "ep-bench", "_EP_BENCH_COMPLETE")
    assert {item.value for item in completion.get_completions([], "re")} == {"report"}
    assert "--retry-failed" in {item.value for item in completion.get_completions(["run"], "--")}
    assert "_EP_BENCH_COMPLETE" in found.source_template % completion.source_vars()
