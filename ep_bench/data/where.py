"""Where the files of data sets lie: the folder named by EP_BENCH_DATA, then the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path

from ep_bench.data.cards import Card
from ep_bench.types import UserError

VARIABLE = "EP_BENCH_DATA"
_CHUNK = 1 << 20


def data_folder() -> Path | None:
    """Return the folder that EP_BENCH_DATA names, or None if it is not set.

    Raises
    ------
    UserError
        The variable names something that is no folder.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise UserError("is not a folder", where=VARIABLE, found=value, allowed="a folder of data sets, or unset")
    return folder.resolve()


def cache_folder() -> Path:
    """Return the user's cache folder of downloaded data sets; it need not exist yet."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("ep-bench")) / "data"


def find_file(card: Card) -> Path | None:
    """Return a data set's file: from EP_BENCH_DATA, else from the cache folder, else None (also for embedded sets)."""
    if card.path is None:
        return None
    for folder in (data_folder(), cache_folder()):
        for path in (card.path, *card.other_paths):
            if folder is not None and (folder / path).is_file():
                return folder / path
    return None


def file_checksum(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits, remembered as long as its size and time of change stay."""
    status = path.stat()
    return _checksum(str(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _checksum(path: str, _mtime_ns: int, _size: int) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def expected_checksum(card: Card) -> str | None:
    """Return the sha256 that a data set's file should have: the card's, else the one recorded by its first fetch."""
    return card.sha256 or _recorded().get(card.name)


def record_checksum(card: Card, sha256: str) -> None:
    """Keep the checksum of a first fetch in the cache folder, for a card that has none."""
    file = cache_folder() / "checksums.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps(_recorded() | {card.name: sha256}, indent=1, sort_keys=True), encoding="utf-8")
    temporary.replace(file)


def _recorded() -> dict[str, str]:
    try:
        content = json.loads((cache_folder() / "checksums.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
