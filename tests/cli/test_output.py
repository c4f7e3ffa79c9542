"""Tables and paragraphs at any width of the terminal."""

from __future__ import annotations

import pytest

from ep_bench import data, methods
from ep_bench.cli.commands import methods as output
from ep_bench.cli.commands.data import dataset_table
from ep_bench.cli.output.conformance import outcome_items
from ep_bench.cli.output.text import Columns, indented
from ep_bench.conformance.checks import CheckOutcome, Finding
from ep_bench.estimator import COMMON_OPTIONS
from ep_bench.options import table
from tests.commands import lines_of


@pytest.mark.parametrize("name", methods.REGISTRY)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_allowed_values_are_aligned_next_to_the_defaults(
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = lines_of(output.method_items(name))
    assert max(map(len, lines)) <= columns
    start = lines.index("")
    shown = lines[start + 1 : lines.index("", start + 1)]
    options = table(methods.get(name).config)
    heads = [line for line in shown if not line.startswith(" ")]
    assert [line.split(":")[0] for line in heads] == [*(o.name for o in options), *COMMON_OPTIONS]
    places = {
        line.index(o.takes.split()[0], len(f"{o.name}: {o.default}"))
        for o, line in zip(options, heads[: len(options)], strict=True)
    }
    assert len(places) == 1
    text = " ".join(" ".join(shown).split())
    assert all(" ".join(o.description.split()) in text for o in options)


def test_choices_and_bounds_are_shown() -> None:
    shown = "\n".join(" ".join(line.split()) for line in lines_of(output.method_items("laplace")))
    assert "hessian: full diag, full, kron or last\n" in shown
    assert "predictive: linearized linearized or sampled\n" in shown
    assert "noise_variance: null a positive number or null\n" in shown


def test_findings_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = CheckOutcome.of("fits", (Finding("found " * 30, "expected " * 30, "remedy " * 30),))
    monkeypatch.setenv("COLUMNS", "80")
    assert 70 < max(map(len, lines_of(outcome_items(outcome)))) <= 80


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


@pytest.mark.parametrize("columns", [20, 40])
def test_text_wraps_at_words_and_below_its_indent(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = "one long sentence of several words, which is wrapped"
    lines = lines_of([indented(words)])
    assert max(map(len, lines)) <= columns
    assert all(line.startswith("    ") for line in lines)
    assert " ".join(line.strip() for line in lines) == words
