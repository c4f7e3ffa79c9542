"""Checkpoints of a long experiment: parts that are computed in parallel, each stored when it is finished.

An experiment passes a function and its calls to ``each``. An interrupted run continues with the stored values if the
experiment, its version and options, the seed, the versions of its methods and the calls are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

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
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    check: Callable[[Any], None] | None = None,
    lost: Callable[[tuple[Any, ...], str], Any] | None = None,
) -> list[Any]:
    """Return ``function(*call)`` for each call, in order. Arguments and values are those of JSON, or NaN.

    ``check`` is called with each value as soon as it is known; an error that it raises ends the computation.
    ``lost`` returns the value of a call that ended its process, from the call and a reason. Without ``lost``, or
    with one job, such an end is that of the computation.
    ``study_folder()`` is the same in all processes.
    Linear algebra has one thread per process, as in the cells of a study.
    """
    checkpoints = _current.get()
    tasks = [_Task(i, function, call, checkpoints.path(function, call)) for i, call in enumerate(calls)]
    values = [None if task.path is None else _stored(task.path) for task in tasks]
    waiting = [task for task, value in zip(tasks, values, strict=True) if value is None]
    checkpoints.report(len(values) - len(waiting), len(values))
    for value in values:
        if check is not None and value is not None:
            check(value)
    found = _computed(waiting, checkpoints.jobs, None if checkpoints.jobs == 1 else lost)
    with closing(found):
        for done, (i, value) in enumerate(found, start=len(values) - len(waiting) + 1):
            values[i] = value
            checkpoints.report(done, len(values))
            if check is not None:
                check(value)
    return values


class _Task(NamedTuple):
    """A call with its place among the calls and the file of its value."""

    place: int
    function: Callable[..., Any]
    call: tuple[Any, ...]
    path: Path | None


def _computed(
    tasks: Sequence[_Task], jobs: int, lost: Callable[[tuple[Any, ...], str], Any] | None
) -> Generator[tuple[int, Any], None, None]:
    """Yield place and value of each task in order of completion.

    If a process ends, the tasks that were being computed are computed one at a time, so that it is known which of them
    ends it. This one has the value of ``lost``.
    """
    waiting = {task.place: task for task in tasks}
    while waiting:
        sent: list[int] = []
        try:
            yield from _in_pool(list(waiting.values()), jobs, waiting, sent)
        except BrokenProcessPool:
            if lost is None:
                raise
            for place in [place for place in sent if place in waiting]:
                task = waiting[place]
                try:
                    yield from _in_pool([task], 2, waiting, [])  # with 1, it would be computed in this process
                except BrokenProcessPool as error:
                    del waiting[place]
                    yield place, _keep(task.path, lost(task.call, f"the process of the fit ended: {_line(error)}"))


def _in_pool(
    tasks: Sequence[_Task], jobs: int, waiting: dict[int, _Task], sent: list[int]
) -> Generator[tuple[int, Any], None, None]:
    """Yield as ``_computed``; a task is added to ``sent`` when it is sent, and removed from ``waiting`` when done."""
    from joblib import Parallel, delayed
    from threadpoolctl import threadpool_limits

    study = study_folder()  # here, because joblib reads the tasks in another thread

    def dispatched() -> Iterator[Any]:
        for task in tasks:
            sent.append(task.place)
            yield delayed(_value)(study, task)

    pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
    with threadpool_limits(1), closing(pool(dispatched())) as found:  # joblib limits those of other processes only
        for place, value in found:
            del waiting[place]
            yield place, value


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _value(study: Path, task: _Task) -> tuple[int, Any]:
    """Return the place and the value of a task: the one that another run has stored meanwhile, or a new one."""
    if task.path is not None and (stored := _stored(task.path)) is not None:
        return task.place, stored
    with relative_to(study):
        value = task.function(*task.call)
    return task.place, _keep(task.path, value)


def _keep(path: Path | None, value: Any) -> Any:
    """Store a value if there is a file for it; return it."""
    if path is not None:
        with suppress(FileNotFoundError):  # another run of the study has finished and removed the folder
            store.write_atomically(path, json.dumps(value))
    return value


def _stored(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not computed yet, or damaged
        return None
