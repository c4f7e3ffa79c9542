"""Download with checksum, mirrors, retries and resumption; verification of what is on disk.

A download grows in ``<file>.<digits>.part``, the digits being those of its address, so that an interrupted one is taken
up where it ended. pooch compares the whole with the checksum and moves it to its place in one step: a file of the right
name is always a whole file.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from ep_bench.data import embedded, locations, reading
from ep_bench.data.cards import Card, card
from ep_bench.data.cards import card_names as all_names
from ep_bench.data.download import RetryLimits, TransferError, UnreachableError, download
from ep_bench.types import UserError

MIRROR_VARIABLE = "EP_BENCH_MIRROR"
PATIENCE = RetryLimits(tries=4, pause=1.0, timeout=30.0)
Report = Callable[[str, int, int | None], None]


class Fetched(NamedTuple):
    """What `fetch` did for one data set; ``path`` is None for an embedded one."""

    name: str
    status: Literal["fetched", "present", "embedded"]
    path: Path | None

    def __str__(self) -> str:
        return f"{self.name}: {self.status}" + (f", {self.path}" if self.path else "")


class Verified(NamedTuple):
    """What `verify` found of one data set; ``unpinned``: a file is there, and no checksum to hold it to."""

    name: str
    status: Literal["ok", "missing", "changed", "unpinned"]
    detail: str


def fetch(
    names: Iterable[str] | None = None,
    *,
    base_url: str | None = None,
    progress: bool = True,
    patience: RetryLimits = PATIENCE,
) -> list[Fetched]:
    """Download the data files (of all data sets, if none are named) that are not on this machine to the user's cache.

    Files that ship with the package count as present, unless ``base_url`` is given or they are damaged.

    Parameters
    ----------
    names : names of cards
    base_url : a mirror laid out like a data folder, tried before that of EP_BENCH_MIRROR and those of the card
    progress : draw a bar on standard error where that is a terminal
    patience : attempts, pauses and time limit of one address

    Raises
    ------
    UserError
        Unknown name; or files that could not be had, after all others were: each with its addresses and reasons.
    """
    chosen = [card(name) for name in (all_names() if names is None else names)]
    done: list[Fetched] = []
    failures: list[str] = []
    dead: set[str] = set()
    with _Bars(progress) as report:
        for found in chosen:
            try:
                done.append(_fetch_one(found, base_url, report, patience, dead))
            except UserError as error:
                failures.append(str(error))
    if failures:
        raise UserError("\n".join(failures))
    return done


def verify(names: Iterable[str] | None = None) -> list[Verified]:
    """Compare files (of all data sets, if none are named) with their checksums, and generated arrays with their cards'.

    Raises
    ------
    UserError
        There is no data set of that name.
    """
    return [_verify_one(card(name)) for name in (all_names() if names is None else names)]


def _verify_one(found: Card) -> Verified:
    expected = locations.expected_checksum(found)
    if found.embedded:
        actual, place = embedded.checksum(*reading.generate(found.name)), "embedded"
    else:
        path = locations.find_file(found)
        if path is None:
            return Verified(found.name, "missing", str(reading.missing(found)))
        try:
            actual, place = locations.data_checksum(found, path), str(path)
        except UserError as error:
            return Verified(found.name, "changed", str(error))
    if expected is None:
        return Verified(found.name, "unpinned", f"{place}: sha256 {actual}, and none to compare with")
    if actual != expected:
        return Verified(found.name, "changed", f"{place}: sha256 {actual}, expected {expected}")
    return Verified(found.name, "ok", place)


def _fetch_one(
    found: Card, base_url: str | None, report: Report | None, patience: RetryLimits, dead: set[str]
) -> Fetched:
    """Bring one file; ``dead`` gathers the servers that did not answer, so that they are waited for only once."""
    if found.embedded or found.path is None:
        return Fetched(found.name, "embedded", None)
    expected = locations.expected_checksum(found)
    target = locations.cache_folder() / found.path
    present = _present(found, expected, shipped=base_url is None)
    if present is not None:
        return Fetched(found.name, "present", present)
    reasons = []
    for url in _addresses(found, base_url):
        server = urlsplit(url).netloc
        if server in dead:
            reasons.append(f"  {url}: no answer from this server before")
            continue
        try:
            _retrieve(found, url, target, expected, report, patience)
        except (TransferError, OSError) as error:
            if isinstance(error, UnreachableError):
                dead.add(server)
            reasons.append(f"  {url}: {error}")
            continue
        if expected is None:
            locations.record_checksum(found, locations.file_checksum(target))
        return Fetched(found.name, "fetched", target)
    raise UserError(
        "could not be downloaded; what has arrived is kept and taken up next time. "
        f"Without a network, put the file at {found.path} below a folder that {locations.VARIABLE} names. Tried:\n"
        + "\n".join(reasons),
        where=found.name,
    )


def _present(found: Card, expected: str | None, *, shipped: bool) -> Path | None:
    """Return the data set's file if it is on this machine and has its checksum; count a shipped one if asked."""
    path = locations.find_file(found)
    if path is not None and path == locations.shipped_file(found):
        return path if shipped and _verify_one(found).status == "ok" else None
    if path is None or expected is None or locations.file_checksum(path) == expected:
        return path
    if path.is_relative_to(locations.cache_folder()):
        return None
    raise UserError(
        f"the file is not the card's (sha256 {locations.file_checksum(path)}, expected {expected}) "
        f"and would come before a downloaded one: remove it, or unset {locations.VARIABLE}",
        where=str(path),
    )


def _addresses(found: Card, base_url: str | None) -> list[str]:
    bases = [base for base in (base_url, os.environ.get(MIRROR_VARIABLE)) if base]
    return [f"{base.rstrip('/')}/{found.path}" for base in bases] + list(found.urls)


def _retrieve(
    found: Card, url: str, target: Path, expected: str | None, report: Report | None, patience: RetryLimits
) -> None:
    """Download one address through pooch; a second time from the start if a resumed file turns out wrong."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")

    def downloader(address: str, output_file: str, _pooch: Any) -> None:
        bar = None if report is None else (lambda have, total: report(found.name, have, total))
        download(address, part, patience, bar)
        if expected is None and target.suffix == ".zip":
            _require_sound(part)
        part.replace(output_file)

    resumed = part.exists()
    for again in (resumed, False):
        try:
            pooch.retrieve(
                url,
                known_hash=expected,
                fname=target.name,
                path=target.parent,
                downloader=downloader,
                progressbar=False,
            )
        except ValueError as error:
            part.unlink(missing_ok=True)
            if not again:
                wrong = f"wrong checksum: what arrived has not the sha256 {expected}" if expected else str(error)
                raise TransferError(wrong) from error
        else:
            return


def _require_sound(path: Path) -> None:
    """Refuse a torn archive where no checksum can."""
    try:
        with zipfile.ZipFile(path) as archive:
            torn = archive.testzip()
    except zipfile.BadZipFile as error:
        raise ValueError("no sound zip archive") from error
    if torn:
        raise ValueError(f"no sound zip archive: {torn}")


class _Bars:
    """Context of progress bars on standard error; gives None where they are not wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.tasks: dict[str, Any] = {}

    def __enter__(self) -> Report | None:
        if not self.wanted:
            return None
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        self.drawing = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.drawing.start()
        return self._update

    def __exit__(self, *_: object) -> None:
        if self.wanted:
            self.drawing.stop()

    def _update(self, name: str, have: int, total: int | None) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.drawing.add_task(name, total=total)
        self.drawing.update(self.tasks[name], completed=have, total=total)
