"""Download of data files by pooch: a file is kept only if it is complete and has its checksum."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from ep_bench.data import locations
from ep_bench.data.cards import Card, card, card_names
from ep_bench.data.verification import compare_file
from ep_bench.errors import UserError

MIRROR_VARIABLE = "EP_BENCH_MIRROR"
TIMEOUT = 30.0  # seconds to wait for a connection, and for further bytes


class Fetched(NamedTuple):
    """Outcome of `fetch` for one data set; ``path`` is None for an embedded one."""

    name: str
    status: Literal["fetched", "present", "embedded"]
    path: Path | None

    def __str__(self) -> str:
        return f"{self.name}: {self.status}" + (f", {self.path}" if self.path else "")


def fetch(names: Iterable[str] | None = None, *, progress: bool = True) -> list[Fetched]:
    """Download missing data files to the user's cache folder.

    Files shipped with the package count as present, unless they are damaged. The mirror that EP_BENCH_MIRROR names is
    tried first.

    Parameters
    ----------
    names : names of data sets, by default all
    progress : whether to show a progress bar on standard error, if that is a terminal

    Raises
    ------
    UserError
        Unknown name. Or some files could not be downloaded; the message lists their addresses and the reasons. All
        other files have been downloaded.
    """
    done: list[Fetched] = []
    failures: list[str] = []
    for found in [card(name) for name in (card_names() if names is None else names)]:
        try:
            done.append(_fetch_one(found, progress=progress and sys.stderr.isatty()))
        except UserError as error:
            failures.append(str(error))
    if failures:
        raise UserError("\n".join(failures))
    return done


def _fetch_one(found: Card, *, progress: bool) -> Fetched:
    if found.embedded or found.path is None:
        return Fetched(found.name, "embedded", None)
    present = _present(found)
    if present is not None:
        return Fetched(found.name, "present", present)
    target, reasons = locations.cache_folder() / found.path, []
    mirror = os.environ.get(MIRROR_VARIABLE)
    for url in [*([f"{mirror.rstrip('/')}/{found.path}"] if mirror else []), *found.urls]:
        try:
            _retrieve(found, url, target, progress=progress)
        except (OSError, ValueError) as error:  # those of requests are OSErrors
            reasons.append(f"  {url}: {error}")
        else:
            return Fetched(found.name, "fetched", target)
    raise UserError(
        f"could not be downloaded. Without a network, put the file at {found.path} in the folder named by "
        f"{locations.VARIABLE}. Tried:\n" + "\n".join(reasons),
        where=found.name,
    )


def _present(found: Card) -> Path | None:
    """Return the file if it is on this machine and has its checksum.

    Raises UserError for a wrong file in the folder of EP_BENCH_DATA, which would hide a downloaded one.
    """
    path = locations.find_file(found)
    if path is None:
        return None
    verified = compare_file(found)
    if verified.status == "ok":
        return path
    if path == locations.shipped_file(found) or path.is_relative_to(locations.cache_folder()):
        return None
    raise UserError(
        f"the file differs from the one on the card ({verified.detail}) and takes precedence over a downloaded file; "
        f"remove it, or unset {locations.VARIABLE}",
        where=str(path),
    )


def _retrieve(found: Card, url: str, target: Path, *, progress: bool) -> None:
    """Download one file. Raises ValueError if it has another checksum, or is a damaged archive."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT)
    known = found.sha256 and f"sha256:{found.sha256}"
    pooch.retrieve(url, known, target.name, target.parent, downloader=downloader)
    if target.suffix == ".zip" and not zipfile.is_zipfile(target):
        target.unlink()
        raise ValueError("the zip archive is damaged")
