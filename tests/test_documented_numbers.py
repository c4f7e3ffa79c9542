"""The tables of the documentation, and the numbers of its sentences, are those of the committed results."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    sys.path.insert(0, str(DOCS / "site"))
    return importlib.import_module("documented_numbers")


def test_every_table_is_on_one_page(generator: ModuleType) -> None:
    names = [found["name"] for page in generator.pages() for found in generator.MARKER.finditer(page.read_text())]
    assert sorted(names) == sorted(generator.TABLES)


@pytest.mark.exhaustive
def test_the_tables_are_those_of_the_results(generator: ModuleType) -> None:
    for page in generator.pages():
        text = page.read_text()
        assert generator.with_tables(text) == text, f"{page}: run `make docs-tables`"


def test_the_numbers_of_sentences_are_those_of_the_results(generator: ModuleType) -> None:
    assert generator.wrong_numbers() == []


def test_a_planted_number_is_found(generator: ModuleType) -> None:
    text = (DOCS / "networks.md").read_text()
    planted = text.replace("| PBP-1 | 2", "| PBP-1 | 3", 1)
    assert planted != text
    assert generator.with_tables(planted) == text


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("The mean is 2.91 here.", ["2.91"]),
        ("It is -0.42 on 11 of 40 splits.", ["-0.42", "11 of 40"]),
        ("The mean is 2.91 here, checked.", []),
        ("Level 0.05, version `1.2`, [a page](a-1.5.md).", []),
        ("<!-- table: x -->\n\n| 1.5 |\n|---|\n| 2.5 |\n", []),
        ("```\n1.5\n```\n", []),
    ],
)
def test_a_number_without_a_fact_is_found(generator: ModuleType, sentence: str, numbers: list[str]) -> None:
    assert generator.unchecked("page.md", sentence, ["is 2.91 here, checked"]) == numbers


def test_a_planted_count_of_results_is_found(generator: ModuleType) -> None:
    unchecked = importlib.import_module("documented_numbers.prose").unchecked
    assert unchecked("networks.md", "VI wins on six data sets of `nine sets`.", []) == ["six data sets"]
    assert unchecked("networks.md", "VI wins on six data sets.", ["on six data sets"]) == []
    assert unchecked("scores.md", "A definition with six data sets.", []) == []
