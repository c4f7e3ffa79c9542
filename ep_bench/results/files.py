"""Reading and writing of single files of a results folder: atomic writes, canonical JSON, hashes, formats."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError

FORMAT = 2  # of lock and cell files; format 1 had no checksums of rows

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # the text of which hashes are computed


def factor_hash(factors: Mapping[str, Any]) -> str:
    """Return the hash of a cell with these factors, 16 hexadecimal digits."""
    return hashlib.sha256(canonical(factors).encode()).hexdigest()[:16]


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write text in UTF-8, or bytes, such that readers see either the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        draft.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):  # add the file name, which a failed write does not report
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_if_changed(path: Path, text: str) -> None:
    """Write ``text`` atomically, unless the file already has this content."""
    if not path.exists() or path.read_bytes() != text.encode():
        write_atomically(path, text)


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread writes the tables of a folder.

    Two writers at the same time could leave a lock file that lists rows which results.csv does not have. A writer must
    read the rows while it is the only one, so that the last one has all of them. There is no wait on file systems
    without locks. The kernel releases the lock of a process that is killed.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
