"""Cell files: one file ``cells/<hash>.json`` per finished cell, with its trace, its provenance and a checksum."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

from ep_bench.errors import visible
from ep_bench.regular_files import parse_json, read_text
from ep_bench.results.files import FORMAT, canonical, refuse_newer, write_atomically
from ep_bench.results.forms import CellRecord, problem
from ep_bench.types import COLUMNS, STATUSES, TEXT_COLUMNS, Record

CELLS = "cells"
_DRAFT = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp")  # as ``write_atomically`` names its temporary files
_FIELDS = {each.name for each in fields(Record)}


def write_record(folder: Path, record: Record) -> None:
    """Store a finished cell in the study's folder, atomically."""
    body = canonical(asdict(record))
    checksum = hashlib.sha256(body.encode()).hexdigest()
    write_atomically(
        folder / CELLS / f"{record.key}.json", f'{{"format": {FORMAT}, "sha256": "{checksum}", "record": {body}}}\n'
    )


def read_record(path: Path) -> Record | None:
    """Return the record in a cell file, or None if the file is missing or damaged.

    Raises UserError if a newer version of the program wrote it.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError):
        return None
    try:
        envelope = parse_json(text)
        body = text[text.index('"record": ') + len('"record": ') : text.rindex("}")]
        content = envelope["record"]
    except (ValueError, KeyError, TypeError):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != envelope.get("sha256"):
        return None
    refuse_newer(envelope.get("format"), path)
    if problem(content, CellRecord) or content.keys() - _FIELDS:
        return None
    record = Record(**content)
    record.row |= {name: visible(value) for name, value in record.row.items() if isinstance(value, str)}
    return record if record.key == path.stem and _is_complete(record) else None


def _is_complete(record: Record) -> bool:
    """Return whether the row of a record has a known status, its labels and possible values."""
    columns = record.row.keys() & (set(COLUMNS) - TEXT_COLUMNS)
    numbers = all(isinstance(record.row[name], int | float) for name in columns)
    return record.row["status"] in STATUSES and numbers


def each_record(folder: Path, damaged: list[Path]) -> Iterator[Record]:
    """Yield every intact record of a study's folder; damaged files are added to a list."""
    for path in sorted((folder / CELLS).glob("*.json")):
        record = read_record(path)
        if record is not None:
            yield record
        elif path.exists():
            damaged.append(path)


def set_aside(damaged: Iterable[Path]) -> None:
    """Rename damaged cell files to ``<hash>.json.damaged``, so that they are reported once."""
    for path in damaged:
        if read_record(path) is None:  # another run may have replaced it
            with contextlib.suppress(OSError):
                path.rename(path.with_name(f"{path.name}.damaged"))


def stamps(folder: Path) -> dict[str, int]:
    """Return the modification time of each cell file in nanoseconds, by hash."""
    found: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder / CELLS) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                with contextlib.suppress(FileNotFoundError):
                    found[entry.name.removesuffix(".json")] = entry.stat().st_mtime_ns
    return found


def record_since(folder: Path, key: str, stamp: int | None) -> Record | None:
    """Return the record of a cell if its file has changed since ``stamp``, else None."""
    path = folder / CELLS / f"{key}.json"
    try:
        same = path.stat().st_mtime_ns == stamp
    except FileNotFoundError:
        return None
    return None if same else read_record(path)


def remove_drafts(folder: Path, age: float = 600.0) -> None:
    """Remove temporary files of writers that were killed, if older than ``age`` seconds."""
    drafts = [*folder.glob(".*.tmp"), *(folder / CELLS).glob(".*.tmp")]
    for draft in (path for path in drafts if _DRAFT.fullmatch(path.name)):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > age:
                draft.unlink()
