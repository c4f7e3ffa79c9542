"""CSV files, and texts in them that a spreadsheet program would run as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = tuple("=+-@")
_MARKED = (*_FORMULA, "'")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; the fields of absent columns are empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def harmless(value: Any) -> Any:
    """Return a value for a field of a CSV file; an apostrophe precedes a text that could be a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_MARKED) and not _is_number(value) else value


def original(text: str) -> str:
    """Return the text of which ``harmless`` made a field."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_MARKED) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
