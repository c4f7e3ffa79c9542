"""The tables of the documentation are those of the committed results."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.site.committed_results import committed_folders
from tests.report.synthetic import make_study
from tests.report.test_budgets import ENTRIES, changed

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    sys.path.insert(0, str(DOCS / "site"))
    return importlib.import_module("page_tables")


def test_every_table_is_on_one_page(generator: ModuleType) -> None:
    names = [found["name"] for page in generator.pages() for found in generator.MARKER.finditer(page.read_text())]
    assert sorted(names) == sorted(generator.TABLES)


def test_every_claim_with_a_committed_verdict_is_on_the_page_of_its_paper() -> None:
    for folder in committed_folders():
        path = folder / "claims.csv"
        for row in csv.DictReader(path.read_text().splitlines()) if path.exists() else ():
            page = (DOCS / "papers" / f"{row['source']}.md").read_text()
            assert f" | {row['claim']} | " in page, f"{folder.name}: run `make docs-tables`"


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


def test_tables_of_the_league_need_its_results_only(generator: ModuleType, tmp_path: Path) -> None:
    league = importlib.import_module("page_tables.league")
    assert league.ranks("ll", tmp_path / "absent") == league.ABSENT
    entries = {name.replace("Forest", "CatBoost"): entry for name, entry in ENTRIES.items()}

    def renamed(row: dict[str, Any]) -> dict[str, Any]:
        return changed(row | {"method": row["method"].replace("CatBoost", "Forest")}) | {"method": row["method"]}

    lock = {"methods": entries, "ranks": [{"name": "all", "methods": ["PBP", "BP"], "pairs": [["PBP", "BP"]]}]}
    folder = make_study(tmp_path / "league", list(entries), ("boston", "yacht"), 3, change=renamed, lock=lock)
    assert league.ranks("ll", folder)[2].startswith("| PBP | 1.0 ")
    assert len(league.ranks("crps", folder)) == 2 + 3
    assert [line.split(" | ")[0] for line in league.large(folder)] == [
        "| Method",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        "| PBP",
        "| BP",
        "| CatBoost",
    ]
    assert league.orders(folder)[2].startswith("| PBP above BP | log-likelihood | ")
    first, second = league.within(folder)[2:4]
    assert first == "| 1 s | log-likelihood | PBP | BP | – | – |"
    assert second.startswith("| 1 s | CRPS | PBP | BP | CatBoost | +0.")
