"""Download of data files with checksums, mirrors, retries and resumption; verification of the files on disk.

Bytes arrive in ``<file>.<digits>.part``, where the digits depend on the address, so an interrupted download can be
resumed. pooch repeats failed downloads, compares the complete file with the checksum and moves it to its final name in
one step. A file of the final name is therefore always complete.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from ep_bench.data import card_checks, embedded, locations, reading
from ep_bench.data.cards import Card
from ep_bench.data.cards import card_names as all_names
from ep_bench.data.download import MAX_BYTES, TransferError, UnreachableError, download
from ep_bench.data.lookup import card
from ep_bench.errors import UserError

MIRROR_VARIABLE = "EP_BENCH_MIRROR"
ProgressReport = Callable[[str, int, int | None], None]  # data set, bytes on disk, bytes in total


class RetryLimits(NamedTuple):
    """When an address is given up."""

    tries: int = 4  # attempts that add no bytes
    timeout: float = 30.0  # seconds to wait for a connection, and for further bytes


DEFAULT_LIMITS = RetryLimits()


class Fetched(NamedTuple):
    """Outcome of `fetch` for one data set; ``path`` is None for an embedded one."""

    name: str
    status: Literal["fetched", "present", "embedded"]
    path: Path | None

    def __str__(self) -> str:
        return f"{self.name}: {self.status}" + (f", {self.path}" if self.path else "")


class Verified(NamedTuple):
    """Outcome of `verify` for one data set.

    ``unpinned``: there is a file, but no checksum to compare it with. ``card``: the card is not valid, or the data of
    the right file contradict it.
    """

    name: str
    status: Literal["ok", "missing", "changed", "unpinned", "card"]
    detail: str


def fetch(
    names: Iterable[str] | None = None,
    *,
    base_url: str | None = None,
    progress: bool = True,
    limits: RetryLimits = DEFAULT_LIMITS,
) -> list[Fetched]:
    """Download missing data files to the user's cache folder.

    Files shipped with the package count as present, unless ``base_url`` is given or they are damaged.

    Parameters
    ----------
    names : names of data sets, by default all
    base_url : a mirror laid out like a data folder; it is tried before that of EP_BENCH_MIRROR and those of the card
    progress : whether to show a progress bar on standard error, if that is a terminal
    limits : number of attempts and time limit per address

    Raises
    ------
    UserError
        Unknown name. Or some files could not be downloaded; the message lists their addresses and the reasons. All
        other files have been downloaded.
    """
    chosen = [card(name) for name in (all_names() if names is None else names)]
    done: list[Fetched] = []
    failures: list[str] = []
    unreachable: set[str] = set()
    with _Bars(progress) as report:
        for found in chosen:
            try:
                done.append(_fetch_one(found, base_url, report, limits, unreachable))
            except UserError as error:
                failures.append(str(error))
    if failures:
        raise UserError("\n".join(failures))
    return done


def verify(names: Iterable[str] | None = None) -> list[Verified]:
    """Compare the data files, and the arrays of embedded data sets, with their checksums and cards.

    Parameters
    ----------
    names : names of data sets, by default all

    Raises
    ------
    UserError
        There is no data set of that name.
    """
    return [_verify_with_card(name) for name in (all_names() if names is None else names)]


def _verify_with_card(name: str) -> Verified:
    try:
        found = card(name)
    except UserError as error:
        if name not in all_names():
            raise
        return Verified(name, "card", str(error))
    verified = _verify_one(found)
    is_compared = verified.status == "ok" and name in all_names()  # the card of a plugin is made from its data
    difference = card_checks.difference(found) if is_compared else ""
    return Verified(name, "card", difference) if difference else verified


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
        return Verified(found.name, "unpinned", f"{place}: sha256 {actual}, no expected checksum is known")
    if actual != expected:
        return Verified(found.name, "changed", f"{place}: sha256 {actual}, expected {expected}")
    return Verified(found.name, "ok", place)


def _fetch_one(
    found: Card, base_url: str | None, report: ProgressReport | None, limits: RetryLimits, unreachable: set[str]
) -> Fetched:
    """Download one file; servers that do not answer are added to ``unreachable`` and not tried again."""
    if found.embedded or found.path is None:
        return Fetched(found.name, "embedded", None)
    expected = locations.expected_checksum(found)
    target = locations.cache_folder() / found.path
    present = _present(found, expected, shipped=base_url is None)
    if present is not None:
        return Fetched(found.name, "present", present)
    reasons = []
    for url in _addresses(found, base_url):
        server = _server(url)
        if server in unreachable:
            reasons.append(f"  {url}: skipped, the server did not answer before")
            continue
        try:
            _retrieve(found, url, target, expected, report, limits, insecure=url not in found.urls)
        except (TransferError, OSError) as error:
            if isinstance(error, UnreachableError):
                unreachable.add(server)
            reasons.append(f"  {url}: {error}")
            continue
        if expected is None:
            locations.record_checksum(found, locations.file_checksum(target))
        return Fetched(found.name, "fetched", target)
    raise UserError(
        "could not be downloaded; a partial download is resumed next time. "
        f"Without a network, put the file at {found.path} in the folder named by {locations.VARIABLE}. Tried:\n"
        + "\n".join(reasons),
        where=found.name,
    )


def _present(found: Card, expected: str | None, *, shipped: bool) -> Path | None:
    """Return the file if it is on this machine and has its checksum; a shipped file only if ``shipped``.

    Raises UserError for a wrong file in the folder of EP_BENCH_DATA, which would hide a downloaded one.
    """
    path = locations.find_file(found)
    if path is not None and path == locations.shipped_file(found):
        return path if shipped and _verify_one(found).status == "ok" else None
    if path is None or expected is None or locations.file_checksum(path) == expected:
        return path
    if path.is_relative_to(locations.cache_folder()):
        return None
    raise UserError(
        f"the file differs from the one on the card (sha256 {locations.file_checksum(path)}, expected {expected}) "
        f"and takes precedence over a downloaded file; remove it, or unset {locations.VARIABLE}",
        where=str(path),
    )


def _addresses(found: Card, base_url: str | None) -> list[str]:
    bases = [base for base in (base_url, os.environ.get(MIRROR_VARIABLE)) if base]
    return [f"{base.rstrip('/')}/{found.path}" for base in bases] + list(found.urls)


def _server(url: str) -> str:
    """Return the server of an address, empty if the address is not valid."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _retrieve(
    found: Card,
    url: str,
    target: Path,
    expected: str | None,
    report: ProgressReport | None,
    limits: RetryLimits,
    *,
    insecure: bool,
) -> None:
    """Download one address with pooch. Raises TransferError if all attempts fail."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")

    def downloader(address: str, output_file: str, _pooch: Any) -> None:
        bar = None if report is None else (lambda have, total: report(found.name, have, total))
        download(address, part, limits.timeout, bar, limit=found.bytes or MAX_BYTES, insecure=insecure)
        part.replace(output_file)
        if expected is None and target.suffix == ".zip":
            _check_archive(Path(output_file))

    cache = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: expected},
        urls={target.name: url},
        retry_if_failed=limits.tries - 1,
    )
    try:
        cache.fetch(target.name, downloader=downloader)
    except TransferError:
        raise
    except ValueError as error:
        raise TransferError(f"wrong checksum: expected the sha256 {expected}" if expected else str(error)) from error


def _check_archive(path: Path) -> None:
    """Raise ValueError for a damaged archive; used if there is no checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except zipfile.BadZipFile as error:
        raise ValueError("the zip archive is damaged") from error
    if damaged:
        raise ValueError(f"the zip archive is damaged: {damaged}")


class _Bars:
    """Context manager of progress bars on standard error; it returns None if they are not enabled."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.tasks: dict[str, Any] = {}

    def __enter__(self) -> ProgressReport | None:
        if not self.enabled:
            return None
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.bars.start()
        return self._update

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            self.bars.stop()

    def _update(self, name: str, have: int, total: int | None) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total)
        self.bars.update(self.tasks[name], completed=have, total=total)
