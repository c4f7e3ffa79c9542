"""Reading of files from elsewhere. All problems are an ``OSError`` or a ``ValueError``."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

MAX_BYTES = 2**30  # by default, the largest file that is read


def require_regular(path: Path) -> None:
    """Raise OSError if the path is a folder, a named pipe, which would block, or a device."""
    path.stat()  # raises if there is nothing
    if not path.is_file():
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file. Raises OSError, and ValueError if it has more than ``limit`` bytes."""
    require_regular(path)
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"more than {limit} bytes")
    return content


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
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value
