"""The pieces of a long experiment: several at a time, each kept when it is done, so that nothing finished is lost.

A piece is a function's value. An experiment that asks for them by ``each`` goes on where an earlier run ended, as
long as the call, the code and the packages are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench.results import store
from ep_bench.results.provenance import code, environment


class CheckpointFolder(NamedTuple):
    """Where pieces are kept, nowhere by default, and how many processes compute them."""

    folder: Path | None = None
    jobs: int = 1


NO_CHECKPOINTS = CheckpointFolder()
_place = ContextVar("place", default=NO_CHECKPOINTS)


@contextmanager
def kept_in(folder: Path, jobs: int = 1) -> Iterator[None]:
    """Keep the pieces that are asked for within, which ``jobs`` processes compute, in ``folder``."""
    token = _place.set(CheckpointFolder(folder, jobs))
    try:
        yield
    finally:
        _place.reset(token)


def each(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return ``function(*call)`` of the calls, in their order. Arguments and values are those of JSON, or NaN."""
    from joblib import Parallel, delayed

    folder, jobs = _place.get()
    tasks = (delayed(_piece)(function, call, folder and folder / _file(function, call)) for call in calls)
    found: list[Any] = Parallel(n_jobs=jobs)(tasks)
    return found


def _file(function: Callable[..., Any], call: tuple[Any, ...]) -> str:
    """Return the name of a piece's file, which all that its value hangs on makes another."""
    factors = {
        "function": f"{function.__module__}.{function.__qualname__}", "call": list(call), "code": code(),
        "packages": environment()["packages"],
    }  # fmt: skip
    return f"{store.factor_hash(factors)}.json"


def _piece(function: Callable[..., Any], call: tuple[Any, ...], path: Path | None) -> Any:
    """Return one value, that of an earlier run if there is one."""
    kept = None if path is None else _kept(path)
    if kept is not None:
        return kept
    value = function(*call)
    if path is not None:
        with suppress(FileNotFoundError):  # another run of the study is whole and has removed its pieces
            store.write_atomically(path, json.dumps(value))
    return value


def _kept(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not there yet, or damaged
        return None
