"""The process of an external method: fits, predicts, and answers for its densities.

It is forked from a warm server, receives training data and test inputs from the worker process, and returns plain
values and arrays. Test targets arrive after ``predict`` only, for the log density. A process runs one cell.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from ep_bench import adapters
from ep_bench.predictions import DensityPrediction
from ep_bench.processes.channel import Channel
from ep_bench.processes.cpu_time import CPUTimer
from ep_bench.processes.memory import PeakMemory
from ep_bench.runner import chain_summary
from ep_bench.runner.local_method import LocalMethod, MethodSetup, plain_defaults, with_objects
from ep_bench.runner.prediction_codec import encode
from ep_bench.runner.records import TRACEBACK_LENGTH, one_line, printable, reason_of, seed_globals, status_of

_PACKAGE = str(Path(adapters.__file__).parents[1])
Answer = tuple[dict[str, Any], list[NDArray[Any]]]


def main(channel: Channel) -> None:
    """Answer requests until the supervisor closes the connection."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        process = MethodProcess()
        while True:
            request = channel.receive_object()
            header, arrays = _answer(process, request)
            sys.stdout.flush()
            channel.send(header, arrays)


def _answer(process: MethodProcess, request: Mapping[str, Any]) -> Answer:
    """Return what a request asks for, or the error of the method, with its convergence warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        try:
            header, arrays = process.handle(**request)
        except BaseException as error:  # noqa: BLE001 a method may raise anything; the record stores it
            header, arrays = {"error": _description(error)}, []
    found = [w for w in warned if "Convergence" in w.category.__name__][:1]
    return {**header, "warnings": [one_line(str(w.message)) for w in found]}, arrays


def _description(error: BaseException) -> dict[str, str]:
    try:
        text = printable(traceback.format_exc())[-TRACEBACK_LENGTH:]
    except BaseException:  # noqa: BLE001
        text = ""
    reason = f"{one_line(reason_of(error))} {one_line(_place(error))}".rstrip()
    return {"status": status_of(error), "reason": reason, "traceback": text}


def _place(error: BaseException) -> str:
    """Return file and line of the method's own code where an error was raised, in brackets; empty if there is none."""
    own: list[traceback.FrameSummary] = []
    libraries = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), _PACKAGE)
    with contextlib.suppress(Exception):  # a method may raise an object of any kind
        own = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((*libraries, "<"))]
    return f"({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


@dataclass
class MethodProcess:
    """The model of the current cell, and the densities that it predicted."""

    method: LocalMethod | None = None
    setup: MethodSetup | None = None
    model: Any = None
    defaults: dict[str, Any] = field(default_factory=dict)
    densities: dict[int, DensityPrediction] = field(default_factory=dict)
    peak: PeakMemory | None = None

    def handle(self, what: str, **arguments: Any) -> Answer:
        """Call the function of a request."""
        action: Callable[..., Answer] = getattr(self, f"on_{what}")
        return action(**arguments)

    def on_setup(self, setup: MethodSetup, copies: Mapping[str, str]) -> Answer:
        """Import the method; return its version."""
        adapters.use_copies(copies)
        self.setup, self.peak = setup, PeakMemory()
        self.method = LocalMethod(setup)
        return {"version": self.method.version(), "is_class": self.method.is_class}, []

    def on_load(self, variants: list[dict[str, Any]], strict: bool) -> Answer:
        """Import modules and compile kernels."""
        assert self.method is not None  # noqa: S101 set by on_setup
        return {"seconds": self.method.load(variants, strict=strict)}, []

    def on_defaults(self, names: list[str]) -> Answer:
        """Return the defaults of options."""
        assert self.method is not None  # noqa: S101
        self.defaults = self.method.defaults(names)
        return {"defaults": plain_defaults(self.defaults)}, []

    def on_build(self, options: Mapping[str, Any]) -> Answer:
        """Construct the model."""
        assert self.method is not None  # noqa: S101
        self.densities.clear()
        self.model = self.method.build(with_objects(options, self.defaults))
        return {}, []

    def on_fit(self, X: NDArray[Any], y: NDArray[Any]) -> Answer:
        """Fit the model to X (n, d) and y (n,); return the times and the trace."""
        assert self.setup is not None  # noqa: S101
        seed_globals(self.setup.seed)
        cpu, started = CPUTimer(), perf_counter()
        self.model.fit(X, y)
        times = {"seconds": perf_counter() - started, "cpu_seconds": cpu.seconds()}
        trace = {str(name): [float(v) for v in values] for name, values in self.model.trace_.items()}
        has_summary = any(hasattr(self.model, name) for name in ("chains_", "diagnostics_", "converged_"))
        return {**times, "trace": trace, "has_summary": has_summary}, []

    def on_predict(self, X: NDArray[Any], handle: int, levels: list[float], released: list[int]) -> Answer:
        """Predict at X (n, d); a density is kept under ``handle``."""
        for old in released:
            self.densities.pop(old, None)
        cpu, started = CPUTimer(), perf_counter()
        prediction = self.model.predict_dist(X)
        times = {"seconds": perf_counter() - started, "cpu_seconds": cpu.seconds()}
        if isinstance(prediction, DensityPrediction):
            self.densities[handle] = prediction
        header, arrays = encode(prediction, levels)
        return {**header, **times}, arrays

    def on_logpdf(self, handle: int, y: NDArray[Any]) -> Answer:
        """Return log densities at y (N,)."""
        return {}, [self.densities[handle].logpdf(y)]

    def on_cdf(self, handle: int, y: NDArray[Any]) -> Answer:
        """Return the distribution function at y, (N,) or (K, N)."""
        return {}, [self.densities[handle].cdf(y)]

    def on_quantile(self, handle: int, p: float) -> Answer:
        """Return quantiles (N,)."""
        return {}, [self.densities[handle].quantile(p)]

    def on_summary(self, X: NDArray[Any]) -> Answer:
        """Return notes on chains and diagnostics, for test inputs X (n, d), and whether the fit converged."""
        assert self.method is not None  # noqa: S101
        met = getattr(self.model, "converged_", None)
        notes = chain_summary.of(self.model, X) | ({} if self.method.is_class else chain_summary.of_fit(self.model))
        return {"notes": notes, "converged": None if met is None else bool(met)}, []

    def on_end(self) -> Answer:
        """Return the peak memory in MiB."""
        return {"peak_mb": 0.0 if self.peak is None else self.peak.megabytes()}, []
