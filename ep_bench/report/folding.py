"""Which sections of a page are folded, and the one-line summaries of folded sections.

A section is folded if it is long, or if the sections above it already fill the page. Heights are rough estimates for
a window 1,400 pixels wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ep_bench.plotting.page import Picture, Section, Table

PAGE, SECTION = 4000, 1100  # largest heights of a page before unfolding and of an open section, in pixels
FOLDED, LEADERBOARD = 108.0, 1900.0  # heights of a folded section, and of the leaderboard with its chart, in pixels
WIDTH = 1050  # pixels of a figure at most


def folded_sections(sections: Sequence[Section]) -> dict[str, str]:
    """Return the summaries of the sections to fold, by the id of the section; the first one is never folded."""
    found: dict[str, str] = {}
    used = sum(LEADERBOARD if section.id == "leaderboard" else FOLDED for section in sections)
    for section in sections[1:]:
        more = _height(section) - FOLDED
        if more <= SECTION and used + more <= PAGE:
            used += max(more, 0.0)
        else:
            found[section.id] = section.summary or summary(section)
    return found


def summary(section: Section) -> str:
    """Return the content of a section in one line: titles of its parts, numbers of figures and tables."""
    parts = list(section.with_parts())
    counts = {
        "figure": sum(len(part.pictures) for part in parts),
        "table": sum(len(part.tables) for part in parts),
        "note": sum(len(part.lines) for part in parts),
    }
    if counts["figure"] + counts["table"]:
        del counts["note"]
    words = [f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items() if count]
    titles = [part.title for part in section.parts]
    names = f": {', '.join(titles)}" if 0 < len(titles) <= 6 else ""
    return " and ".join(words) + names


def _height(section: Section) -> float:
    heights = [90.0, 24.0 * _lines([*section.lines, *section.notes])]
    heights += [_figure(picture) for picture in section.pictures]
    heights += [_table(table) for table in section.tables]
    return sum(heights) + sum(_height(part) for part in section.parts)


def _figure(picture: Picture) -> float:
    width, height = picture.size
    return height * min(1.0, WIDTH / max(width, 1.0)) + 80.0


def _table(table: Table) -> float:
    return 30.0 if table.folded else min(110.0 + 36.0 * len(table.rows), 700.0)


def _lines(texts: Iterable[str]) -> int:
    return sum(math.ceil(len(text) / 150) for text in texts)
