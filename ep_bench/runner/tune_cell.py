"""The tuning of one cell: trials on a validation part of its training rows, the best options for the fit to all.

The test rows are not handed over, so that no trial can see them.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Any

from ep_bench import adapters, estimator, scoring, tuning
from ep_bench.runner.jobs import Job
from ep_bench.runner.records import CellError, reason_of, seed_globals, unconverged
from ep_bench.types import Array, Record, Task

Build = Callable[[Mapping[str, Any]], Any]  # options -> an unfitted model


def load(job: Job, build: Build, task: Task) -> float:
    """Import what the trials need and compile the kernels of every choice; return the seconds of compiling.

    What fails here fails in its trial, which says why.
    """
    tuning.load()
    compiling = 0.0
    for options in _variants(job):
        with contextlib.suppress(Exception):
            if adapters.is_target(job.use):
                build(options)
            else:
                compiling += estimator.warm_up(job.use, options, task)
    return compiling


def choose(record: Record, job: Job, X: Array, y: Array, build: Build) -> dict[str, Any]:
    """Return the options that the search chose on training rows X (n, d), y (n,); its trials go into the record.

    Raises CellError where every trial failed, or where a density is asked for and the method gives none.
    """
    tune = job.tune or {}
    judge = _ValidationScorer(job, X, y, build)
    begun = time.perf_counter()
    found = tuning.search(
        judge, tune["space"], _start(job), trials=tune["trials"], score=tune["score"], seed=job.cell.seed
    )
    record.row["tune_seconds"] = time.perf_counter() - begun
    record.notes["tune"] = {"validation_rows": len(judge.held), "trials": found.trials, "best": found.best}
    if found.best is None:
        reason, count = found.usual_reason()
        words = f"all {tune['trials']} trials failed, {count} of them: {reason}"
        raise CellError("failed", words) from judge.error
    return {**job.options, **found.options}


class _ValidationScorer:
    """Scores options on the validation rows. What a method does wrong is an outcome, kept in ``error`` as well."""

    def __init__(self, job: Job, X: Array, y: Array, build: Build) -> None:
        self._job, self._X, self._y, self._build = job, X, y, build
        self._name = (job.tune or {})["score"]
        self._inner, self.held = tuning.validation_rows(len(y), (job.tune or {})["fraction"], job.cell.seed)
        self.error: Exception | None = None

    def __call__(self, options: Mapping[str, Any]) -> tuple[float | None, str]:
        """Return the score of options, None where they fail, and why, or that the fit did not converge."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("default")
            try:
                scores = self._scores(options)
            except Exception as error:  # noqa: BLE001 a method may raise anything; the trial says what
                self.error = error
                return None, " ".join(reason_of(error).split())[:500]
        if self._name not in scores:
            other = "rmse" if "rmse" in scores else "error_rate"
            says = f"the method gives no density, by which tuning goes; `score: {other}` tunes without"
            raise CellError("failed", says)
        return scores[self._name], unconverged(warned, self._job.use)

    def _scores(self, options: Mapping[str, Any]) -> dict[str, float]:
        model = self._build({**self._job.options, **options})
        seed_globals(self._job.cell.seed)
        model.fit(self._X[self._inner], self._y[self._inner])
        return scoring.main_scores(model.predict_dist(self._X[self.held]), self._y[self.held])


def _start(job: Job) -> dict[str, Any]:
    """Return what is known of the options before a search: those given, else the defaults."""
    known = dict(job.options)
    if adapters.is_target(job.use):
        parameters = adapters.parameters(adapters.resolve(job.use, Path(job.base))) or {}
        defaults = {name: value for name, value in parameters.items() if value is not Parameter.empty}
        known = {**defaults, adapters.STANDARDIZE: False, **known}
    return known


def _variants(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the options of the start, and with each choice in turn: what may need other modules or other kernels."""
    yield dict(job.options)
    for name, entry in (job.tune or {})["space"].items():
        for value in entry.get("choice", ()):
            yield {**job.options, name: value}
