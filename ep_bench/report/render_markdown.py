"""report.md: the report as GitHub Markdown, for reading in a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ep_bench.plotting.page import Picture, Section, Table


def page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """Return the report as GitHub Markdown. Figures are links to files in ``figures/``."""
    lines = [f"# {plain_markdown(title)}", "", plain_markdown(summary), ""]
    lines += [line for section in sections for line in _section(section, 2)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _section(section: Section, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {plain_markdown(section.title)}", "")
    yield from _sentences(section.lines)
    for one in section.figures_and_tables():
        yield from _picture(one) if isinstance(one, Picture) else _table(one)
    yield from _sentences(section.notes)
    for part in section.parts:
        yield from _section(part, level + 1)


def _sentences(lines: Sequence[str]) -> list[str]:
    """Return a single line as a paragraph, several as a list."""
    safe = [plain_markdown(line) for line in lines]
    return [*(safe if len(safe) == 1 else (f"- {line}" for line in safe)), ""]


def _picture(picture: Picture) -> list[str]:
    return [f"![{picture.name}](figures/{picture.name}.svg)", "", plain_markdown(picture.caption), ""]


def _table(table: Table) -> list[str]:
    """Return a table with its caption; a folded one is collapsed."""
    lines = [table.markdown, ""] if table.markdown else [*_caption(table), *_grid(table), ""]
    if not table.folded:
        return lines
    return ["<details>", f"<summary>{plain_markdown(table.folded)}</summary>", "", *lines, "</details>", ""]


def _caption(table: Table) -> list[str]:
    if not table.caption:
        return []
    caption = plain_markdown(table.caption)
    return [caption if caption.endswith(".") else f"{caption}.", ""]


def _grid(table: Table) -> list[str]:
    if not table.rows:
        return []
    body = [pipes([_text(entry) for entry in row]) for row in table.rows]
    numbers = [isinstance(entry, dict) and entry["kind"] == "number" for entry in table.rows[0]]
    return [pipes(table.head), pipes(["---:" if number else "---" for number in numbers]), *body]


def _text(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    text = f"**{entry['text']}**" if entry["strong"] and entry["text"] else entry["text"]
    return f"{text} ({entry['small']})" if entry["small"] else str(text)


def pipes(words: Sequence[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(plain_markdown(word).replace("|", "\\|") for word in words) + " |"


def plain_markdown(text: str) -> str:
    """Return a text in which Markdown finds no HTML, no link and no picture; code between backticks is kept."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _without_markup(text)
    parts[::2] = map(_without_markup, parts[::2])
    return "`".join(parts)


def _without_markup(text: str) -> str:
    return re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;").replace("](", "]\\(")
