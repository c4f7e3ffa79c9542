"""The tables of the documentation are those of the committed results."""

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
    return importlib.import_module("page_tables")


def test_every_table_is_on_one_page(generator: ModuleType) -> None:
    names = [found["name"] for page in generator.pages() for found in generator.MARKER.finditer(page.read_text())]
    assert sorted(names) == sorted(generator.TABLES)


@pytest.mark.exhaustive
def test_the_tables_are_those_of_the_results(generator: ModuleType) -> None:
    for page in generator.pages():
        text = page.read_text()
        assert generator.with_tables(text) == text, f"{page}: run `make docs-tables`"


def test_a_planted_number_is_found(generator: ModuleType) -> None:
    text = (DOCS / "methods" / "pbp.md").read_text()
    planted = text.replace("| boston | 455 | -2", "| boston | 455 | -3", 1)
    assert planted != text
    assert generator.with_tables(planted) == text
