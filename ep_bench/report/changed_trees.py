"""Notes in tables: which methods were computed with uncommitted changes of the source code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ep_bench.plotting.page import Section, Table

_WHOLE = r"(?<![\w-]){}(?![\w-])"  # a label that is not a part of a longer word


def note_changed_trees(section: Section, changed: Mapping[str, Sequence[str]]) -> Section:
    """Return a section whose tables name the methods that were computed with uncommitted changes of the source code."""
    return replace(
        section,
        tables=[_note_in_table(table, changed) for table in section.tables],
        parts=[note_changed_trees(part, changed) for part in section.parts],
        files={name: _note_in_file(name, text, changed) for name, text in section.files.items()},
    )


def note_changed_experiment(section: Section, revision: str) -> Section:
    """Return the section of an experiment; its tables name a revision with uncommitted changes."""
    if not revision.endswith("+changes"):
        return section
    note = f"Computed with uncommitted changes of the source code: {revision}."
    return replace(section, tables=[_with_note(table, note) for table in section.tables])


def _note_in_table(table: Table, changed: Mapping[str, Sequence[str]]) -> Table:
    entries = [entry for row in (table.head, *table.rows) for entry in row]
    shown = {str(text) for entry in entries for text in _texts(entry)}
    note = _note({method: found for method, found in changed.items() if method in shown})
    return _with_note(table, note) if note else table


def _texts(entry: Any) -> list[Any]:
    """Return the text of an entry and the value that it is sorted by: a name without its mark of convergence."""
    return [entry["text"], entry["value"]] if isinstance(entry, dict) else [entry]


def _with_note(table: Table, note: str) -> Table:
    markdown = f"{table.markdown.rstrip()}\n\n{note}\n" if table.markdown else ""
    return replace(table, caption=f"{table.caption.rstrip('.')}. {note}".lstrip(". "), markdown=markdown)


def _note_in_file(name: str, text: str, changed: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a table in a file; Markdown and LaTeX get the note, CSV has no place for it."""
    note = _note({m: found for m, found in changed.items() if re.search(_WHOLE.format(re.escape(m)), text)})
    if not note or name.endswith(".csv"):
        return text
    return f"{text.rstrip()}\n\n{note}\n" if name.endswith(".md") else f"% {note}\n{text}"


def _note(changed: Mapping[str, Sequence[str]]) -> str:
    methods = [f"{method} ({', '.join(revisions)})" for method, revisions in changed.items()]
    return f"Computed with uncommitted changes of the source code: {', '.join(methods)}." if methods else ""
