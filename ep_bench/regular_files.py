"""Reading of files whose content may be anything: no waiting, no unlimited memory, no unlimited nesting.

A named pipe, a device or a folder is refused before it is read. All problems are an ``OSError`` or a ``ValueError``.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 2**30  # by default, the largest file that is read


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises OSError if the path is no regular file or cannot be read, and ValueError if it has more than ``limit`` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a named pipe does not block
    with os.fdopen(descriptor, "rb") as file:
        require_regular(os.fstat(descriptor), path)
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"more than {limit} bytes")
    return content


def require_regular(found: os.stat_result, path: Path) -> None:
    """Raise OSError unless the result of ``stat`` is that of a regular file."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Return the text of a regular file in UTF-8. Raises OSError and ValueError as ``read_bytes``."""
    return read_bytes(path, limit).decode("utf-8")


def read_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """Return the value in a JSON file. Raises OSError, and ValueError if the file holds no value in valid Unicode."""
    return parse_json(read_text(path, limit))


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError also for deep nesting and for half of a surrogate pair."""
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value
