"""What a study leaves on disk: cell files, ``results.csv``, ``study.lock.json``; written whole or not at all.

A study's folder holds ``cells/<hash>.json`` (one a finished cell, with its trace and provenance, not committed),
``results.csv`` (one row a cell) and ``study.lock.json`` (the plan: the factors behind each hash). The last two are
enough for a fresh clone to go on; ``curves`` adds what its report draws. A cell file carries the checksum of its
content, so that a torn or altered one is recognised; rows that a changed study has replaced are kept in
``superseded.csv``.
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

from ep_bench.types import COLUMNS, COUNT_COLUMNS, STATUSES, TEXT_COLUMNS, Record, UserError

FORMAT = 1
RESULTS, LOCK, CELLS, SUPERSEDED = "results.csv", "study.lock.json", "cells", "superseded.csv"

Row = dict[str, Any]


def factor_hash(factors: Mapping[str, Any]) -> str:
    """Return the 16 hexadecimal digits that name a cell with these factors."""
    return hashlib.sha256(_canonical(factors).encode()).hexdigest()[:16]


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` so that a reader sees the old file or the new one, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):  # one that names the file, which a failed write does not
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_if_changed(path: Path, text: str) -> None:
    """Write ``text`` atomically, unless the file holds it already."""
    try:
        same = path.read_bytes() == text.encode()
    except OSError:
        same = False
    if not same:
        write_atomically(path, text)


# Cell files


def write_record(folder: Path, record: Record) -> None:
    """Store one finished cell of the study in ``folder``, at once and atomically."""
    body = _canonical(asdict(record))
    checksum = hashlib.sha256(body.encode()).hexdigest()
    write_atomically(
        folder / CELLS / f"{record.key}.json", f'{{"format": {FORMAT}, "sha256": "{checksum}", "record": {body}}}\n'
    )


def read_record(path: Path) -> Record | None:
    """Return the record in a cell file, or None where the file is torn, altered or not there.

    Raises UserError where a newer version of the program wrote it.
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
    """Return every whole record of a study's folder by its hash; torn files are left out."""
    return {record.key: record for record in _each_record(folder, [])}


def _each_record(folder: Path, damaged: list[Path]) -> Iterator[Record]:
    for path in sorted((folder / CELLS).glob("*.json")):
        record = read_record(path)
        if record is not None:
            yield record
        elif path.exists():
            damaged.append(path)


def stamps(folder: Path) -> dict[str, int]:
    """Return when each cell file was written, by hash, in nanoseconds of its file system."""
    found: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError), os.scandir(folder / CELLS) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                with contextlib.suppress(FileNotFoundError):
                    found[entry.name.removesuffix(".json")] = entry.stat().st_mtime_ns
    return found


def record_since(folder: Path, key: str, stamp: int | None) -> Record | None:
    """Return a cell's record where its file is another than the one that had this stamp, else None."""
    path = folder / CELLS / f"{key}.json"
    try:
        same = path.stat().st_mtime_ns == stamp
    except FileNotFoundError:
        return None
    return None if same else read_record(path)


# The table of results


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as CSV with the columns of the interface, sorted by method, data set and split.

    A file that holds them already is left alone.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in sorted(rows, key=_order):
        writer.writerow({key: _text(value) for key, value in row.items()})
    write_if_changed(path, out.getvalue())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a results.csv, empty cells left out, numbers as numbers.

    Raises UserError where a line is not one of ours: a wrong header, a missing field, a word where a number belongs.
    """
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = sorted(set(COLUMNS[:17]) - set(reader.fieldnames or ()))
            if missing:
                raise UserError(
                    f"no results of ep-bench: the columns {', '.join(missing)} are missing", where=str(path)
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
        raise UserError(
            "a row is incomplete: method, dataset, split, status and cell are needed", where=f"{path}:{line}"
        )
    if parsed["status"] not in STATUSES:
        raise UserError("no such status", where=f"{path}:{line}", found=parsed["status"], allowed=STATUSES)
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
    """Write study.lock.json, readable and stable under version control; one that holds this already is left alone."""
    write_if_changed(folder / LOCK, json.dumps({"format": FORMAT, **lock}, indent=1, sort_keys=True) + "\n")


def read_lock(folder: Path) -> dict[str, Any] | None:
    """Return study.lock.json, or None where there is none. Raises UserError for one that cannot be read."""
    path = folder / LOCK
    if not path.exists():
        return None
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(lock, dict):
        raise UserError("not a study's lock file", where=str(path))
    refuse_newer(lock.get("format"), path)
    return lock


def lock_cells(lock: Mapping[str, Any], part: str = "groups") -> list[dict[str, Any]]:
    """Return the planned cells of a lock file, each as {cell, method, dataset, split, factors}.

    Two cells may have one hash: the same configuration under two labels. ``part`` is ``groups``, the plan, or
    ``superseded``, earlier cells whose place in the plan is not finished yet.
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
    """A study's folder as it stands: the plan, the rows that belong to it, and where the records are."""

    folder: Path
    name: str
    lock: dict[str, Any]
    rows: list[Row]
    damaged: list[Path] = field(default_factory=list)  # cell files that are not believed

    def records(self) -> dict[str, Record]:
        """Return the cell files of this machine (traces, tracebacks), by hash; none on a fresh clone."""
        return read_records(self.folder)


def known_rows(folder: Path, damaged: list[Path] | None = None) -> dict[str, Row]:
    """Return every finished row that the folder knows by its hash: of superseded.csv, results.csv and cell files.

    The later of these wins, but a cell that is ``ok`` somewhere stays so: what failed here may have been run elsewhere.
    The cell files that are torn or altered, and so are not believed, are appended to ``damaged``.
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
    """Return the finished rows of a plan under its labels, sorted; without a plan those of results.csv."""
    if not lock:
        return read_rows(folder / RESULTS)
    rows = [
        known[cell["cell"]] | {"study": lock["study"], **{key: cell[key] for key in ("method", "dataset", "split")}}
        for cell in lock_cells(lock)
        if cell["cell"] in known
    ]
    return sorted(rows, key=_order)


def export(folder: Path, known: Mapping[str, Row] | None = None) -> list[Row]:
    """Bring results.csv up to the cell files and the plan; rows no longer in the plan go to superseded.csv.

    ``known`` are the finished rows by hash where they need not be read, which takes seconds for many.
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
    gone = [row for key, row in known.items() if key not in planned]
    if gone or (folder / SUPERSEDED).exists():
        write_rows(folder / SUPERSEDED, gone)
    write_rows(folder / RESULTS, rows)


def damage(damaged: Sequence[Path]) -> str:
    """Return what to tell of damaged cell files, nothing where there are none."""
    if not damaged:
        return ""
    names = ", ".join(str(path) for path in damaged[:3]) + (", ..." if len(damaged) > 3 else "")
    count = f"{len(damaged)} cell files are" if len(damaged) > 1 else "a cell file is"
    return f"warning: {count} cut short or altered and not believed: {names}; what no other row covers is run again"


def sweep(folder: Path, age: float = 600.0) -> None:
    """Remove the drafts of writers that were killed, those older than ``age`` seconds."""
    for draft in (folder / CELLS).glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > age:
                draft.unlink()


def read_study(folder: Path, *, update: bool = False) -> StudyResults:
    """Return a study's folder as it stands; with ``update`` results.csv is brought up to it, if it can be written.

    Raises UserError where the folder holds no results.
    """
    if not folder.is_dir():
        raise UserError("no such folder", where=str(folder))
    lock = read_lock(folder)
    if lock is None and not (folder / RESULTS).exists():
        raise UserError(f"no results here: neither {LOCK} nor {RESULTS}", where=str(folder))
    damaged: list[Path] = []
    lock, known = lock or {}, known_rows(folder, damaged)
    rows = current_rows(folder, lock, known)
    if update:
        with contextlib.suppress(OSError):  # a read-only copy is still worth reading
            _write_results(folder, lock, known, rows)
    return StudyResults(folder, lock.get("study", folder.name), lock, rows, damaged)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def unreadable(path: Path, error: Exception) -> UserError:
    """Return the error of a file that is made of cell files and cannot be read."""
    return UserError(
        f"cannot be read ({type(error).__name__}: {error}); take it from version control, or remove it and it is "
        "made of the cell files that are here",
        where=str(path),
    )


def refuse_newer(version: Any, path: Path, known: int = FORMAT) -> None:
    """Raise UserError where a newer version of the program wrote a file."""
    if isinstance(version, int) and version > known:
        raise UserError(
            f"written by a newer version of ep-bench (format {version}, this program reads up to {known}): upgrade it",
            where=str(path),
        )
