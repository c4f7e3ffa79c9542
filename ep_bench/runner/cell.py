"""Run one cell: load, split, tune, fit, predict, score. An error becomes a record with status and reason.

The method is in a process of its own (``method_process``). All scores are computed in this process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ep_bench import data, scoring, tuning
from ep_bench.errors import CellError, Failure, one_line
from ep_bench.predictions import (
    AnyPrediction,
    ClassLabels,
    ClassProbabilities,
    DensityPrediction,
    Predictive,
    QuantilePrediction,
    missing_density,
)
from ep_bench.recalibration import held_out_parts
from ep_bench.results import row_scores
from ep_bench.results.cell_files import read_record
from ep_bench.results.integrity import impossible
from ep_bench.runner.jobs import CHANGED, Job, MethodSetup, Opened, blank_record, fail
from ep_bench.types import UNCONVERGED, Array, Dataset, DatasetRef, Preparation, Record, Split

if TYPE_CHECKING:
    from ep_bench.runner.method_process import CellMethod

TRAINING_BLOCK = 4096  # training points per prediction when the training scores are computed
OpenMethod = Callable[[MethodSetup], "CellMethod"]
_sent: dict[DatasetRef, Dataset] = {}


def run_cell(
    job: Job,
    open_method: OpenMethod | None = None,
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
        dataset = _dataset(job)
        split = data.make_split(job.scheme, dataset, job.cell.split)
        scoring.load()
        if job.tune is not None:
            tuning.load()
        method = (open_method or _in_this_process)(MethodSetup.of(job, dataset, copies or {}))
        with np.errstate(all="ignore"):  # scores that are not finite are reported
            reasons = _fit_and_score(record, job, dataset, split, method, started)
        record.row["reason"] = one_line("; ".join(filter(None, reasons)))
    except Exception as error:  # noqa: BLE001 a method may raise any exception; the record stores it
        failure = Failure.of(error)
        fail(record, failure.status, failure.reason, failure.traceback)
    return record


def _fit_and_score(
    record: Record, job: Job, dataset: Dataset, split: Split, method: CellMethod, started: Callable[[], None]
) -> tuple[str, str]:
    """Fill a record; return the reasons why its fit has not converged and why it has no density, each may be empty."""
    given, y = dataset.X[split.train], dataset.y[split.train]
    prepared = data.fit_inputs(dataset.preparation, given)
    X, test = prepared(given), prepared(dataset.X[split.test])
    record.row |= {"n_train": len(split.train), "n_test": len(split.test)}
    record.row |= {"target_std": float(np.std(y))} if dataset.task == "regression" else {}
    opened = method.open(list(variants(job)), job.tune is None)
    record.provenance |= opened.provenance
    _refuse_changed_method(job, opened)
    record.row["compile_seconds"] = opened.compile_seconds
    started()
    options = job.options if job.tune is None else tuned_options(record, job, dataset, split, method)
    found = method.evaluate(options, X, y, test, len(y) <= TRAINING_BLOCK)
    record.row |= {"fit_seconds": found.fit.seconds, "fit_cpu_seconds": found.fit.cpu_seconds}
    record.row |= {"predict_seconds": found.test.seconds, "predict_cpu_seconds": found.test.cpu_seconds}
    record.row["peak_mb"] = round(found.peak_mb, 1)
    record.trace, record.notes = found.fit.trace, record.notes | found.summary.notes
    training = _training_scores(method, X, y, found.training)
    _score(record, dataset, split, found.test.prediction, training)
    r_hat = record.notes.get("diagnostics", {}).get("r_hat_test_rows")
    record.row |= {} if r_hat is None else {"r_hat": r_hat}
    met = found.summary.converged
    warning = _unconverged(method)
    met = False if warning else met
    record.row |= {} if met is None else {"converged": "true" if met else "false"}
    return warning, missing_density(found.test.prediction)


def _searchable(job: Job, X: Array, y: Array) -> tuple[Array, Array]:
    """Return the training data that a search may use: not those that calibrate the model that predicts."""
    if job.recalibrate is None or job.recalibrate.get("refit"):
        return X, y
    fraction, cross = job.recalibrate["fraction"], job.recalibrate["cross"]
    ((fitting, _),) = held_out_parts(len(y), fraction, job.cell.seed, cross)
    return X[fitting], y[fitting]


def _in_this_process(setup: MethodSetup) -> CellMethod:
    from ep_bench.runner.method_process import CellMethod, RecordedMethod

    return cast("CellMethod", RecordedMethod(CellMethod(setup)))


def _unconverged(method: CellMethod) -> str:
    """Return the reason of a cell whose method has issued a convergence warning since the last call, else nothing."""
    first = next(iter(method.warned), "")
    method.warned.clear()
    return f"{UNCONVERGED}: {first[:200]}" if first else ""


def _score(record: Record, dataset: Dataset, split: Split, prediction: Any, training: Mapping[str, float]) -> None:
    """Add the scores of a prediction and those of the training points to a record.

    Raises CellError if one is not finite or impossible.
    """
    X, y = dataset.X, dataset.y
    scores = {**scoring.score(prediction, y[split.test]), **training}
    record.row |= scores
    wrong = [name for name, value in scores.items() if not math.isfinite(value)]
    if wrong:
        for name in wrong:
            del record.row[name]
        why = why_not_finite(prediction, y[split.test], dataset.classes)
        raise CellError("failed", f"non-finite {', '.join(wrong)}" + (f": {why}" if why else ""))
    _refuse_impossible(record, scores)
    by_row = scoring.by_row(prediction, y[split.test])
    record.row |= _tail_scores(by_row, X[split.train], X[split.test])
    record.notes |= row_scores.note(by_row)
    if histogram := scoring.pit_histogram(prediction, y[split.test]):
        record.notes["pit"] = histogram


def _refuse_impossible(record: Record, scores: Mapping[str, float]) -> None:
    """Raise an error for scores that no distribution has; a table with such a row could not be read."""
    reasons = {name: impossible({name: value}) for name, value in scores.items()}
    for name in [name for name, reason in reasons.items() if reason]:
        del record.row[name]
    if any(reasons.values()):
        raise CellError("failed", f"{'; '.join(filter(None, reasons.values()))}; the predictions are no distributions")


def _training_scores(method: CellMethod, X: Array, y: Array, known: Any) -> dict[str, float]:
    """Return the scores of X (n, d), y (n,) from a known prediction, or computed in blocks if it is None.

    A mixture over many points would need much memory.
    """
    blocks = [slice(start, start + TRAINING_BLOCK) for start in range(0, len(y), TRAINING_BLOCK)]
    predictions = (method.predict(X[block]).prediction for block in blocks) if known is None else [known]
    parts = [scoring.score_training(found, y[block]) for found, block in zip(predictions, blocks, strict=True)]
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


def _refuse_changed_method(job: Job, opened: Opened) -> None:
    """Raise CellError if the installed version of the method differs from the planned one."""
    planned = job.cell.factors.get("version")
    if planned is not None and opened.version != planned:
        raise CellError("failed", f"{CHANGED}: the method, planned with version {planned!r}, found {opened.version!r}")


@lru_cache(maxsize=4)
def _load(ref: DatasetRef) -> Dataset:
    return data.load(ref)


def tuned_options(record: Record, job: Job, dataset: Dataset, split: Split, method: CellMethod) -> dict[str, Any]:
    """Return the options that the search selected on the training points of a split; trials are added to the record.

    Raises CellError if every trial failed, or if the method does not have the score.
    """
    tune = job.tune or {}
    X, y = _searchable(job, dataset.X[split.train], dataset.y[split.train])
    scorer = _ValidationScorer(job, X, y, dataset.preparation, method)
    started, cpu = time.perf_counter(), method.cpu_seconds() + time.thread_time()
    start = {**method.defaults(list(tune["space"])), **job.options}  # the given options, else the defaults
    found = tuning.search(
        scorer, tune["space"], start, trials=tune["trials"], score=tune["score"], seed=job.cell.seed,
        known=_known_trials(job),
    )  # fmt: skip
    reused = [trial for trial in found.trials if "cpu_seconds" in trial]
    own = [trial for trial in found.trials if "cpu_seconds" not in trial]
    for trial, used in zip(own, scorer.cpu_seconds, strict=True):
        trial["cpu_seconds"] = used
    spent = {name: sum(trial[name] for trial in reused) for name in ("seconds", "cpu_seconds")}
    record.row["tune_seconds"] = time.perf_counter() - started + spent["seconds"]
    record.row["tune_cpu_seconds"] = method.cpu_seconds() + time.thread_time() - cpu + spent["cpu_seconds"]
    record.notes["tune"] = {"validation_rows": len(scorer.validation), "trials": found.trials, "best": found.best}
    if found.best is None:
        reason, count = found.usual_reason()
        message = f"all {tune['trials']} trials failed, {count} of them: {reason}"
        raise CellError("failed", message, scorer.traceback)
    return {**job.options, **found.options}


def _known_trials(job: Job) -> list[Mapping[str, Any]]:
    """Return the trials of the finished cell with the same search and as many or more; none on another machine.

    None either if all of them failed: a package may have been missing, which is there when failed cells are run again.
    """
    record = None if job.longer_search is None else read_record(Path(job.longer_search))
    search = {} if record is None else record.notes.get("tune", {})
    return [] if search.get("best") is None else search["trials"]


class _ValidationScorer:
    """Scores options on the validation points. An exception of the method is an outcome; its traceback is kept.

    X (n, d) are training inputs as in the file; they are prepared by what is fitted to those that a trial is fitted to.
    """

    def __init__(self, job: Job, X: Array, y: Array, preparation: Sequence[Preparation], method: CellMethod) -> None:
        self._job, self._y, self._method = job, y, method
        self._name = (job.tune or {})["score"]
        self._fitting, self.validation = tuning.validation_rows(len(y), (job.tune or {})["fraction"], job.cell.seed)
        self._X = data.fit_inputs(preparation, X[self._fitting])(X)
        self.traceback = ""
        self.cpu_seconds: list[float] = []  # of each trial

    def __call__(self, options: Mapping[str, Any]) -> tuple[float | None, str]:
        """Return the score of options, None if they fail, and the reason, or that the fit did not converge."""
        before = self._method.cpu_seconds()
        try:
            score = self._score(options)
        except Exception as error:  # noqa: BLE001 a method may raise any exception; the trial records it
            failure = Failure.of(error)
            self.traceback = failure.traceback
            return None, failure.reason
        finally:
            warning = _unconverged(self._method)
            self.cpu_seconds.append(round(self._method.cpu_seconds() - before, 6))
        if score is None:
            other = "error_rate" if self._job.dataset.task == "classification" else "rmse"
            message = (
                f"the predictions of the method do not have the score {self._name}; set `score: {other}` in `tune`"
            )
            raise CellError("failed", message)
        return score, warning

    def _score(self, options: Mapping[str, Any]) -> float | None:
        self._method.build({**self._job.options, **options}, self._name == "rmse")
        fitted = self._method.fit(self._X[self._fitting], self._y[self._fitting])
        limit = (self._job.tune or {}).get("cpu_seconds")
        if limit is not None and fitted.cpu_seconds > limit:
            raise CellError("failed", f"the fit took more than {limit:g} CPU seconds")
        predicted = self._method.predict(self._X[self.validation]).prediction
        return scoring.tuning_score(predicted, self._y[self.validation], self._name)


def variants(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the options of a cell; if tuned, also these with each choice in turn, which may need other kernels."""
    yield dict(job.options)
    for name, entry in (job.tune or {"space": {}})["space"].items():
        for value in entry.get("choice", ()):
            yield {**job.options, name: value}


def why_not_finite(prediction: AnyPrediction, y: Array, names: Sequence[str]) -> str:
    """Return what makes scores at test targets y (N,) not finite, in words; empty if it is something else.

    In classification these are test classes with predicted probability 0, in regression means, standard deviations,
    quantiles, or log densities where the former are finite.
    """
    if isinstance(prediction, ClassProbabilities):
        is_zero = np.isneginf(prediction.logpdf(y))
        if not is_zero.any():
            return ""
        classes = ", ".join(names[index] for index in np.unique(prediction.indices(y)[is_zero]))
        return (
            f"{is_zero.sum()} of {len(is_zero)} test points belong to classes with predicted probability 0: {classes}"
        )
    if isinstance(prediction, ClassLabels):
        return ""
    is_finite = np.isfinite(np.asarray(prediction.mean()))
    found: list[tuple[Any, str]] = [(~is_finite, "predictive means are not finite")]
    if isinstance(prediction, QuantilePrediction):
        found += [(~np.isfinite(prediction.given).all(axis=0), "points have predictive quantiles that are not finite")]
    if isinstance(prediction, Predictive | DensityPrediction):
        deviations = np.asarray(prediction.std())
        # Infinite ones are allowed, as of a Student-t distribution.
        found += [(np.isnan(deviations) & is_finite, "predictive standard deviations are NaN")]
        found += [(deviations == 0.0, "predictive standard deviations are 0")]
        is_known = is_finite & ~np.isnan(deviations) & (deviations != 0.0)
        found += [(~np.isfinite(prediction.logpdf(y)) & is_known, "log densities of test targets are not finite")]
    return ", ".join(f"{wrong.sum()} of {len(y)} {what}" for wrong, what in found if wrong.any())
