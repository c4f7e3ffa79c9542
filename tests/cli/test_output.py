"""Output of `methods show` at any width."""

from __future__ import annotations

import pytest

from ep_bench import data, methods
from ep_bench.cli.commands import methods as output
from ep_bench.cli.commands.data import dataset_lines
from ep_bench.conformance.checks import CheckOutcome, Finding
from ep_bench.conformance.output import outcome_lines
from ep_bench.estimator import COMMON_OPTIONS
from ep_bench.options import table


@pytest.mark.parametrize("name", methods.REGISTRY)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_allowed_values_are_aligned_next_to_the_defaults(
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = output.method_lines(name)
    start = lines.index("")
    shown = lines[start + 1 : lines.index("", start + 1)]
    assert max(map(len, shown)) <= columns
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
    shown = "\n".join(" ".join(line.split()) for line in output.method_lines("laplace"))
    assert "hessian: full diag, full, kron or last\n" in shown
    assert "predictive: linearized linearized or sampled\n" in shown
    assert "noise_variance: null a positive number or null\n" in shown


def test_findings_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = CheckOutcome.of("fits", (Finding("found " * 30, "expected " * 30, "remedy " * 30),))
    monkeypatch.setenv("COLUMNS", "80")
    assert 70 < max(map(len, outcome_lines(outcome))) <= 80


def test_a_narrow_list_of_data_sets_has_no_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [data.card(name) for name in data.names()]
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, dataset_lines(cards))) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    assert any("Boston" in line for line in dataset_lines(cards))
