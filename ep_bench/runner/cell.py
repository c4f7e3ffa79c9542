"""Run one cell: load, split, tune, fit, predict, score. An error becomes a record with status and reason.

The method is in a process of its own (``method_process``). All scores are computed in this process.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ep_bench import data, scoring, tuning
from ep_bench.predictions import missing_density
from ep_bench.processes.failures import CellError, Failure, one_line
from ep_bench.results import row_scores
from ep_bench.results.integrity import impossible
from ep_bench.runner import non_finite, prediction_grid, tune_cell
from ep_bench.runner.jobs import Job
from ep_bench.runner.method_process import CellMethod, MethodSetup
from ep_bench.runner.records import CHANGED, blank_record, fail, unconverged
from ep_bench.types import Array, Dataset, DatasetRef, Record, Split

TRAINING_BLOCK = 4096  # training points per prediction when the training scores are computed
OpenMethod = Callable[[MethodSetup], CellMethod]
_sent: dict[DatasetRef, Dataset] = {}


def run_cell(
    job: Job,
    open_method: OpenMethod = CellMethod,
    started: Callable[[], None] = lambda: None,
    copies: Mapping[str, str] | None = None,
) -> Record:
    """Run a cell and return its record; exceptions become failed records.

    ``open_method`` returns the method of the cell, by default in this process. ``started`` is called when the limits of
    the cell begin to count, after loading and compilation. ``copies`` are those of files that the run has sent. Raises
    ChildLostError if the process of the method is lost.
    """
    record = blank_record(job)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("default")
            dataset = _dataset(job)
            split = data.make_split(job.scheme, dataset, job.cell.split)
            scoring.load()
            if job.tune is not None:
                tuning.load()
            method = open_method(MethodSetup.of(job, dataset, copies or {}))
            missing_reason = _fit_and_score(record, job, dataset, split, method, started)
        warning = unconverged(warned, job.use)
        record.row |= {"converged": "false"} if warning else {}
        record.row["reason"] = one_line("; ".join(filter(None, (warning, missing_reason))))
    except Exception as error:  # noqa: BLE001 a method may raise any exception; the record stores it
        failure = Failure.of(error)
        fail(record, failure.status, failure.reason, failure.traceback)
    return record


def _fit_and_score(
    record: Record, job: Job, dataset: Dataset, split: Split, method: CellMethod, started: Callable[[], None]
) -> str:
    """Fill a record; return the reason why it has no log-likelihood, empty if it has one."""
    _refuse_changed_method(job, method)
    X, y, test = dataset.X[split.train], dataset.y[split.train], dataset.X[split.test]
    record.row |= {"n_train": len(split.train), "n_test": len(split.test)}
    record.row |= {"target_std": float(np.std(y))} if dataset.task == "regression" else {}
    record.row["compile_seconds"] = method.load(list(tune_cell.variants(job)), job.tune is None)
    started()
    method.build(job.options if job.tune is None else tune_cell.choose(record, job, X, y, method))
    fit = method.fit(X, y)
    record.row |= {"fit_seconds": fit.seconds, "fit_cpu_seconds": fit.cpu_seconds}
    record.trace = fit.trace
    seconds, cpu_seconds, prediction = method.predict(test)
    record.row |= {"predict_seconds": seconds, "predict_cpu_seconds": cpu_seconds}
    _score(record, job, dataset, split, prediction, method)
    summary = method.summary(test)
    record.notes |= summary.notes
    r_hat = record.notes.get("diagnostics", {}).get("r_hat_test_rows")
    record.row |= {} if r_hat is None else {"r_hat": r_hat}
    record.row |= {} if summary.converged is None else {"converged": "true" if summary.converged else "false"}
    record.row["peak_mb"] = round(method.peak_mb(), 1)
    return missing_density(prediction)


def _score(record: Record, job: Job, dataset: Dataset, split: Split, prediction: Any, method: CellMethod) -> None:
    """Add the scores of a prediction to a record. Raises CellError if one is not finite or impossible."""
    X, y = dataset.X, dataset.y
    scores = scoring.score(prediction, y[split.test]) | _training_scores(method, X[split.train], y[split.train])
    record.row |= scores
    wrong = [name for name, value in scores.items() if not math.isfinite(value)]
    if wrong:
        for name in wrong:
            del record.row[name]
        why = non_finite.reason(prediction, y[split.test], dataset.classes)
        raise CellError("failed", f"non-finite {', '.join(wrong)}" + (f": {why}" if why else ""))
    _refuse_impossible(record, scores)
    by_row = scoring.by_row(prediction, y[split.test])
    record.row |= _tail_scores(by_row, X[split.train], X[split.test])
    record.notes |= row_scores.note(by_row)
    grid = prediction_grid.over_grid(lambda points: method.predict(points).prediction, job.dataset, dataset, split)
    if grid is not None:
        record.notes["curve"] = grid


def _refuse_impossible(record: Record, scores: Mapping[str, float]) -> None:
    """Raise an error for scores that no distribution has; a table with such a row could not be read."""
    reasons = {name: impossible({name: value}) for name, value in scores.items()}
    for name in [name for name, reason in reasons.items() if reason]:
        del record.row[name]
    if any(reasons.values()):
        raise CellError("failed", f"{'; '.join(filter(None, reasons.values()))}; the predictions are no distributions")


def _training_scores(method: CellMethod, X: Array, y: Array) -> dict[str, float]:
    """Return the scores of X (n, d), y (n,), computed in blocks: a mixture over all points would need much memory."""
    blocks = [slice(start, start + TRAINING_BLOCK) for start in range(0, len(y), TRAINING_BLOCK)]
    parts = [scoring.score_training(method.predict(X[block]).prediction, y[block]) for block in blocks]
    weights = np.array([len(y[block]) for block in blocks]) / len(y)
    return scoring.joined(parts, weights)


def _tail_scores(by_row: Mapping[str, Array], train: Array, test: Array) -> dict[str, float]:
    """Return the log density of the worst test point, and the mean over test points whose inputs are not in ``train``.

    Both are in nats, and omitted for point predictions. ``train`` is (n, d) and ``test`` (N, d), in original units.
    """
    ll = by_row.get("ll")
    if ll is None:
        return {}
    known = set(_point_hashes(train))
    unseen = np.array([key not in known for key in _point_hashes(test)])
    return {"ll_min": float(ll.min())} | ({"ll_unseen": float(ll[unseen].mean())} if unseen.any() else {})


def _point_hashes(X: Array) -> list[int]:
    """Return a hash of each row of X (n, d), the same for -0.0 and 0.0."""
    return [hash(point.tobytes()) for point in np.ascontiguousarray(X) + 0.0]


def keep_dataset(ref: DatasetRef, dataset: Dataset) -> None:
    """Use a data set received from another machine instead of reading it."""
    for array in (dataset.X, dataset.y):
        array.setflags(write=False)
    _sent[ref] = dataset


def _dataset(job: Job) -> Dataset:
    dataset = _sent.get(job.dataset) or _load(job.dataset)
    planned = job.cell.factors["dataset"]["checksum"]
    if dataset.checksum != planned:
        _load.cache_clear()
        raise CellError("failed", f"{CHANGED}: the data (sha256 {dataset.checksum[:12]}...)")
    return dataset


def _refuse_changed_method(job: Job, method: CellMethod) -> None:
    """Raise CellError if the installed version of the method differs from the planned one."""
    planned = job.cell.factors.get("version")
    if planned is not None and (found := method.version()) != planned:
        raise CellError("failed", f"{CHANGED}: the method, planned with version {planned!r}, found {found!r}")


@lru_cache(maxsize=2)
def _load(ref: DatasetRef) -> Dataset:
    return data.load(ref)
