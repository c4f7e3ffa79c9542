"""Tuning of one cell: trials on a validation part of the training data; the best options are fitted to all of it.

The test points are not passed to this module, so that no trial can use them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ep_bench import scoring, tuning
from ep_bench.processes.failures import CellError, Failure
from ep_bench.runner.jobs import Job
from ep_bench.runner.method_process import CellMethod
from ep_bench.runner.records import unconverged
from ep_bench.types import Array, Record


def choose(record: Record, job: Job, X: Array, y: Array, method: CellMethod) -> dict[str, Any]:
    """Return the options that the search selected on training data X (n, d), y (n,); trials are added to the record.

    Raises CellError if every trial failed, or if the score is the log density and the method has no density.
    """
    tune = job.tune or {}
    scorer = _ValidationScorer(job, X, y, method)
    started, cpu = time.perf_counter(), method.cpu_seconds() + time.process_time()
    found = tuning.search(
        scorer, tune["space"], _start(job, method), trials=tune["trials"], score=tune["score"], seed=job.cell.seed
    )
    record.row["tune_seconds"] = time.perf_counter() - started
    record.row["tune_cpu_seconds"] = method.cpu_seconds() + time.process_time() - cpu
    record.notes["tune"] = {"validation_rows": len(scorer.validation), "trials": found.trials, "best": found.best}
    if found.best is None:
        reason, count = found.usual_reason()
        message = f"all {tune['trials']} trials failed, {count} of them: {reason}"
        raise CellError("failed", message) from scorer.error
    return {**job.options, **found.options}


class _ValidationScorer:
    """Scores options on the validation points. An exception of the method is an outcome, and is kept in ``error``."""

    def __init__(self, job: Job, X: Array, y: Array, method: CellMethod) -> None:
        self._job, self._X, self._y, self._method = job, X, y, method
        self._name = (job.tune or {})["score"]
        self._fitting, self.validation = tuning.validation_rows(len(y), (job.tune or {})["fraction"], job.cell.seed)
        self.error: Exception | None = None

    def __call__(self, options: Mapping[str, Any]) -> tuple[float | None, str]:
        """Return the score of options, None if they fail, and the reason, or that the fit did not converge."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("default")
            try:
                scores = self._scores(options)
            except Exception as error:  # noqa: BLE001 a method may raise any exception; the trial records it
                self.error = error
                return None, Failure.of(error).reason
        if self._name not in scores:
            other = "rmse" if "rmse" in scores else "error_rate"
            message = f"the method has no density, which the score needs; set `score: {other}` in `tune`"
            raise CellError("failed", message)
        return scores[self._name], unconverged(warned, self._job.use)

    def _scores(self, options: Mapping[str, Any]) -> dict[str, float]:
        self._method.build({**self._job.options, **options}, self._name == "rmse")
        self._method.fit(self._X[self._fitting], self._y[self._fitting])
        return scoring.main_scores(self._method.predict(self._X[self.validation]).prediction, self._y[self.validation])


def _start(job: Job, method: CellMethod) -> dict[str, Any]:
    """Return the starting options of the search: those given, else the defaults."""
    return {**method.defaults((job.tune or {})["space"].keys()), **job.options}


def variants(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the options of a cell; if tuned, also these with each choice in turn, which may need other kernels."""
    yield dict(job.options)
    for name, entry in (job.tune or {"space": {}})["space"].items():
        for value in entry.get("choice", ()):
            yield {**job.options, name: value}
