"""Tables of README and documentation from the committed results, and checks of the numbers in their sentences.

A table after the comment ``<!-- table: NAME -->`` is replaced by that of ``TABLES[NAME]``. ``FACTS`` lists parts of
sentences with numbers; each must be in its page. Each module has the tables and facts of one topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from . import command_line, deep_gps, ep_networks, findings, leaderboard, networks, verdicts
from .stored import DOCS, ROOT

MARKER = re.compile(r"(<!-- table: (?P<name>\S+) -->\n\n?)(?P<table>(?:\|.*\n)+)")
TABLES: dict[str, Callable[[], list[str]]] = {
    **verdicts.TABLES, **leaderboard.TABLES, **networks.TABLES, **ep_networks.TABLES, **deep_gps.TABLES,
    **findings.TABLES, **command_line.TABLES,
}  # fmt: skip
FACTS: list[tuple[str, Callable[[], str]]] = [
    *networks.FACTS, *ep_networks.FACTS, *deep_gps.FACTS, *findings.FACTS,
]  # fmt: skip


def pages() -> list[Path]:
    """Return README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def with_tables(text: str) -> str:
    """Return a page with all its tables as they are now."""
    return MARKER.sub(lambda found: found[1] + "".join(f"{line}\n" for line in TABLES[found["name"]]()), text)


def missing_facts() -> list[str]:
    """Return the parts of sentences that are not in their page."""
    texts = {page: " ".join((DOCS / page).read_text(encoding="utf-8").split()) for page, _ in FACTS}
    expected = [(page, fact()) for page, fact in FACTS]
    return [f"docs/{page}: expected {text!r}" for page, text in expected if text not in texts[page]]
