"""The files of a study: cell files, ``results.csv`` and ``study.lock.json``. Every file is written atomically.

The folder of a study has one file ``cells/<hash>.json`` per finished cell, with its trace and provenance, which is not
committed. ``results.csv`` has one row per cell. ``study.lock.json`` is the plan with the factors behind each hash.
These two are sufficient to resume in a fresh clone; ``curves`` adds the data of figures. A cell file contains a
checksum of its content, so that a damaged file is detected. ``superseded.csv`` keeps rows that a changed study has
replaced.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import itertools
import json
import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError
from ep_bench.types import COLUMNS, COUNT_COLUMNS, STATUSES, TEXT_COLUMNS, Record

FORMAT = 1
RESULTS, LOCK, CELLS, SUPERSEDED = "results.csv", "study.lock.json", "cells", "superseded.csv"

Row = dict[str, Any]


def factor_hash(factors: Mapping[str, Any]) -> str:
    """Return the hash of a cell with these factors, 16 hexadecimal digits."""
    return hashlib.sha256(_canonical(factors).encode()).hexdigest()[:16]


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` such that readers see either the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):  # add the file name, which a failed write does not report
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_if_changed(path: Path, text: str) -> None:
    """Write ``text`` atomically, unless the file already has this content."""
    try:
        same = path.read_bytes() == text.encode()
    except OSError:
        same = False
    if not same:
        write_atomically(path, text)


# Cell files


def write_record(folder: Path, record: Record) -> None:
    """Store a finished cell in the study's folder, atomically."""
    body = _canonical(asdict(record))
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
    except (OSError, UnicodeDecodeError):
        return None
    try:
        envelope = json.loads(text)
        body = text[text.index('"record": ') + len('"record": ') : text.rindex("}")]
        fields = envelope["record"]
    except (ValueError, KeyError, TypeError):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != envelope.get("sha256"):
        return None
    refuse_newer(envelope.get("format"), path)
    record = Record(**fields)
    return record if record.key == path.stem else None


def read_records(folder: Path) -> dict[str, Record]:
    """Return every intact record of a study's folder by its hash; damaged files are omitted."""
    return {record.key: record for record in _each_record(folder, [])}


def _each_record(folder: Path, damaged: list[Path]) -> Iterator[Record]:
    for path in sorted((folder / CELLS).glob("*.json")):
        record = read_record(path)
        if record is not None:
            yield record
        elif path.exists():
            damaged.append(path)


def stamps(folder: Path) -> dict[str, int]:
    """Return the modification time of each cell file in nanoseconds, by hash."""
    found: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError), os.scandir(folder / CELLS) as entries:
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


# The table of results


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV with the documented columns, sorted by method, data set and split.

    The file is not touched if it already has this content.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in sorted(rows, key=_order):
        writer.writerow({key: _text(value) for key, value in row.items()})
    write_if_changed(path, out.getvalue())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a ``results.csv`` with numbers parsed; empty values are omitted.

    Raises UserError for a wrong header, a missing field, or text in a column of numbers.
    """
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = sorted(set(COLUMNS[:17]) - set(reader.fieldnames or ()))
            if missing:
                raise UserError(
                    f"not a results file of ep-bench: missing columns {', '.join(missing)}", where=str(path)
                )
            return [_parse(row, path, reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error


def _parse(row: Mapping[str, str | None], path: Path, line: int) -> Row:
    parsed: Row = {}
    for key, text in row.items():
        if key not in COLUMNS or text in {None, ""}:
            continue
        try:
            parsed[key] = text if key in TEXT_COLUMNS else int(text) if key in COUNT_COLUMNS else float(text)
        except ValueError:
            raise UserError("not a number", where=f"{path}:{line}", field=key, found=text) from None
    if not {"method", "dataset", "split", "cell", "status"} <= parsed.keys():
        raise UserError("incomplete row: method, dataset, split, status and cell are required", where=f"{path}:{line}")
    if parsed["status"] not in STATUSES:
        raise UserError("unknown status", where=f"{path}:{line}", found=parsed["status"], allowed=STATUSES)
    return parsed


def _order(row: Row) -> tuple[str, str, str, int, str]:
    return (row.get("study", ""), row["method"], row["dataset"], row["split"], row["cell"])


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(float(value))
    return " ".join(str(value).encode("utf-8", "backslashreplace").decode("utf-8").split())


# The plan behind the results


def write_lock(folder: Path, lock: Mapping[str, Any]) -> None:
    """Write ``study.lock.json`` in a form that version control can compare, unless it already has this content."""
    write_if_changed(folder / LOCK, json.dumps({"format": FORMAT, **lock}, indent=1, sort_keys=True) + "\n")


def read_lock(folder: Path) -> dict[str, Any] | None:
    """Return ``study.lock.json``, or None if there is no file. Raises UserError if it cannot be read."""
    path = folder / LOCK
    if not path.exists():
        return None
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(lock, dict):
        raise UserError("not the lock file of a study", where=str(path))
    refuse_newer(lock.get("format"), path)
    return lock


def lock_cells(lock: Mapping[str, Any], part: str = "groups") -> list[dict[str, Any]]:
    """Return the planned cells of a lock file, each as {cell, method, dataset, split, factors}.

    Two cells have the same hash if one configuration has two labels. ``part`` is ``groups`` for the plan, or
    ``superseded`` for replaced cells whose replacements are not finished yet.
    """
    try:
        return [
            {
                "cell": key,
                "method": group["method"],
                "dataset": group["dataset"],
                "split": int(split),
                "factors": {**group["factors"], "split": int(split)},
            }
            for group in lock.get(part, ())
            for split, key in group["cells"].items()
        ]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise UserError(f"the plan cannot be read: {type(error).__name__}: {error}", where=LOCK) from error


# A study's folder as a whole


@dataclass
class StudyResults:
    """The results of a study: the plan, its rows, and the folder of the records."""

    folder: Path
    name: str
    lock: dict[str, Any]
    rows: list[Row]
    damaged: list[Path] = field(default_factory=list)  # cell files that are ignored

    def records(self) -> dict[str, Record]:
        """Return the records of the cell files (traces, tracebacks) by hash; a fresh clone has none."""
        return read_records(self.folder)


def known_rows(folder: Path, damaged: list[Path] | None = None) -> dict[str, Row]:
    """Return every finished row by its hash, from superseded.csv, results.csv and the cell files.

    Later sources have priority, but a row with status ``ok`` is never replaced by a failed one. A cell that failed here
    may have been run on another machine. Damaged cell files are ignored and appended to ``damaged``.
    """
    damaged = [] if damaged is None else damaged
    rows: dict[str, Row] = {}
    tables = [row for name in (SUPERSEDED, RESULTS) for row in read_rows(folder / name)]
    for row in itertools.chain(tables, (record.row for record in _each_record(folder, damaged))):
        before = rows.get(row["cell"])
        if before is None or row["status"] == "ok" or before["status"] != "ok":
            rows[row["cell"]] = row
    return rows


def current_rows(folder: Path, lock: Mapping[str, Any], known: Mapping[str, Row]) -> list[Row]:
    """Return the finished rows of a plan with its labels, sorted; without a plan the rows of results.csv."""
    if not lock:
        return read_rows(folder / RESULTS)
    rows = [
        known[cell["cell"]] | {"study": lock["study"], **{key: cell[key] for key in ("method", "dataset", "split")}}
        for cell in lock_cells(lock)
        if cell["cell"] in known
    ]
    return sorted(rows, key=_order)


def export(folder: Path, known: Mapping[str, Row] | None = None) -> list[Row]:
    """Update ``results.csv`` from the cell files and the plan; rows outside the plan go to ``superseded.csv``.

    ``known`` are the finished rows by hash. They are read if omitted, which takes seconds for large studies.
    """
    lock = read_lock(folder) or {}
    known = known_rows(folder) if known is None else known
    rows = current_rows(folder, lock, known)
    _write_results(folder, lock, known, rows)
    return rows


def _write_results(folder: Path, lock: Mapping[str, Any], known: Mapping[str, Row], rows: Sequence[Row]) -> None:
    if not lock.get("groups"):
        return
    planned = {cell["cell"] for cell in lock_cells(lock)}
    superseded = [row for key, row in known.items() if key not in planned]
    if superseded or (folder / SUPERSEDED).exists():
        write_rows(folder / SUPERSEDED, superseded)
    write_rows(folder / RESULTS, rows)


def damage_warning(damaged: Sequence[Path]) -> str:
    """Return a warning about damaged cell files, empty if there are none."""
    if not damaged:
        return ""
    names = ", ".join(str(path) for path in damaged[:3]) + (", ..." if len(damaged) > 3 else "")
    count = f"{len(damaged)} cell files are" if len(damaged) > 1 else "1 cell file is"
    return f"warning: {count} damaged and ignored: {names}; cells without another row are run again"


def remove_drafts(folder: Path, age: float = 600.0) -> None:
    """Remove temporary files of writers that were killed, if older than ``age`` seconds."""
    for draft in (folder / CELLS).glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > age:
                draft.unlink()


def read_study(folder: Path, *, update: bool = False) -> StudyResults:
    """Return the results in a folder; with ``update``, also write ``results.csv`` if the folder is writable.

    Raises UserError if the folder has no results.
    """
    if not folder.is_dir():
        raise UserError("no such folder", where=str(folder))
    lock = read_lock(folder)
    if lock is None and not (folder / RESULTS).exists():
        raise UserError(f"no results found: neither {LOCK} nor {RESULTS} exists", where=str(folder))
    damaged: list[Path] = []
    lock, known = lock or {}, known_rows(folder, damaged)
    rows = current_rows(folder, lock, known)
    if update:
        with contextlib.suppress(OSError):  # a read-only folder can still be read
            _write_results(folder, lock, known, rows)
    return StudyResults(folder, lock.get("study", folder.name), lock, rows, damaged)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def unreadable(path: Path, error: Exception) -> UserError:
    """Return the error for an unreadable file that is derived from cell files."""
    return UserError(
        f"cannot be read ({type(error).__name__}: {error}); restore it from version control, or delete it and the next "
        "run or report writes it from the cell files of this machine",
        where=str(path),
    )


def refuse_newer(version: Any, path: Path, known: int = FORMAT) -> None:
    """Raise UserError if a newer version of the program wrote a file."""
    if isinstance(version, int) and version > known:
        raise UserError(
            f"written by a newer version of ep-bench (format {version}; this version reads up to {known}); upgrade it",
            where=str(path),
        )
