"""Messages between two processes: a JSON header and raw arrays, each with a size limit and a deadline.

A message from a process that has run external code is parsed, never unpickled: ``receive`` returns plain values and
arrays of numbers. ``send_object`` and ``receive_object`` transfer pickled objects; the receiver must trust the sender.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

HEADER_LIMIT = 2**26  # bytes
ARRAYS_LIMIT = 2**32  # bytes of all arrays of a message
_STALL = 30.0  # seconds that a message may take once it has begun, in addition to the time for its bytes
_BYTES_PER_SECOND = 2**20  # the slowest transfer that is accepted
_PREFIX = struct.Struct(">4sI")  # _MAGIC, and the length of the header
_MAGIC = b"EPB1"
_DTYPES = {"<f8": 8, "<i8": 8, "|u1": 1}  # dtypes of arrays, and their sizes in bytes
_MAX_ARRAYS, _MAX_DIMENSIONS, _MAX_DESCRIPTORS = 16, 4, 4


class MessageError(Exception):
    """The bytes received are no message: not the format, too large, or incomplete after the deadline."""


class Message(NamedTuple):
    """A received message; ``descriptors`` are the file descriptors that came with it."""

    header: dict[str, Any]
    arrays: tuple[NDArray[Any], ...] = ()
    descriptors: tuple[int, ...] = ()


class Channel:
    """One end of a connection. ``accepts_descriptors`` is for channels to a trusted process."""

    def __init__(self, descriptor: int, *, accepts_descriptors: bool = False) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.settimeout(_STALL)
        self._accepts_descriptors = accepts_descriptors

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Return both ends of a new connection; no program started later inherits them."""
        first, second = socket.socketpair()
        return cls(first.detach()), cls(second.detach())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def forget(self) -> None:
        """Give up the descriptor without closing it; used in a forked process that has closed all descriptors."""
        self._socket.detach()

    def poll(self, timeout: float | None) -> bool:
        """Return whether a message begins, or the other end is closed, within ``timeout`` seconds (None: no limit)."""
        return bool(ready([self], timeout))

    def send(
        self, header: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = (), descriptors: Sequence[int] = ()
    ) -> None:
        """Send a message. Raises TimeoutError if the other process does not read it, and OSError if it has ended."""
        plain = [np.ascontiguousarray(array) for array in arrays]
        kinds = [{"dtype": array.dtype.str, "shape": array.shape} for array in plain]
        text = json.dumps({"header": header, "arrays": kinds}).encode("ascii")
        if len(text) > HEADER_LIMIT:
            raise MessageError(f"a header of {len(text)} bytes; the limit is {HEADER_LIMIT}")
        parts: list[bytes | memoryview[int]] = [
            _PREFIX.pack(_MAGIC, len(text)) + text,
            *(_bytes(array) for array in plain),
        ]
        deadline = _deadline(sum(map(len, parts)))
        sent = socket.send_fds(self._socket, [parts[0]], list(descriptors)) if descriptors else 0
        for part in (memoryview(parts[0])[sent:], *parts[1:]):
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(part)

    def send_object(self, value: Any, descriptors: Sequence[int] = ()) -> None:
        """Send any object that can be pickled."""
        self.send({}, [np.frombuffer(pickle.dumps(value, protocol=5), dtype=np.uint8)], descriptors)

    def receive(self) -> Message:
        """Return the next message; waits without limit for its first byte.

        Raises EOFError if the other end is closed and MessageError if the bytes are not a complete message.
        """
        self.poll(None)
        deadline = _deadline(_PREFIX.size)
        prefix, descriptors = self._first_bytes(deadline)
        try:
            return self._rest(prefix, descriptors, deadline)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def receive_object(self) -> Any:
        """Return the next object of a trusted sender. Raises EOFError and MessageError as ``receive``."""
        return self.unpickled(self.receive())

    @staticmethod
    def unpickled(message: Message) -> Any:
        """Return the object in a message of a trusted sender."""
        return pickle.loads(message.arrays[0].data)  # noqa: S301 the sender runs no external code

    def _first_bytes(self, deadline: float) -> tuple[bytes, tuple[int, ...]]:
        if not self._accepts_descriptors:
            return bytes(self._exactly(bytearray(_PREFIX.size), deadline)), ()
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        found, descriptors, _, _ = socket.recv_fds(self._socket, _PREFIX.size, _MAX_DESCRIPTORS, flags)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if not found:
            raise EOFError
        return found + bytes(self._exactly(bytearray(_PREFIX.size - len(found)), deadline)), tuple(descriptors)

    def _rest(self, prefix: bytes, descriptors: tuple[int, ...], deadline: float) -> Message:
        magic, length = _PREFIX.unpack(prefix)
        if magic != _MAGIC or length > HEADER_LIMIT:
            raise MessageError("bytes that are no message")
        header, kinds = _parsed(self._exactly(bytearray(length), deadline))
        arrays = [np.empty(shape, dtype) for dtype, shape in kinds]
        deadline = _deadline(sum(array.nbytes for array in arrays))
        for array in arrays:
            self._exactly(_bytes(array), deadline)
        return Message(header, tuple(arrays), descriptors)

    def _exactly(self, buffer: bytearray | memoryview, deadline: float) -> bytearray | memoryview:
        """Fill a buffer. Raises EOFError if the other end is closed before its first byte, else MessageError."""
        view, filled = memoryview(buffer), 0
        while filled < len(view):
            self._socket.settimeout(_left(deadline))
            try:
                count = self._socket.recv_into(view[filled:])
            except TimeoutError:
                raise MessageError("an incomplete message") from None
            if not count:
                raise EOFError
            filled += count
        return buffer


def ready(channels: Sequence[Channel], timeout: float | None) -> list[Channel]:
    """Return the channels with a message, or with a closed other end, within ``timeout`` seconds (None: no limit)."""
    poll, by_descriptor = select.poll(), {channel.fileno(): channel for channel in channels}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if timeout is None else math.ceil(1000.0 * timeout))
    return [by_descriptor[descriptor] for descriptor, _ in found]


def _parsed(text: bytearray | memoryview) -> tuple[dict[str, Any], list[tuple[str, tuple[int, ...]]]]:
    """Return the header, and the dtype and shape of each array. Raises MessageError if the text has another form."""
    with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        found = json.loads(bytes(text))
        header = found["header"]
        kinds = [(str(kind["dtype"]), tuple(int(size) for size in kind["shape"])) for kind in found["arrays"]]
        small = len(kinds) <= _MAX_ARRAYS and all(len(shape) <= _MAX_DIMENSIONS for _, shape in kinds)
        known = all(dtype in _DTYPES and min(shape, default=0) >= 0 for dtype, shape in kinds)
        if isinstance(header, dict) and small and known:
            if sum(_DTYPES[dtype] * math.prod(shape) for dtype, shape in kinds) > ARRAYS_LIMIT:
                raise MessageError(f"arrays of more than {ARRAYS_LIMIT >> 30} GiB")
            return header, kinds
    raise MessageError("bytes that are no message")


def _bytes(array: NDArray[Any]) -> memoryview[int]:
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _deadline(size: int) -> float:
    return time.monotonic() + _STALL + size / _BYTES_PER_SECOND


def _left(deadline: float) -> float:
    """Return the seconds until a deadline. Raises TimeoutError if there are none."""
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise MessageError("an incomplete message")
    return left
