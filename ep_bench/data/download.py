"""Download one address to one file over HTTP; an interrupted download is resumed by ranges."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Progress = Callable[[int, int | None], None]
MAX_BYTES = 2**30  # by default, the largest file that is downloaded
_CHUNK = 1 << 16
_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # HTTP statuses after which another attempt may succeed


class TransferError(Exception):
    """An address does not provide its file; the message is one line."""


class TransientError(TransferError, ValueError):
    """A failure after which another attempt may succeed; a ValueError, since pooch repeats downloads after these."""


class UnreachableError(TransientError):
    """No server answers at the address."""


def download(
    url: str,
    part: Path,
    timeout: float,
    progress: Progress | None = None,
    *,
    limit: int = MAX_BYTES,
    insecure: bool = False,
) -> None:
    """Complete the file ``part`` from an address.

    The download continues at the end of ``part`` if the server supports ranges. It is repeated as long as each attempt
    adds bytes.

    Parameters
    ----------
    url : address
    part : file that may hold the first bytes of a previous attempt
    timeout : seconds to wait for a connection, and for further bytes
    limit : largest number of bytes of the file
    insecure : whether the address may use http; a redirect never changes the scheme, except from http to https
    progress : function of the number of bytes on disk and in total; the latter is None if the server does not report it

    Raises
    ------
    TransferError
        The server refuses the request.
    TransientError
        An attempt failed without adding bytes; ``part`` keeps the bytes that have arrived.
    """
    _require_scheme(url, insecure=insecure)
    while True:
        before = _size(part)
        try:
            return _attempt(url, part, timeout, progress, limit)
        except TransientError:
            if _size(part) <= before:
                raise


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Refuses a redirect to another scheme, except from http to https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request for the new address."""
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in {before, "https"}:
            raise TransferError(f"the server redirects to {after or 'no scheme'}: {newurl[:200]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


SCHEMES = frozenset({"https"})  # of the addresses on cards; a mirror of the user may also have http


def _require_scheme(url: str, *, insecure: bool) -> None:
    try:
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
    except ValueError as error:
        raise TransferError(f"not a valid address: {error}") from error
    if scheme not in (SCHEMES | {"http"} if insecure else SCHEMES) or not host:
        allowed = "http:// or https://" if insecure else "https://"
        raise TransferError(f"not a valid address; it must begin with {allowed} and name a server")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, part: Path, timeout: float, progress: Progress | None, limit: int) -> None:
    have = _size(part)
    # Ranges and lengths would refer to compressed bytes if the transfer were compressed.
    headers = {"User-Agent": "ep-bench", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        opener = urllib.request.build_opener(_SameScheme)
        with opener.open(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:  # noqa: S310
            have, total = _byte_range(answer.status, answer.headers, have)
            _append(answer, part, have, total, progress, limit)
    except urllib.error.HTTPError as error:
        _raise_refusal(error, part, have)
    except urllib.error.URLError as error:
        raise UnreachableError(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise TransientError(str(error) or type(error).__name__) from error
    except TransferError:
        raise
    except ValueError as error:
        raise TransferError(f"not a valid address: {error}") from error


def _byte_range(status: int, headers: http.client.HTTPMessage, have: int) -> tuple[int, int | None]:
    """Return the position of the first byte of the answer and the size of the whole file."""
    if status == http.HTTPStatus.PARTIAL_CONTENT:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", "").strip())
        if not match or int(match[1]) != have:
            raise TransferError(f"the server sent another range than requested: {headers.get('Content-Range')!r}")
        return have, None if match[2] == "*" else int(match[2])
    length = headers.get("Content-Length")
    return 0, int(length) if length and length.isdigit() else None


def _append(
    answer: http.client.HTTPResponse,
    part: Path,
    start: int,
    total: int | None,
    progress: Progress | None,
    limit: int,
) -> None:
    if total is not None and total > limit:
        raise TransferError(f"the file has {total} bytes; at most {limit} are expected")
    have = start
    with part.open("ab") as file:
        file.truncate(start)
        while chunk := answer.read1(_CHUNK):
            file.write(chunk)
            have += len(chunk)
            if have > limit:
                file.truncate(0)
                raise TransferError(f"the server sends more than the {limit} bytes that are expected")
            if progress:
                progress(have, total)
    if total is not None and have != total:
        raise TransientError(f"the connection ended after {have} of {total} bytes")


def _raise_refusal(error: urllib.error.HTTPError, part: Path, have: int) -> None:
    """Raise the exception for an HTTP error, unless it reports that ``part`` is complete."""
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        if error.headers.get("Content-Range", "").strip() == f"bytes */{have}":
            return
        part.unlink(missing_ok=True)
        raise TransientError("the server's file is shorter than the partial download") from error
    kind = TransientError if error.code in _TEMPORARY else TransferError
    raise kind(f"HTTP {error.code} {error.reason}") from error
