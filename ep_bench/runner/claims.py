"""Claims of runs on cells, so that several runs can share a results folder without repeating work.

A claim is a file ``cells/claims/<cell>.claim``, created exclusively, that names a run. A run locks its own file
``<run>.run`` while it is alive. The kernel releases the lock however the run ends, so that runs on the same machine
detect its end at once. Between machines, locks may not work, and the modification time of that file is used. Claims of
a dead run are free.

Two runs compute the same cell only if one of them was suspended or disconnected for longer than ``SILENCE``, as seen
from another machine. Both then store the same numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ep_bench.errors import UserError
from ep_bench.regular_files import parse_json, read_bytes
from ep_bench.results.forms import Run, problem
from ep_bench.results.store import CELLS

CLAIMS = "claims"
SILENCE = 120.0  # seconds without a heartbeat after which a run on another machine counts as dead
_HEARTBEAT = 10.0  # seconds between two heartbeats
_LOCK = "takeover.lock"
_MAX_BYTES = 2**16  # of a claim or of the file of a run
_MODE = 0o666  # restricted by the umask: several users may share a folder


@dataclass(frozen=True)
class LiveRun:
    """A live run: its host and process, its start, and the cells that it has claimed."""

    host: str
    pid: int
    started: str  # UTC
    cells: tuple[str, ...]


class Claims:
    """The claims of this run on the cells of a results folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CELLS / CLAIMS
        self._run = f"{uuid.uuid4().hex}.run"
        self._claimed: set[str] = set()
        self._stopped = threading.Event()
        self._heartbeats = threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True)
        self._started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._announce()
        self._heartbeats.start()
        try:
            with _exclusive(self._folder / _LOCK):
                self._remove_dead()
        except BaseException:  # the caller's block is not entered, and thus not left
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        """Release all claims, and end the announcement of this run."""
        self._stopped.set()
        self._heartbeats.join()  # it may be replacing the descriptor that is closed below
        for key in tuple(self._claimed):
            self.release(key)
        with contextlib.suppress(OSError):
            (self._folder / self._run).unlink()
        os.close(self._descriptor)

    def take(self, key: str) -> bool:
        """Claim a cell for this run; False if a live run has it. Raises OSError if the folder is not writable."""
        if key in self._claimed or self._create(key):
            return True
        if self._holder(key) != "dead":
            return False
        with _exclusive(self._folder / _LOCK):  # check again under the lock: another run may have taken the claim
            if self._holder(key) == "dead":
                self._claim(key).unlink()
            return self._create(key)

    def release(self, key: str) -> None:
        """Release a claim after the cell is stored, or if it will not be computed."""
        self._claimed.discard(key)
        path = self._claim(key)
        with contextlib.suppress(OSError):
            if _text(path) == self._run:  # otherwise another run took it over
                path.unlink()

    def _claim(self, key: str) -> Path:
        return self._folder / f"{key}.claim"

    def _create(self, key: str) -> bool:
        path = self._claim(key)
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
        except FileExistsError:
            return False
        try:
            os.write(descriptor, self._run.encode())
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        self._claimed.add(key)
        return True

    def _holder(self, key: str) -> Literal["none", "live", "dead"]:
        """Return the state of a claim; an incomplete or unreadable claim counts as live."""
        path = self._claim(key)
        try:
            name = _text(path)
        except FileNotFoundError:
            return "none"
        except OSError:
            _require_claim(path)
            return "live"
        alive = _is_alive(self._folder / name) if name else _age(path) < SILENCE
        return "live" if alive else "dead"

    def _announce(self) -> None:
        """Write the file that announces this run, locked before other runs can see it."""
        draft = self._folder / f"{self._run}.draft"
        descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_RDWR, _MODE)
        _lock(descriptor)
        about = {"machine": _machine(), "host": socket.gethostname(), "pid": os.getpid(), "started": self._started}
        os.write(descriptor, json.dumps(about).encode())
        draft.rename(self._folder / self._run)
        before, self._descriptor = self._descriptor, descriptor
        if before >= 0:
            os.close(before)

    def _send_heartbeats(self) -> None:
        while not self._stopped.wait(_HEARTBEAT):
            with contextlib.suppress(OSError):
                try:
                    os.utime(self._folder / self._run)
                except (
                    FileNotFoundError
                ):  # another machine declared this run dead after a suspension or network failure
                    self._announce()

    def _remove_dead(self) -> None:
        """Remove the files of dead runs."""
        for path in self._folder.glob("*.claim"):
            if self._holder(path.stem) == "dead":
                path.unlink(missing_ok=True)
        for path in self._folder.glob("*.run"):
            if path.name != self._run and not _is_alive(path):
                path.unlink(missing_ok=True)
        for path in (*self._folder.glob("*.draft"), *self._folder.glob("*.probe")):
            if _age(path) > SILENCE:
                path.unlink(missing_ok=True)


def running(folder: Path) -> list[LiveRun]:
    """Return the live runs of a results folder, without writing to it."""
    claims = folder / CELLS / CLAIMS
    cells: dict[str, list[str]] = {}
    for path in claims.glob("*.claim"):
        with contextlib.suppress(OSError):
            cells.setdefault(_text(path), []).append(path.stem)
    found = []
    for path in sorted(claims.glob("*.run")):
        with contextlib.suppress(OSError):
            about = _about(path)
            if about and _is_alive(path, write=False):
                found.append(LiveRun(about["host"], about["pid"], about["started"], tuple(cells.get(path.name, ()))))
    return found


def _is_alive(run: Path, *, write: bool = True) -> bool:
    """Return whether the run with this file is alive; without ``write``, the age is measured by the local clock."""
    try:
        about = _about(run)
    except FileNotFoundError:
        return False
    except OSError:  # locked files cannot be read on some network file systems, such as CIFS
        return _age(run, write=write) < SILENCE
    if about is None:
        return False
    if about.get("machine") == _machine():
        locked = _is_locked(run)
        if locked is not None:
            return locked
    return _age(run, write=write) < SILENCE


def _about(run: Path) -> dict[str, Any] | None:
    """Return what the file of a run states, or None if it is damaged. Raises OSError if it cannot be read."""
    text = _text(run)
    try:
        about = parse_json(text)
    except ValueError:
        return None
    return None if problem(about, Run) else about


def _require_claim(path: Path) -> None:
    """Raise UserError if the path is no regular file, which no run has written."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise UserError("is no claim of a run, which is a regular file; remove it", where=str(path))


def _text(path: Path) -> str:
    """Return the text of a claim or of the file of a run; bytes that are not UTF-8 become question marks."""
    try:
        return read_bytes(path, _MAX_BYTES).decode("utf-8", errors="replace")
    except ValueError:
        return "?"


def _is_locked(path: Path) -> bool | None:
    """Return whether a process has locked a file, or None if the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _age(path: Path, *, write: bool = True) -> float:
    """Return the seconds since a file was modified; with ``write``, measured by the clock of its file system."""
    now = time.time()
    try:
        touched = path.stat().st_mtime
        if write:
            probe = path.with_name(f"{uuid.uuid4().hex}.probe")
            probe.touch()
            now = probe.stat().st_mtime
            probe.unlink()
    except FileNotFoundError:
        return float("inf")
    age = now - touched
    return age if age > -SILENCE else float("inf")  # a time in the future is not that of a heartbeat


def _lock(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # without file locks, heartbeats have to suffice
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, _MODE)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@cache
def _machine() -> str:
    """Return an identifier of this machine: its name and, if known, the id of its last boot."""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{socket.gethostname()} {boot}"
