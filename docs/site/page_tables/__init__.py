"""The tables of README and documentation, from the committed results.

A table after the comment ``<!-- table: NAME -->`` is replaced by that of ``TABLES[NAME]``. Sentences are written by
people. Each module has the tables of one topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from . import (
    breadth,
    choices,
    costs,
    findings,
    jylanki,
    leaderboard,
    league,
    method_scores,
    posteriors,
    settings,
    shifts,
    verdicts,
)
from .stored import DOCS, ROOT

MARKER = re.compile(r"(<!-- table: (?P<name>\S+) -->\n)\n*(?:\|.*\n)*\n*")
TOPICS = (
    breadth,
    choices,
    costs,
    findings,
    jylanki,
    leaderboard,
    league,
    method_scores,
    posteriors,
    settings,
    shifts,
    verdicts,
)
TABLES: dict[str, Callable[[], list[str]]] = {name: make for topic in TOPICS for name, make in topic.TABLES.items()}


def pages() -> list[Path]:
    """Return README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def with_tables(text: str) -> str:
    """Return a page with all its tables as they are now, between blank lines."""
    return MARKER.sub(lambda found: found[1] + _spaced(TABLES[found["name"]]()), text).rstrip("\n") + "\n"


def _spaced(lines: list[str]) -> str:
    """Return a table between blank lines, and one blank line for an empty table."""
    return "\n" + "".join(f"{line}\n" for line in lines) + "\n" * bool(lines)
