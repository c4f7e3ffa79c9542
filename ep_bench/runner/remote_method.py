"""An external method in its own process, as the worker process sees it: the interface of ``LocalMethod``."""

from __future__ import annotations

import math
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.predictions import AnyPrediction
from ep_bench.processes.channel import Channel, Message, MessageError
from ep_bench.runner.local_method import MethodDefault, MethodSetup, Options
from ep_bench.runner.prediction_codec import decode
from ep_bench.runner.records import TRACEBACK_LENGTH, CellError, one_line, printable
from ep_bench.types import Array

_STATUSES = ("failed", "memory")
_INVALID = "its process sent an invalid answer"


class MethodLostError(BaseException):
    """The process of the method has ended, or its answers are invalid.

    It is a ``BaseException`` so that no handler of a method's exceptions catches it.
    """


class MethodConvergenceWarning(UserWarning):
    """A convergence warning that the method issued in its process."""


class RemoteCellError(CellError):
    """An exception of the method in its process."""

    def __init__(self, status: str, reason: str, printed: str) -> None:
        super().__init__(status, reason)
        self.printed = printed


class RemoteMethod:
    """A method that is built in another process."""

    def __init__(self, channel: Channel, pid: int, setup: MethodSetup, copies: Mapping[str, str]) -> None:
        self._channel, self.cpu_pid = channel, pid
        header = self.ask("setup", setup=setup, copies=dict(copies)).header
        self._version, self._is_class = header.get("version"), header.get("is_class") is True

    def version(self) -> str:
        """Return the version of the method, as it was imported."""
        return one_line(str(self._version))

    def load(self, variants: Sequence[Options], *, strict: bool) -> float:
        """Import the modules and compile the kernels of options; return the time of compilation in seconds."""
        if strict and self._is_class:  # a class has no kernels of ours, and its import was part of the setup
            return 0.0
        return self.number(self.ask("load", variants=[dict(options) for options in variants], strict=strict), "seconds")

    def defaults(self, names: Collection[str]) -> dict[str, Any]:
        """Return the defaults of the class; an object is represented by a ``MethodDefault``."""
        found = self.ask("defaults", names=list(names)).header.get("defaults")
        if not isinstance(found, dict) or not found.keys() <= set(names):
            raise MethodLostError(_INVALID)
        return {
            name: value["value"] if isinstance(value, dict) and "value" in value else MethodDefault(name)
            for name, value in found.items()
        }

    def build(self, options: Options) -> RemoteModel:
        """Return an unfitted model."""
        self.ask("build", options=dict(options))
        return RemoteModel(self)

    def end(self) -> float:
        """Drop the model in the process; return the peak memory of the process in MiB."""
        return self.number(self.ask("end"), "peak_mb")

    def ask(self, what: str, **arguments: Any) -> Message:
        """Send a request and return its answer. Raises CellError if the method raised an exception."""
        try:
            self._channel.send_object({"what": what, **arguments})
            answer = self._channel.receive()
        except (EOFError, OSError) as error:
            raise MethodLostError("") from error
        except MessageError as error:
            raise MethodLostError(f"{_INVALID}: {error}") from error
        found = answer.header.get("warnings")
        for warning in found if isinstance(found, list) else ():
            warnings.warn(one_line(str(warning)), MethodConvergenceWarning, stacklevel=1)
        if "error" in answer.header:
            raise _error(answer.header["error"])
        return answer

    @staticmethod
    def number(answer: Message, name: str, maximum: float = math.inf) -> float:
        """Return a number of an answer, from 0 to ``maximum``."""
        value = answer.header.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
            raise MethodLostError(f"{_INVALID}: no {name}")
        return min(float(value), maximum)


def _error(found: Any) -> RemoteCellError:
    if not isinstance(found, dict):
        raise MethodLostError(_INVALID)
    status = found.get("status")
    reason = one_line(str(found.get("reason", "")))
    printed = printable(str(found.get("traceback", "")))[-TRACEBACK_LENGTH:]
    return RemoteCellError(status if status in _STATUSES else "failed", reason, printed)


class RemoteModel:
    """A model in another process, with the interface of the adapters."""

    def __init__(self, method: RemoteMethod) -> None:
        self._method = method
        self._next_handle = 0
        self._released: list[int] = []
        self._has_summary = False
        self.trace_: dict[str, list[float]] = {}
        self.times: dict[str, float] = {}  # of the last fit and of the first prediction after it, as in a row

    def fit(self, X: Array, y: Array) -> RemoteModel:
        """Fit to inputs X (n, d) and targets y (n,)."""
        self.times.clear()
        header = self._times("fit", lambda: self._method.ask("fit", X=X, y=y)).header
        self._has_summary = header.get("has_summary") is True
        self.trace_ = _trace(header.get("trace"))
        return self

    def predict_dist(self, X: Array, levels: Sequence[float] = ()) -> AnyPrediction:
        """Return the prediction at inputs X (n, d); ``levels`` are quantiles of a density to fetch with it."""
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        released, self._released = self._released, []
        answer = self._times(
            "predict",
            lambda: self._method.ask("predict", X=X, handle=handle, levels=list(levels), released=released),
        )
        density = _RemoteDensity(self._method, handle)
        try:
            prediction = decode(answer.header, answer.arrays, len(X), levels, density)
        except (ValueError, TypeError, IndexError) as error:
            raise CellError("failed", f"{type(error).__name__}: {error}") from error
        weakref.finalize(density, self._released.append, handle)
        return prediction

    def summarise(self, X: Array) -> dict[str, Any]:
        """Return notes on chains and diagnostics for test inputs X (n, d), as ``chain_summary.of`` does."""
        if not self._has_summary:
            return {}
        header = self._method.ask("summary", X=X).header
        met, notes = header.get("converged"), header.get("notes")
        if isinstance(met, bool):
            self.converged_ = met
        return notes if isinstance(notes, dict) and _are_notes(notes) else {}

    def _times(self, what: str, ask: Callable[[], Message]) -> Message:
        """Store the times of a request; the wall time is at most the one measured here."""
        started = time.perf_counter()
        answer = ask()
        wall = time.perf_counter() - started
        for name, limit in (("seconds", wall), ("cpu_seconds", math.inf)):
            self.times.setdefault(f"{what}_{name}", RemoteMethod.number(answer, name, limit))
        return answer


class _RemoteDensity:
    """The functions of a density that another process predicted."""

    def __init__(self, method: RemoteMethod, handle: int) -> None:
        self._method, self._handle = method, handle

    def logpdf(self, y: Array) -> Array:
        return self._array("logpdf", np.shape(y), y=y)

    def cdf(self, y: Array) -> Array:
        return self._array("cdf", np.shape(y), y=y)

    def quantile(self, p: float) -> Array:
        return self._array("quantile", None, p=p)

    def _array(self, what: str, shape: tuple[int, ...] | None, **arguments: Any) -> NDArray[np.float64]:
        arrays = self._method.ask(what, handle=self._handle, **arguments).arrays
        if len(arrays) != 1 or arrays[0].dtype != np.float64 or shape not in {None, arrays[0].shape}:
            raise MethodLostError(f"{_INVALID}: no {what}")
        return arrays[0]


def _trace(found: Any) -> dict[str, list[float]]:
    try:
        return {one_line(str(name)): [float(value) for value in values] for name, values in found.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise MethodLostError(f"{_INVALID}: no trace") from error


def _are_notes(notes: Mapping[str, Any]) -> bool:
    """Return whether notes have the form of ``chain_summary.of``."""
    diagnostics, chains = notes.get("diagnostics", {}), notes.get("chains", {})
    known = notes.keys() <= {"diagnostics", "chains", "criterion", "start_evidences"}
    evidences = notes.get("start_evidences", [])
    if not known or not all(isinstance(x, dict) for x in (diagnostics, chains)):
        return False
    if not isinstance(notes.get("criterion", ""), str) or not (
        isinstance(evidences, list) and all(map(_is_number, evidences))
    ):
        return False
    return all(map(_is_number, diagnostics.values())) and all(map(_is_chain, chains.values()))


def _is_chain(chain: Any) -> bool:
    if not isinstance(chain, dict) or not isinstance(chain.get("draws"), int) or chain.keys() != {"draws", "values"}:
        return False
    rows = chain["values"]
    return isinstance(rows, list) and all(isinstance(row, list) and all(map(_is_number, row)) for row in rows)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)
