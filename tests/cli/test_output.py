"""Tables and paragraphs at any width of the terminal."""

from __future__ import annotations

import pytest

from ep_bench import data
from ep_bench.cli.commands import methods as output
from ep_bench.cli.commands.data import dataset_table
from ep_bench.cli.output.text import Columns
from tests.commands import lines_of


def test_choices_and_bounds_are_shown() -> None:
    shown = "\n".join(" ".join(line.split()) for line in lines_of(output.method_items("laplace")))
    assert "hessian: full diag, full, kron or last\n" in shown
    assert "predictive: linearized linearized or sampled\n" in shown
    assert "noise_variance: null a positive number or null\n" in shown


def test_columns_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [data.card(name) for name in data.names()]
    monkeypatch.setenv("COLUMNS", "80")
    lines = lines_of([dataset_table(cards)])
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "not shown in 80 columns: title"
    monkeypatch.setenv("COLUMNS", "200")
    assert any("Boston" in line for line in lines_of([dataset_table(cards)]))


def test_verdicts_have_a_colour_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Columns([("verdict", "z"), ("worse", "3.1"), ("reproduced", "0.1")], below=["a reason of one line"])
    assert lines_of([rows]) == ["verdict       z", "worse       3.1", "    a reason of one line", "reproduced  0.1"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31mworse" in "".join(lines_of([rows]))
