"""A method in this process: its version, its kernels, and its unfitted models. It receives no data and no targets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import Parameter
from pathlib import Path
from typing import Any

from ep_bench import adapters, estimator
from ep_bench.errors import UserError
from ep_bench.runner.jobs import Job
from ep_bench.types import Dataset, Task

Options = Mapping[str, Any]


@dataclass(frozen=True)
class MethodDefault:
    """The default of an option that is no plain value, as another process knows it; see ``LocalMethod.defaults``."""

    name: str


@dataclass(frozen=True)
class MethodSetup:
    """What a process needs to know of a cell to build its method."""

    use: str
    base: str
    options: Options
    seed: int
    task: Task
    classes: int  # number of classes, 0 in regression
    tuned: bool
    constants: Mapping[int, float] = field(default_factory=dict)  # values of constant inputs after standardisation

    @classmethod
    def of(cls, job: Job, dataset: Dataset) -> MethodSetup:
        """Return the setup of a cell."""
        tuned = job.tune is not None
        return cls(
            job.use, job.base, job.options, job.cell.seed, dataset.task, len(dataset.classes), tuned, dataset.constants
        )


class LocalMethod:
    """A method that is built in this process."""

    cpu_pid: int | None = None  # another process whose CPU time is that of the method

    def __init__(self, setup: MethodSetup) -> None:
        self._setup = setup
        self.is_class = adapters.is_target(setup.use)

    def version(self) -> str:
        """Return the version of the method, as it was imported."""
        setup = self._setup
        return _version(setup.use, setup.base, json.dumps(setup.options), setup.tuned)

    def load(self, variants: Sequence[Options], *, strict: bool) -> float:
        """Import the modules and compile the kernels of options; return the time of compilation in seconds.

        Errors are ignored unless ``strict``: in a search they occur again in their trial, which records them.
        """
        compiling = 0.0
        for options in variants:
            with contextlib.nullcontext() if strict else contextlib.suppress(Exception):
                if not self.is_class:
                    compiling += estimator.warm_up(self._setup.use, options, self._setup.task)
                elif not strict:
                    self.build(options)
        return compiling

    def defaults(self, names: Collection[str]) -> dict[str, Any]:
        """Return the defaults of an external class, of the options ``names`` that have one."""
        if not self.is_class:
            return {}
        known = adapters.parameters(adapters.resolve(self._setup.use, Path(self._setup.base))) or {}
        known = {**known, adapters.STANDARDIZE: False}
        return {name: known[name] for name in names if known.get(name, Parameter.empty) is not Parameter.empty}

    def build(self, options: Options) -> Any:
        """Return an unfitted model with ``fit`` and ``predict_dist``, in original units."""
        setup = self._setup
        if self.is_class:
            return adapters.build(setup.use, options, Path(setup.base), seed=setup.seed, classes=setup.classes)
        known: dict[str, Any] = {"constant_inputs": dict(setup.constants) or None, "random_state": setup.seed}
        if setup.task == "classification":
            known["classes"] = tuple(range(setup.classes))
        return estimator.Estimator(setup.use, setup.task, **options, **known)


@lru_cache(maxsize=256)
def _version(use: str, base: str, options: str, tuned: bool) -> str:
    if adapters.is_target(use):
        return adapters.version(use, Path(base), json.loads(options), loaded=True)
    return estimator.resolve(use, json.loads(options), tuned=tuned).version


def plain_defaults(defaults: Options) -> dict[str, Any]:
    """Return defaults for another process; objects are represented by ``None``."""
    found = {}
    for name, value in defaults.items():
        with contextlib.suppress(TypeError, ValueError):
            found[name] = json.loads(json.dumps({"value": value}, allow_nan=False))
        found.setdefault(name, None)
    return found


def with_objects(options: Options, defaults: Options) -> dict[str, Any]:
    """Return options with each ``MethodDefault`` replaced. Raises UserError if there is no such default."""
    found = {}
    for name, value in options.items():
        if isinstance(value, MethodDefault) and value.name not in defaults:
            raise UserError("has no such default", found=value.name)
        found[name] = defaults[value.name] if isinstance(value, MethodDefault) else value
    return found
