"""The results folder of a study. Every file is written atomically.

The folder of a study has one file ``cells/<hash>.json`` per finished cell, with its trace and provenance, which is not
committed. ``results.csv`` has one row per cell. ``study.lock.json`` is the plan with the factors behind each hash, and
the checksum and the provenance of each row. These two are sufficient to resume in a fresh clone; ``curves`` adds the
data of figures. A cell file contains a checksum of its content, so that a damaged file is detected.

``run`` alone writes to a folder. Rows that leave ``results.csv`` because the study has changed, and have no cell file,
are appended to ``superseded.csv``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError, nearest
from ep_bench.results.cell_files import (
    CELLS,
    each_record,
    read_record,
    record_since,
    remove_drafts,
    set_aside,
    stamps,
    write_record,
)
from ep_bench.results.files import (
    FORMAT,
    factor_hash,
    refuse_newer,
    unreadable,
    write_atomically,
    write_if_changed,
)
from ep_bench.results.integrity import Row, SuspectRow, checksum, file_checksums, suspect_files
from ep_bench.results.lock_file import (
    LOCK,
    Origin,
    lock_cells,
    names_any,
    provenance,
    read_lock,
    read_provenance,
    refuse_other_kind,
    write_lock,
)
from ep_bench.results.tables import order, read_rows, read_table, write_rows
from ep_bench.types import Record

__all__ = [
    "CELLS",
    "FORMAT",
    "LOCK",
    "RESULTS",
    "SUPERSEDED",
    "FinishedRows",
    "Origin",
    "Row",
    "StudyResults",
    "SuspectRow",
    "by_seed",
    "current_rows",
    "damage_warning",
    "each_record",
    "export",
    "factor_hash",
    "file_checksums",
    "finished_rows",
    "keep_damaged_table",
    "lock_cells",
    "names_any",
    "read_intact",
    "read_lock",
    "read_record",
    "read_rows",
    "read_study",
    "record_since",
    "refuse_newer",
    "refuse_other_kind",
    "remove_drafts",
    "require_folder",
    "set_aside",
    "stamps",

    "suspect_files",
    "suspect_warning",
    "unreadable",
    "write_atomically",
    "write_if_changed",
    "write_lock",
    "write_record",
    "write_rows",
]  # fmt: skip

RESULTS, SUPERSEDED = "results.csv", "superseded.csv"
DAMAGED = "results.damaged.csv"  # copy of a table with rows that do not match their checksums
_MAX_NAMED = 5  # suspect rows named in a message
_UNKNOWN = Origin("", None, "", {})


@dataclass
class FinishedRows:
    """The finished rows of a folder by hash, and how each was computed."""

    rows: dict[str, Row] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    damaged: list[Path] = field(default_factory=list)  # cell files that are ignored
    suspect: list[SuspectRow] = field(default_factory=list)  # rows that are ignored

    def add(self, record: Record) -> None:
        """Add a record. A row with status ``ok`` is never replaced by a failed one."""
        before = self.rows.get(record.key)
        if before is None or record.row["status"] == "ok" or before["status"] != "ok":
            self.origins[record.key] = _origin(record)  # first: another thread may read both
            self.rows[record.key] = record.row

    def add_unknown(self, others: FinishedRows) -> None:
        """Add the rows of cells without a row, and rows with status ``ok`` of cells with a failed one."""
        for key, row in others.rows.items():
            known = self.rows.get(key)
            if known is None or (row["status"] == "ok" and known["status"] != "ok"):
                self.origins[key] = others.origins[key]
                self.rows[key] = row

    def snapshot(self) -> FinishedRows:
        """Return a copy to which no other thread adds rows."""
        rows = dict(self.rows)  # first: an origin is added before its row
        return replace(self, rows=rows, origins=dict(self.origins))

    def lock_entries(self, planned: AbstractSet[str]) -> dict[str, Any]:
        """Return the entries of a lock file with the checksum and the provenance of each planned row."""
        known = self.snapshot()
        return provenance(known.origins, {key: checksum(row) for key, row in known.rows.items() if key in planned})


def _origin(record: Record) -> Origin:
    environment = {key: value for key, value in record.provenance.items() if key not in {"finished", "source"}}
    source = str(record.provenance.get("source", ""))
    return Origin(record.factors.get("method", ""), record.factors.get("version"), source, environment)


def finished_rows(
    folder: Path, *, with_cell_files: bool = True, lock: Mapping[str, Any] | None = None
) -> FinishedRows:
    """Return the finished rows of a folder, from results.csv and, if wanted, the cell files.

    The lock file is read unless its content is given.

    The cell files have priority, but a row with status ``ok`` is never replaced by a failed one: a cell that failed
    here may have been run on another machine. Damaged cell files and suspect rows are ignored and listed.
    """
    found, lock = FinishedRows(), (read_lock(folder) or {}) if lock is None else lock
    origins, checksums = read_provenance(lock)
    rows, unreadable_rows = read_table(folder / RESULTS)
    errors = [SuspectRow(RESULTS, str(error)) for error in unreadable_rows]
    for row in rows:
        key = row["cell"]
        if reason := _mismatch(row, checksums.get(key)):
            found.suspect.append(SuspectRow(RESULTS, reason, row["method"], row["dataset"], row["split"], key))
        else:
            found.rows[key], found.origins[key] = row, origins.get(key, _UNKNOWN)
    for record in each_record(folder, found.damaged) if with_cell_files else ():
        found.add(record)
    altered = [row for row in found.suspect if row.cell not in found.rows]  # the others have a cell file
    absent = _absent(lock, checksums.keys() - found.rows.keys() - {row.cell for row in altered})
    found.suspect = altered + absent + (errors if altered or absent else [])
    return found


def _mismatch(row: Row, expected: str | None) -> str:
    if expected is None:
        return f"{LOCK} has no checksum of this row"
    return "" if checksum(row) == expected else f"the row does not match its checksum in {LOCK}"


def _absent(lock: Mapping[str, Any], keys: AbstractSet[str]) -> list[SuspectRow]:
    """Return the planned rows that the lock file lists but the table does not contain."""
    reason = f"the row is absent, but {LOCK} lists it"
    planned = {cell["cell"]: cell for cell in (lock_cells(lock) if keys else ()) if cell["cell"] in keys}
    return [SuspectRow(RESULTS, reason, c["method"], c["dataset"], c["split"], key) for key, c in planned.items()]


# A study's folder as a whole


@dataclass
class StudyResults:
    """The results of a study: the plan, its rows, and the folder of the records."""

    folder: Path
    name: str
    lock: dict[str, Any]
    rows: list[Row]
    finished: FinishedRows = field(default_factory=FinishedRows)
    further_seeds: list[Row] = field(default_factory=list)  # rows of all seeds but the first

    @property
    def all_rows(self) -> list[Row]:
        """The rows of all seeds."""
        return [*self.rows, *self.further_seeds]

    def origin(self, row: Row) -> Origin | None:
        """Return how a row was computed, or None if it is unknown."""
        return self.finished.origins.get(row["cell"])


def current_rows(folder: Path, lock: Mapping[str, Any], known: Mapping[str, Row]) -> list[Row]:
    """Return the finished rows of a plan with its labels, sorted; without a plan the rows of results.csv."""
    if not lock:
        return read_rows(folder / RESULTS)
    rows = [
        known[cell["cell"]] | {"study": lock["study"], **{key: cell[key] for key in ("method", "dataset", "split")}}
        for cell in lock_cells(lock)
        if cell["cell"] in known
    ]
    return sorted(rows, key=order)


def by_seed(lock: Mapping[str, Any], rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the first seed of a study, and those of its further seeds."""
    if lock.get("seeds", 1) == 1:
        return list(rows), []
    first = {cell["cell"] for cell in lock_cells(lock) if cell["factors"]["seed"] == lock["seed"]}
    return [row for row in rows if row["cell"] in first], [row for row in rows if row["cell"] not in first]


def export(folder: Path, finished: FinishedRows | None = None) -> list[Row]:
    """Update ``results.csv`` and the lock file from the finished rows and the plan; return the rows of the plan.

    The finished rows are read if omitted, which takes seconds for large studies.
    """
    lock = read_lock(folder) or {}
    finished = finished_rows(folder, lock=lock) if finished is None else finished.snapshot()
    rows = current_rows(folder, lock, finished.rows)
    if lock.get("groups"):
        planned = {cell["cell"] for cell in lock_cells(lock)}
        _keep_superseded(folder, planned)
        plan = {key: value for key, value in lock.items() if key not in {"format", "environment"}}
        write_lock(folder, plan | finished.lock_entries(planned))
        write_rows(folder / RESULTS, rows)
    return rows


def _keep_superseded(folder: Path, planned: AbstractSet[str]) -> None:
    """Append rows that are not planned any more, and have no cell file, to ``superseded.csv``."""
    dropped = {row["cell"]: row for row in read_table(folder / RESULTS)[0] if row["cell"] not in planned}
    left = dropped.keys() - stamps(folder).keys()
    if left:
        kept = {row["cell"]: row for row in read_table(folder / SUPERSEDED)[0]}
        write_rows(folder / SUPERSEDED, (kept | {key: dropped[key] for key in left}).values())


def keep_damaged_table(folder: Path, finished: FinishedRows) -> None:
    """Copy a table with suspect rows, before a run replaces it."""
    if finished.suspect and (folder / RESULTS).exists():
        shutil.copyfile(folder / RESULTS, folder / DAMAGED)


def damage_warning(damaged: Sequence[Path]) -> str:
    """Return a warning about damaged cell files, empty if there are none."""
    if not damaged:
        return ""
    names = ", ".join(str(path) for path in damaged[:3]) + (", ..." if len(damaged) > 3 else "")
    count = f"{len(damaged)} cell files are" if len(damaged) > 1 else "1 cell file is"
    renamed = "`run` renames them to HASH.json.damaged, and runs cells without another row again"
    return f"warning: {count} damaged and ignored: {names}; {renamed}"


def suspect_warning(suspect: Sequence[SuspectRow]) -> str:
    """Return a warning about altered rows, empty if there are none."""
    if not suspect:
        return ""
    return f"warning: {_altered(suspect)}; cells of the study are run again, and the old table is kept as {DAMAGED}"


def _altered(suspect: Sequence[SuspectRow]) -> str:
    names = "; ".join(map(str, suspect[:_MAX_NAMED])) + ("; ..." if len(suspect) > _MAX_NAMED else "")
    what = "row" if any(row.cell or row.file == RESULTS for row in suspect) else "file"
    count = f"{len(suspect)} {what}s were" if len(suspect) > 1 else f"1 {what} was"
    return f"{count} altered or removed after the run: {names}"





def require_folder(folder: Path) -> None:
    """Raise UserError, with the most similar results folder next to it, if a folder does not exist."""
    if not folder.is_dir():
        known = {path.name: path for place in ("results", ".") for path in _with_results(folder.parent / place)}
        near = nearest(folder.name, known)
        raise UserError("no such folder" + (f"; did you mean {known[near]}?" if near else ""), where=str(folder))


def read_study(folder: Path, *, with_cell_files: bool = True) -> StudyResults:
    """Return the results in a folder. Raises UserError if the folder has none."""
    require_folder(folder)
    lock = read_lock(folder)
    if lock is None and not (folder / RESULTS).exists():
        problem = f"no results found: neither {LOCK} nor {RESULTS} exists"
        raise UserError(problem, where=str(folder), allowed=[str(path) for path in _with_results(folder)] or None)
    lock = lock or {}
    finished = finished_rows(folder, with_cell_files=with_cell_files, lock=lock)
    finished.suspect += suspect_files(folder, lock)
    rows, further = by_seed(lock, current_rows(folder, lock, finished.rows))
    return StudyResults(folder, lock.get("study", folder.name), lock, rows, finished, further)


def _with_results(parent: Path) -> set[Path]:
    """Return the folders in a folder that have results."""
    return {path.parent for file in (LOCK, RESULTS) for path in parent.glob(f"*/{file}")}


def read_intact(folder: Path, *, with_cell_files: bool = True) -> StudyResults:
    """Return the results in a folder; raises UserError also if rows are suspect or cannot be checked."""
    study = read_study(folder, with_cell_files=with_cell_files)
    if not study.lock:
        raise UserError(
            f"{LOCK} is absent, so that the rows cannot be checked; restore it, or run the study again to compute them",
            where=str(folder),
        )
    if study.finished.suspect:
        remedy = "Restore the file from version control, or run the study again to compute these cells"
        raise UserError(f"{_altered(study.finished.suspect)}. {remedy}", where=str(folder))
    return study
