"""Checkpoints of a long experiment: parts that are computed in parallel, each stored when it is finished.

An experiment passes a function and its calls to ``each``. An interrupted run continues with the stored values if the
experiment, its version and options, the seed, the versions of its methods and the calls are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ep_bench.experiments.study_folder import relative_to, study_folder
from ep_bench.results import store

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class CheckpointFolder:
    """Where checkpoints are stored, and how many processes compute them; nothing is stored without a folder.

    ``report`` is called with the number of finished parts and of all parts, first before a part is computed.
    """

    folder: Path | None = None
    factors: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 1
    report: Report = lambda done, total: None  # noqa: ARG005

    def path(self, function: Callable[..., Any], call: tuple[Any, ...]) -> Path | None:
        """Return the file of a call's value; its name is a hash of all factors that determine the value."""
        if self.folder is None:
            return None
        key = store.factor_hash({**self.factors, "function": function.__name__, "call": list(call)})
        return self.folder / f"{key}.json"


NO_CHECKPOINTS = CheckpointFolder()
_current = ContextVar("checkpoints", default=NO_CHECKPOINTS)


@contextmanager
def kept_in(folder: Path, factors: Mapping[str, Any], jobs: int = 1, report: Report | None = None) -> Iterator[None]:
    """Store the checkpoints of the ``with`` block in ``folder``; ``jobs`` processes compute them.

    ``factors``, values of JSON, determine the values of all calls: experiment, version, options, method versions.
    """
    made = CheckpointFolder(folder, factors, jobs)
    token = _current.set(made if report is None else replace(made, report=report))
    try:
        yield
    finally:
        _current.reset(token)


def remove_failed(folder: Path) -> int:
    """Remove the checkpoints of parts that failed, whose value has a ``failure``; return their number."""
    failed = [path for path in folder.glob("*.json") if _has_failed(_stored(path))]
    for path in failed:
        path.unlink(missing_ok=True)
    return len(failed)


def _has_failed(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("failure"))


def each(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], check: Callable[[Any], None] | None = None
) -> list[Any]:
    """Return ``function(*call)`` for each call, in order. Arguments and values are those of JSON, or NaN.

    ``check`` is called with each value as soon as it is known; an error that it raises ends the computation.
    ``study_folder()`` is the same in all processes.
    Linear algebra has one thread per process, as in the cells of a study.
    """
    from joblib import Parallel, delayed
    from threadpoolctl import threadpool_limits

    checkpoints = _current.get()
    places = [(call, checkpoints.path(function, call)) for call in calls]
    values = [None if path is None else _stored(path) for _, path in places]
    waiting = [i for i, value in enumerate(values) if value is None]
    checkpoints.report(len(values) - len(waiting), len(values))
    for value in values:
        if check is not None and value is not None:
            check(value)
    study = study_folder()  # here, because joblib reads the tasks in another thread
    tasks = (delayed(_value)(study, i, function, *places[i]) for i in waiting)
    pool = Parallel(n_jobs=checkpoints.jobs, return_as="generator_unordered")
    with threadpool_limits(1), closing(pool(tasks)) as found:  # joblib limits the threads of other processes only
        for done, (i, value) in enumerate(found, start=len(values) - len(waiting) + 1):
            values[i] = value
            checkpoints.report(done, len(values))
            if check is not None:
                check(value)
    return values


def _value(
    study: Path, place: int, function: Callable[..., Any], call: tuple[Any, ...], path: Path | None
) -> tuple[int, Any]:
    """Return the place and the value of a call: the one that another run has stored meanwhile, or a new one."""
    if path is not None and (stored := _stored(path)) is not None:
        return place, stored
    with relative_to(study):
        value = function(*call)
    if path is not None:
        with suppress(FileNotFoundError):  # another run of the study has finished and removed the folder
            store.write_atomically(path, json.dumps(value))
    return place, value


def _stored(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not computed yet, or damaged
        return None
