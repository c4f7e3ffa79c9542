"""Cell files: one file ``cells/<hash>.json`` per finished cell, with its trace, its provenance and a checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ep_bench.results.files import FORMAT, canonical, refuse_newer, write_atomically
from ep_bench.types import Record

CELLS = "cells"
_DRAFT = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp")  # as ``write_atomically`` names its temporary files


def write_record(folder: Path, record: Record) -> None:
    """Store a finished cell in the study's folder, atomically."""
    body = canonical(vars(record))
    checksum = hashlib.sha256(body.encode()).hexdigest()
    write_atomically(
        folder / CELLS / f"{record.key}.json", f'{{"format": {FORMAT}, "sha256": "{checksum}", "record": {body}}}\n'
    )


def read_record(path: Path) -> Record | None:
    """Return the record in a cell file, or None if the file is missing or damaged.

    Raises UserError if a newer version of the program wrote it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        envelope = json.loads(text)
        body = text[text.index('"record": ') + len('"record": ') : text.rindex("}")]
        intact = envelope["sha256"] == hashlib.sha256(body.encode()).hexdigest()
        version, content = envelope["format"], envelope["record"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not intact:
        return None
    refuse_newer(version, path)
    try:
        record = Record(**content)
    except TypeError:  # it has other fields
        return None
    return record if record.key == path.stem else None


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
