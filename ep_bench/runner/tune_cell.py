"""Tuning of one cell: trials on a validation part of the training data; the best options are fitted to all of it.

The test points are not passed to this module, so that no trial can use them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ep_bench import scoring, tuning
from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.runner.jobs import Job
from ep_bench.runner.local_method import LocalMethod
from ep_bench.runner.records import CellError, reason_of, seed_globals, timed, unconverged
from ep_bench.runner.remote_method import RemoteMethod
from ep_bench.types import Array, Record

Method = LocalMethod | RemoteMethod


def load(job: Job, method: Method) -> float:
    """Import the modules and compile the kernels of all trials; return the time of compilation in seconds.

    Errors are ignored here, because they occur again in their trial, which records them.
    """
    tuning.load()
    return method.load(list(_variants(job)), strict=False)


def choose(record: Record, job: Job, X: Array, y: Array, method: Method) -> dict[str, Any]:
    """Return the options that the search selected on training data X (n, d), y (n,); trials are added to the record.

    Raises CellError if every trial failed, or if the score is the log density and the method has no density.
    """
    tune = job.tune or {}
    scorer = _ValidationScorer(job, X, y, method)
    with timed(record, "tune", method.cpu_pid):
        found = tuning.search(
            scorer, tune["space"], _start(job, method), trials=tune["trials"], score=tune["score"], seed=job.cell.seed
        )
    record.notes["tune"] = {"validation_rows": len(scorer.validation), "trials": found.trials, "best": found.best}
    if found.best is None:
        reason, count = found.usual_reason()
        message = f"all {tune['trials']} trials failed, {count} of them: {reason}"
        raise CellError("failed", message) from scorer.error
    return {**job.options, **found.options}


class _ValidationScorer:
    """Scores options on the validation points. An exception of the method is an outcome, and is kept in ``error``."""

    def __init__(self, job: Job, X: Array, y: Array, method: Method) -> None:
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
                return None, " ".join(reason_of(error).split())[:500]
        if self._name not in scores:
            other = "rmse" if "rmse" in scores else "error_rate"
            message = f"the method has no density, which the score needs; set `score: {other}` in `tune`"
            raise CellError("failed", message)
        return scores[self._name], unconverged(warned, self._job.use)

    def _scores(self, options: Mapping[str, Any]) -> dict[str, float]:
        model = self._method.build({**self._job.options, **options})
        if self._name == "rmse" and isinstance(model, MethodEstimator):
            model.only_mean = True
        seed_globals(self._job.cell.seed)
        model.fit(self._X[self._fitting], self._y[self._fitting])
        return scoring.main_scores(model.predict_dist(self._X[self.validation]), self._y[self.validation])


def _start(job: Job, method: Method) -> dict[str, Any]:
    """Return the starting options of the search: those given, else the defaults."""
    return {**method.defaults((job.tune or {})["space"].keys()), **job.options}


def _variants(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the starting options, and these with each choice in turn, which may need other modules or kernels."""
    yield dict(job.options)
    for name, entry in (job.tune or {})["space"].items():
        for value in entry.get("choice", ()):
            yield {**job.options, name: value}
