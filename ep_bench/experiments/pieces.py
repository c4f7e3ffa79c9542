"""The pieces of a long experiment: several at a time, each kept when it is done, so that nothing finished is lost.

A piece is a function's value. An experiment that asks for them by ``each`` goes on where an earlier run ended, as
long as the call, the code and the packages are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from ep_bench import store
from ep_bench.environment import environment


class Place(NamedTuple):
    """Where pieces are kept, nowhere by default, and how many processes compute them."""

    folder: Path | None = None
    jobs: int = 1


NOWHERE = Place()
_place = ContextVar("place", default=NOWHERE)


@contextmanager
def kept_in(folder: Path, jobs: int = 1) -> Iterator[None]:
    """Keep the pieces that are asked for within, which ``jobs`` processes compute, in ``folder``."""
    token = _place.set(Place(folder, jobs))
    try:
        yield
    finally:
        _place.reset(token)


def each(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return ``function(*call)`` of the calls, in their order. Arguments and values are those of JSON, or NaN."""
    place = _place.get()
    found: list[Any] = Parallel(n_jobs=place.jobs)(delayed(_piece)(function, call, place.folder) for call in calls)
    return found


def _piece(function: Callable[..., Any], call: tuple[Any, ...], folder: Path | None) -> Any:
    """Return one value, that of an earlier run if there is one."""
    if folder is None:
        return function(*call)
    told = environment()
    factors = {
        "function": f"{function.__module__}.{function.__qualname__}", "call": list(call),
        "revision": told["revision"], "packages": told["packages"],
    }  # fmt: skip
    path = folder / f"{store.factor_hash(factors)}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not there yet, or damaged
        value = function(*call)
        store.write_atomically(path, json.dumps(value))
        return value
