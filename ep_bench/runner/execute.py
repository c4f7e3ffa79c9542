"""Run one cell: load, split, fit, predict, score. What goes wrong becomes a record with status and reason."""

from __future__ import annotations

import math
import random
import time
import traceback
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench import adapters, data, estimator, scoring
from ep_bench.predictions import missing_density
from ep_bench.runner.jobs import Job
from ep_bench.runner.memory import PeakMemory
from ep_bench.runner.records import blank_record, fail
from ep_bench.types import Dataset, DatasetRef, Record, Split, UserError


class CellError(Exception):
    """A cell that ends without numbers: ``status`` and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def run_cell(job: Job, started: Callable[[], None] = lambda: None) -> Record:
    """Run a cell in this process and return its record, whatever happens.

    ``started`` is called when the cell's own work begins, from where its limits count.
    """
    record = blank_record(job)
    peak = PeakMemory()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("default")
            lack = _fill(record, job, started)
        record.row["reason"] = "; ".join(filter(None, (_unconverged(warned), lack)))
    except Exception as error:  # noqa: BLE001 a method may raise anything; the record says what
        status = getattr(error, "status", "memory" if isinstance(error, MemoryError) else "failed")
        fail(record, status, str(error) if isinstance(error, CellError) else _reason(error))
        record.traceback = traceback.format_exc()
    record.row["peak_mb"] = round(peak.megabytes(), 1)
    return record


def _fill(record: Record, job: Job, started: Callable[[], None]) -> str:
    """Fill the row of a record; return why it has no log-likelihood, empty where it has one."""
    dataset = _dataset(job)
    split = data.make_split(job.scheme, dataset, job.cell.split)
    X, y = dataset.X[split.train], dataset.y[split.train]
    record.row |= {"n_train": len(split.train), "n_test": len(split.test), "target_std": float(np.std(y))}
    outside = adapters.is_target(job.use)
    record.row["compile_seconds"] = 0.0 if outside else estimator.warm_up(job.use, job.options)
    model = _model(job, dataset)
    scoring.load()
    _seed_globals(job.cell.seed)
    started()
    begun = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    prediction = model.predict_dist(dataset.X[split.test])
    record.row |= {"fit_seconds": fitted - begun, "predict_seconds": time.perf_counter() - fitted}
    record.trace = {name: [float(value) for value in values] for name, values in model.trace_.items()}
    scores = _scores(model, prediction, dataset, split)
    record.row |= scores
    lost = [name for name, value in scores.items() if not math.isfinite(value)]
    if lost:
        for name in lost:
            del record.row[name]
        raise CellError("failed", f"non-finite {', '.join(lost)}")
    return missing_density(prediction)


def _scores(model: Any, prediction: Any, dataset: Dataset, split: Split) -> dict[str, float]:
    scores = scoring.score(prediction, dataset.y[split.test])
    training = model.predict_dist(dataset.X[split.train])
    return scores | scoring.score_training(training, dataset.y[split.train])


def _seed_globals(seed: int) -> None:
    """Seed the generators that a method from outside may draw from without asking."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def _unconverged(warned: list[warnings.WarningMessage]) -> str:
    """Return the reason of a method that warned, as scikit-learn's do, that it did not converge; else none."""
    found = (str(w.message) for w in warned if "Convergence" in w.category.__name__)
    first = next(found, "")
    return f"not converged: {' '.join(first.split())[:200]}" if first else ""


def _dataset(job: Job) -> Dataset:
    dataset = _load(job.dataset)
    planned = job.cell.factors["dataset"]["checksum"]
    if dataset.checksum != planned:
        _load.cache_clear()
        raise CellError("failed", f"the data file changed since the plan was made (sha256 {dataset.checksum[:12]}...)")
    return dataset


@lru_cache(maxsize=2)
def _load(ref: DatasetRef) -> Dataset:
    return data.load(ref)


def _model(job: Job, dataset: Dataset) -> Any:
    if adapters.is_target(job.use):
        return adapters.build(job.use, job.options, Path(job.base), seed=job.cell.seed)
    options = {**job.options, "constant_inputs": dict(dataset.constants) or None}
    return estimator.Estimator(job.use, **options, random_state=job.cell.seed)


def _reason(error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
