"""Locations of data files: the folder named by EP_BENCH_DATA, then the user's cache folder, then the package."""

from __future__ import annotations

import hashlib
import lzma
import os
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Literal

from ep_bench.data.cards import Card
from ep_bench.errors import UserError
from ep_bench.resources import shipped_folder

VARIABLE = "EP_BENCH_DATA"


def data_folder() -> Path | None:
    """Return the folder that EP_BENCH_DATA names, or None if it is not set.

    Raises
    ------
    UserError
        The variable does not name a folder.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    folder = Path(os.path.expanduser(value))  # noqa: PTH111 that of pathlib raises an error for an unknown user
    if not folder.is_dir():
        raise UserError("is not a folder", where=VARIABLE, found=value, allowed="a folder of data sets, or unset")
    return folder.resolve()


def cache_folder() -> Path:
    """Return the user's cache folder of downloaded data sets, which may not exist yet."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("ep-bench")) / "data"


def find_file(card: Card) -> Path | None:
    """Return the file of a data set from EP_BENCH_DATA, the cache folder or the package; None if there is none."""
    return _user_file(card) or shipped_file(card)


def _user_file(card: Card) -> Path | None:
    if card.path is None:
        return None
    for folder in (data_folder(), cache_folder()):
        for path in (card.path, *card.other_paths):
            if folder is not None and (folder / path).is_file():
                return folder / path
    return None


def location(card: Card) -> Literal["embedded", "shipped", "user's file", "not fetched"]:
    """Return the kind of location of a data set on this machine."""
    if card.embedded:
        return "embedded"
    file = find_file(card)
    if file is None:
        return "not fetched"
    return "shipped" if file == shipped_file(card) else "user's file"


def shipped_file(card: Card) -> Path | None:
    """Return the file shipped with the package, possibly compressed by xz; None if there is none."""
    if card.path is None:
        return None
    folder, name = shipped_folder("datasets") / card.name, Path(card.path).name
    return next((file for file in (folder / f"{name}.xz", folder / name) if file.is_file()), None)


def data_checksum(card: Card, path: Path) -> str:
    """Return the sha256 of a data set's file.

    Raises
    ------
    UserError
        The file cannot be read, or it is shipped with the package and does not have the card's checksum.
    """
    try:
        found = file_checksum(path)
    except OSError as error:
        raise UserError(f"the data file cannot be read: {error.strerror}", where=str(path)) from error
    except (lzma.LZMAError, EOFError) as error:
        raise _damaged(card, path, error) from error
    if path == shipped_file(card) and card.sha256 is not None and found != card.sha256:
        raise _damaged(card, path, f"its sha256 is {found}, expected {card.sha256}")
    return found


def _damaged(card: Card, path: Path, reason: object) -> UserError:
    """Return the error for a shipped data file that differs from the original."""
    remedy = "install ep-bench again" + (f", or run `ep-bench data fetch {card.name}`" if card.urls else "")
    return UserError(f"the data file is damaged ({reason}); {remedy}", where=str(path))


def open_data(path: Path) -> BufferedIOBase:
    """Open a data file for reading; a file compressed by xz is decompressed."""
    return lzma.LZMAFile(path) if path.suffix == ".xz" else path.open("rb")


def file_checksum(path: Path) -> str:
    """Return the sha256 of the original bytes of a file, in hexadecimal digits.

    The result is cached until the size or modification time of the file changes. Raises OSError, LZMAError or EOFError
    if the file cannot be read or decompressed.
    """
    status = path.stat()
    return _checksum(str(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _checksum(path: str, _mtime_ns: int, _size: int) -> str:
    with open_data(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
