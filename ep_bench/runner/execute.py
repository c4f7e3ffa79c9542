"""Run one cell: load, split, tune, fit, predict, score. An error becomes a record with status and reason.

The method is in this process, or in one of its own (``remote_method``). All scores are computed in this process.
"""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ep_bench import data, scoring
from ep_bench.estimator import MethodEstimator  # noqa: F401 loads scikit-learn before any cell is timed
from ep_bench.predictions import AnyPrediction, missing_density
from ep_bench.processes.channel import Channel
from ep_bench.processes.memory import PeakMemory
from ep_bench.results import row_scores
from ep_bench.results.integrity import impossible
from ep_bench.runner import chain_summary, non_finite, prediction_grid, tune_cell
from ep_bench.runner.jobs import Job
from ep_bench.runner.local_method import LocalMethod, MethodSetup
from ep_bench.runner.records import (
    CHANGED,
    CellError,
    blank_record,
    fail,
    one_line,
    printable,
    reason_of,
    seed_globals,
    status_of,
    timed,
    unconverged,
)
from ep_bench.runner.remote_method import RemoteCellError, RemoteMethod, RemoteModel
from ep_bench.types import Array, Dataset, DatasetRef, Record, Split

TRAINING_BLOCK = 4096  # training points per prediction when the training scores are computed
_sent: dict[DatasetRef, Dataset] = {}


@dataclass(frozen=True)
class MethodConnection:
    """The connection to the process of an external method, its id, and copies of files that the run has sent."""

    channel: Channel
    pid: int
    copies: Mapping[str, str] = field(default_factory=dict)


def run_cell(
    job: Job, started: Callable[[], None] = lambda: None, connection: MethodConnection | None = None
) -> Record:
    """Run a cell and return its record; exceptions become failed records.

    ``started`` is called when the limits of the cell begin to count, after loading and compilation. Without a
    ``connection`` the method is in this process. Raises MethodLostError if the process of the method is lost.
    """
    record = blank_record(job)
    peak = PeakMemory()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("default")
            missing_reason = _fill(record, job, started, connection)
        warning = unconverged(warned, job.use)
        record.row |= {"converged": "false"} if warning else {}
        record.row["reason"] = one_line("; ".join(filter(None, (warning, missing_reason))))
    except CellError as error:
        fail(record, error.status, reason_of(error))
        record.traceback = error.printed if isinstance(error, RemoteCellError) else printable(traceback.format_exc())
    except Exception as error:  # noqa: BLE001 a method may raise any exception; the record stores it
        fail(record, status_of(error), reason_of(error))
        record.traceback = printable(traceback.format_exc())
    record.row["peak_mb"] = round(max(peak.megabytes(), record.row.get("peak_mb", 0.0)), 1)
    return record


def _fill(record: Record, job: Job, started: Callable[[], None], connection: MethodConnection | None) -> str:
    """Fill the row of a record; return the reason why it has no log-likelihood, empty if it has one."""
    dataset = _dataset(job)
    split = data.make_split(job.scheme, dataset, job.cell.split)
    setup = MethodSetup.of(job, dataset)
    if connection is None:
        return _fit_and_score(record, job, dataset, split, LocalMethod(setup), started)
    method = RemoteMethod(connection.channel, connection.pid, setup, connection.copies)
    try:
        return _fit_and_score(record, job, dataset, split, method, started)
    finally:
        record.row["peak_mb"] = method.end()


def _fit_and_score(
    record: Record,
    job: Job,
    dataset: Dataset,
    split: Split,
    method: LocalMethod | RemoteMethod,
    started: Callable[[], None],
) -> str:
    _refuse_changed_method(job, method)
    X, y = dataset.X[split.train], dataset.y[split.train]
    record.row |= {"n_train": len(split.train), "n_test": len(split.test)}
    record.row |= {"target_std": float(np.std(y))} if dataset.task == "regression" else {}
    model = _prepared(record, job, X, y, method, started)
    prediction = _fit_and_predict(record, job, model, X, y, dataset.X[split.test])
    record.trace = {name: [float(value) for value in values] for name, values in model.trace_.items()}
    scores = _scores(model, prediction, dataset, split)
    record.row |= scores
    wrong = [name for name, value in scores.items() if not math.isfinite(value)]
    if wrong:
        for name in wrong:
            del record.row[name]
        why = non_finite.reason(prediction, dataset.y[split.test], dataset.classes)
        raise CellError("failed", f"non-finite {', '.join(wrong)}" + (f": {why}" if why else ""))
    _refuse_impossible(record, scores)
    by_row = scoring.by_row(prediction, dataset.y[split.test])
    record.row |= _tail_scores(by_row, X, dataset.X[split.test])
    record.notes |= row_scores.note(by_row)
    grid = prediction_grid.over_grid(model, job.dataset, dataset, split)
    if grid is not None:
        record.notes["curve"] = grid
    test = dataset.X[split.test]
    record.notes |= model.summarise(test) if isinstance(model, RemoteModel) else chain_summary.of(model, test)
    record.notes |= {} if job.external else chain_summary.of_fit(model)
    record.row |= _convergence(model, record.notes.get("diagnostics", {}))
    return missing_density(prediction)


def _refuse_impossible(record: Record, scores: Mapping[str, float]) -> None:
    """Raise an error for scores that no distribution has; a table with such a row could not be read."""
    reasons = {name: impossible({name: value}) for name, value in scores.items()}
    for name in [name for name, reason in reasons.items() if reason]:
        del record.row[name]
    if any(reasons.values()):
        raise CellError("failed", f"{'; '.join(filter(None, reasons.values()))}; the predictions are no distributions")


def _fit_and_predict(record: Record, job: Job, model: Any, X: Array, y: Array, test: Array) -> AnyPrediction:
    """Fit a model to X (n, d), y (n,) and return its prediction at ``test`` (N, d); the times are stored."""
    if isinstance(model, RemoteModel):  # its process measures the times and seeds its generators
        prediction = model.fit(X, y).predict_dist(test, scoring.NEEDED_LEVELS)
        record.row |= model.times
        return prediction
    seed_globals(job.cell.seed)
    with timed(record, "fit"):
        model.fit(X, y)
    with timed(record, "predict"):
        found: AnyPrediction = model.predict_dist(test)
    return found


def _prepared(
    record: Record, job: Job, X: Array, y: Array, method: LocalMethod | RemoteMethod, started: Callable[[], None]
) -> Any:
    """Return the unfitted model of a cell, with tuned options if requested; ``started`` is called before the tuning."""
    scoring.load()
    if job.tune is None:
        record.row["compile_seconds"] = method.load([job.options], strict=True)
        started()
        return method.build(job.options)
    record.row["compile_seconds"] = tune_cell.load(job, method)
    started()
    return method.build(tune_cell.choose(record, job, X, y, method))


def _scores(model: Any, prediction: Any, dataset: Dataset, split: Split) -> dict[str, float]:
    scores = scoring.score(prediction, dataset.y[split.test])
    return scores | _training_scores(model, dataset.X[split.train], dataset.y[split.train])


def _training_scores(model: Any, X: Array, y: Array) -> dict[str, float]:
    """Return the scores of X (n, d), y (n,), computed in blocks: a mixture over all points would need much memory."""
    blocks = [slice(start, start + TRAINING_BLOCK) for start in range(0, len(y), TRAINING_BLOCK)]
    parts = [scoring.score_training(model.predict_dist(X[block]), y[block]) for block in blocks]
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


def _convergence(model: Any, diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Return R-hat of the worst test prediction of a sampler, and whether the method met its own criterion.

    A sampler with an R-hat has a criterion; if it does not meet it, it issues a warning, which ``run_cell`` evaluates.
    """
    r_hat = diagnostics.get("r_hat_test_rows")
    met = getattr(model, "converged_", None if r_hat is None else True)
    found = {} if r_hat is None else {"r_hat": r_hat}
    return found if met is None else {**found, "converged": "true" if met else "false"}


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


def _refuse_changed_method(job: Job, method: LocalMethod | RemoteMethod) -> None:
    """Raise CellError if the installed version of the method differs from the planned one."""
    planned = job.cell.factors.get("version")
    if planned is not None and (found := method.version()) != planned:
        raise CellError("failed", f"{CHANGED}: the method, planned with version {planned!r}, found {found!r}")


@lru_cache(maxsize=2)
def _load(ref: DatasetRef) -> Dataset:
    return data.load(ref)
