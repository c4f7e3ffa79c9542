"""One address to one file over HTTP: resumed by ranges, retried, complete or an error."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Progress = Callable[[int, int | None], None]
_CHUNK = 1 << 16
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class RetryLimits(NamedTuple):
    """When an address is given up."""

    tries: int  # attempts in a row that bring no new byte
    pause: float  # seconds after the first of these, doubled after each further one
    timeout: float  # seconds to wait for a connection, or for more bytes


class TransferError(Exception):
    """An address that does not give its file: the reason in one line."""


class UnreachableError(TransferError):
    """No server answers at the address: none of its other files need be asked for."""


class _TransientError(Exception):
    """A failure that another attempt may mend."""


class _NoConnectionError(_TransientError):
    """No connection."""


def download(url: str, part: Path, patience: RetryLimits, progress: Progress | None = None) -> None:
    """Complete the file ``part`` from an address, going on where it ends if the server knows ranges.

    ``progress`` is told the bytes on disk and in all (None where the server does not say).

    Raises
    ------
    TransferError
        The server refuses, or the attempts are used up; ``part`` keeps what has arrived.
    """
    failed = 0
    while True:
        before = _size(part)
        try:
            _attempt(url, part, patience.timeout, progress)
        except _TransientError as error:
            failed = 0 if _size(part) > before else failed + 1
            if failed >= patience.tries:
                final = UnreachableError if isinstance(error, _NoConnectionError) else TransferError
                raise final(str(error)) from error
            if failed:
                time.sleep(patience.pause * 2.0 ** (failed - 1))
        else:
            return


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, part: Path, timeout: float, progress: Progress | None) -> None:
    have = _size(part)
    # A compressed transfer would make ranges and lengths mean something else.
    headers = {"User-Agent": "ep-bench", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:  # noqa: S310
            have, total = _byte_range(answer.status, answer.headers, have)
            _append(answer, part, have, total, progress)
    except urllib.error.HTTPError as error:
        _refused(error, part, have)
    except urllib.error.URLError as error:
        raise _NoConnectionError(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(str(error) or type(error).__name__) from error
    except ValueError as error:
        raise TransferError(f"no address: {error}") from error


def _byte_range(status: int, headers: http.client.HTTPMessage, have: int) -> tuple[int, int | None]:
    """Return where the answer's bytes belong and the size of the whole, from the answer's head."""
    if status == http.HTTPStatus.PARTIAL_CONTENT:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", "").strip())
        if not match or int(match[1]) != have:
            raise TransferError(f"the server answers with another range: {headers.get('Content-Range')!r}")
        return have, None if match[2] == "*" else int(match[2])
    length = headers.get("Content-Length")
    return 0, int(length) if length and length.isdigit() else None


def _append(
    answer: http.client.HTTPResponse,
    part: Path,
    start: int,
    total: int | None,
    progress: Progress | None,
) -> None:
    have = start
    with part.open("ab") as file:
        file.truncate(start)
        while chunk := answer.read1(_CHUNK):
            file.write(chunk)
            have += len(chunk)
            if progress:
                progress(have, total)
    if total is not None and have != total:
        raise _TransientError(f"the connection ended after {have} of {total} bytes")


def _refused(error: urllib.error.HTTPError, part: Path, have: int) -> None:
    """Sort an HTTP error: passing, final, or a range asked beyond the file's end."""
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        if error.headers.get("Content-Range", "").strip() == f"bytes */{have}":
            return  # nothing is missing
        part.unlink(missing_ok=True)
        raise _TransientError("the server's file is shorter than what had arrived")
    reason = f"HTTP {error.code} {error.reason}"
    if error.code in _PASSING:
        raise _TransientError(reason) from error
    raise TransferError(reason) from error
