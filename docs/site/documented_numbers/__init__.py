"""Tables of README and documentation from the committed results, and checks of the numbers in their sentences.

A table after the comment ``<!-- table: NAME -->`` is replaced by that of ``TABLES[NAME]``. ``FACTS`` lists parts of
sentences with numbers; each must be in its page. Every other decimal number, and every
other count of results such as "nine data sets", must be a setting (``prose.py``).
Each module has the tables and facts of one topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from . import (
    active_learning,
    benchmarks,
    classes,
    command_line,
    costs,
    counts,
    deep_gps,
    ep_networks,
    facts,
    findings,
    gaps,
    improvements,
    later_papers,
    leaderboard,
    molecules,
    network_variants,
    networks,
    paper_figures,
    rankings,
    seeds,
    single_fits,
    sparse_processes,
    verdicts,
)  # fmt: skip
from .prose import unchecked
from .stored import DOCS, ROOT

MARKER = re.compile(r"(<!-- table: (?P<name>\S+) -->\n\n?)(?P<table>(?:\|.*\n)+)")
TOPICS = (
    verdicts, paper_figures, leaderboard, networks, network_variants, ep_networks, deep_gps, findings, command_line,
    molecules, rankings, gaps, later_papers, active_learning, seeds, classes,
    single_fits, costs, improvements, sparse_processes, benchmarks,
)  # fmt: skip
TABLES: dict[str, Callable[[], list[str]]] = {name: make for topic in TOPICS for name, make in topic.TABLES.items()}
WITH_FACTS = (
    benchmarks,
    paper_figures,
    leaderboard,
    networks,
    network_variants,
    ep_networks,
    deep_gps,
    findings,
    facts,
    counts,
    verdicts,
    seeds,
    gaps,
    later_papers,
    single_fits,
    improvements,
    sparse_processes,
)
FACTS: list[tuple[str, Callable[[], str]]] = [fact for topic in WITH_FACTS for fact in topic.FACTS]


def pages() -> list[Path]:
    """Return README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def with_tables(text: str) -> str:
    """Return a page with all its tables as they are now."""
    return MARKER.sub(lambda found: found[1] + "".join(f"{line}\n" for line in TABLES[found["name"]]()), text)


def wrong_numbers() -> list[str]:
    """Return the facts that are not in their page, and the numbers in sentences that no fact checks."""
    expected: dict[Path, list[str]] = {page: [] for page in pages()}
    for page, fact in FACTS:
        expected[(DOCS / page).resolve()].append(fact())
    return [problem for page, found in expected.items() for problem in _wrong_numbers(page, found)]


def _wrong_numbers(page: Path, expected: list[str]) -> list[str]:
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    joined = " ".join(text.split())
    missing = [f"{name}: expected {fact!r}" for fact in expected if fact not in joined]
    return missing + [
        f"{name}: no fact checks {number!r}; add one in docs/site/documented_numbers, or remove the number"
        for number in unchecked(name.removeprefix("docs/"), text, expected)
    ]
