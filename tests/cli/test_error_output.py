"""Errors of the user on the terminal."""

from __future__ import annotations

from ep_bench.cli.output.text import error_items
from ep_bench.errors import UserError
from tests.commands import lines_of


def error_lines(error):
    """Return the lines of an error message."""
    return lines_of(error_items(error))


def test_the_suggestion_comes_before_the_list_and_a_caret_below_the_word(tmp_path):
    study = tmp_path / "s.yaml"
    study.write_text("study: s\ndatasets: [boston, energi]\n", encoding="utf-8")
    error = UserError("unknown data set", where=f"{study}:2", field="datasets[1]", found="energi", name="energi",
                      allowed=["boston", "energy"])  # fmt: skip
    assert error_lines(error) == [
        f"ep-bench: {study}:2: datasets[1]: unknown data set; found 'energi'; did you mean 'energy'?",
        "  2 | datasets: [boston, energi]",
        "    |                    ^^^^^^",
        "  allowed: boston, energy",
    ]
