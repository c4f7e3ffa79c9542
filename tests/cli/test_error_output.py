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


def test_without_a_file_or_the_word_in_it_there_is_no_line(tmp_path):
    error = UserError("unknown method", found="pbpp", name="pbpp", allowed=["pbp"])
    assert error_lines(error) == ["ep-bench: unknown method; found 'pbpp'; did you mean 'pbp'?", "  allowed: pbp"]
    assert error_lines(UserError("is missing", where=f"{tmp_path}/no.yaml:3")) == [
        f"ep-bench: {tmp_path}/no.yaml:3: is missing"
    ]


def test_several_errors_follow_one_another():
    causes = [UserError("first", found=1), UserError("second", allowed="a number")]
    error = UserError("\n".join([*map(str, causes), "... and 2 more"]))
    error.causes = tuple(causes)
    assert error_lines(error) == [
        "ep-bench: first; found 1", "ep-bench: second", "  allowed: a number", "... and 2 more",
    ]  # fmt: skip
