"""Stored results computed again: the jobs of cells, and the summaries of experiments compared."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench import adapters, data, estimator, methods
from ep_bench.errors import UserError
from ep_bench.experiments import REGISTRY, SUMMARY, get
from ep_bench.experiments.record import EXACT
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.results import store
from ep_bench.results.provenance import same_arithmetic
from ep_bench.runner.experiment_plan import of_stored
from ep_bench.runner.jobs import Job
from ep_bench.runner.run import RunOptions, run_plan
from ep_bench.types import Cell, DatasetRef, SplitScheme


def stored_job(study: store.StudyResults, cell: Mapping[str, Any], row: store.Row, *, files: bool = False) -> Job:
    """Return the job of a finished cell of a lock file; with ``files``, classes may be in files of its folder.

    Raises UserError with the reason if the cell cannot be computed again here: its data or its method is not installed,
    or its method has another version now.
    """
    factors = dict(cell["factors"])
    for key in ("method", "options", "dataset", "splits"):
        if key not in factors:
            raise UserError(f"the lock file has no {key} of the cell")
    ref = _dataset(factors["dataset"], cell["dataset"])
    base = study.folder.resolve()
    options = _options(factors, base, files=files)
    identity = Cell(cell["method"], cell["dataset"], cell["split"], row["seed"], factors, cell["cell"])
    scheme = SplitScheme(**factors["splits"])
    seconds = seconds_of(row)
    return Job(
        identity, study.name, ref, scheme, factors["method"], options, str(base), tune=factors.get("tune"),
        recalibrate=factors.get("recalibrate"),
        estimate=seconds,
    )  # fmt: skip


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return the wall time of tuning, fit and prediction of a stored cell."""
    return float(sum(row.get(f"{what}_seconds") or 0.0 for what in ("tune", "fit", "predict")))


def _dataset(factors: Mapping[str, Any], label: str) -> DatasetRef:
    if "csv" in factors:
        raise UserError(f"the file of {factors['name']} is not in the results folder")
    if factors["name"] not in data.names():
        raise UserError(f"the data set {factors['name']} is not installed")
    options = {key: value for key, value in factors.items() if key != "checksum"}
    ref = DatasetRef(label=label, **options)
    info = data.describe(ref)
    if not info.present:
        raise UserError(f"the data of {factors['name']} are not on this machine")
    if info.checksum != factors.get("checksum"):
        raise UserError(f"the data of {factors['name']} have another checksum now")
    return ref


def _options(factors: Mapping[str, Any], base: Path, *, files: bool) -> dict[str, Any]:
    """Return all options of a stored cell. Raises UserError if the version of its method is another one now."""
    use, tuned = factors["method"], "tune" in factors
    if adapters.is_target(use):
        options = dict(factors["options"])
        if not files and adapters.names_a_file(use, options):
            raise UserError(f"{use} is or uses a file that the lock file does not contain")
        version = adapters.version(use, base, options | ({"tune": factors["tune"]} if tuned else {}))
    else:
        methods.get(use)
        options = estimator.restore(use, factors["options"])
        version = estimator.resolve(use, options, tuned=tuned).version
    if version != factors.get("version"):
        raise UserError(f"{use} has version {version} now, the cell has {factors.get('version')}")
    return options


ROUNDING = 1e-12  # absolute differences up to this one are rounding errors, such as those of a relative difference of 0


def experiment_seconds(study: store.StudyResults) -> float | None:
    """Return the stored wall time of an experiment in seconds, None if an older version did not store it."""
    seconds = study.lock.get("seconds")
    return None if seconds is None else float(seconds)


def experiment_differences(study: store.StudyResults, jobs: int = 1) -> list[tuple[str, str, str, float]]:
    """Compute an experiment again and return the differing entries of its summary: row, stored, now, allowed.

    Numbers are equal if they differ by at most EXACT, or on another processor by the ``tolerance`` of the experiment,
    relative to the largest absolute value of their column, or at most ROUNDING. Times and what is computed from them
    are not compared. Raises UserError if its version or its options are not those of the installed package, or if it
    cannot be compared on this processor.
    """
    name, lock = str(study.lock["experiment"]), study.lock
    if name not in REGISTRY:
        raise UserError(f"the experiment {name} is not installed")
    if files := list(_files(lock.get("options", {}))):
        raise UserError(f"{files[0]} is or uses a file that the lock file does not contain")
    if not ExperimentSetup(name, lock.get("options", {}), lock.get("seed", 0)).is_computed(study.folder):
        raise UserError("its version, its options or the version of one of its methods has changed")
    tolerance = EXACT if same_arithmetic(lock.get("environment", {})) else get(name).tolerance
    if tolerance is None:
        raise UserError(
            "its numbers depend on single random draws or rounding errors, which differ on another processor"
        )
    with tempfile.TemporaryDirectory() as folder:
        plan = of_stored(study, Path(folder) / "again")
        if not run_plan(plan, RunOptions(jobs=jobs, quiet=True)).complete and not (plan.folder / SUMMARY).exists():
            reasons = [row["reason"] for row in plan.finished.rows.values() if row["status"] != "ok"]
            raise UserError(f"it could not be computed: {next(iter(reasons), 'parts are missing')}")
        before, now = _rows(study.folder), _rows(plan.folder)
    if len(before) != len(now) or any(a.keys() != b.keys() for a, b in zip(before, now, strict=False)):
        return [("summary.csv", f"{len(before)} rows", f"{len(now)} rows", 0.0)]
    limits = {column: max(ROUNDING, tolerance * _largest(before, column)) for column in (before[0] if before else {})}
    return [
        (f"row {i + 1}, {column}", a[column], b[column], limits[column])
        for i, (a, b) in enumerate(zip(before, now, strict=True))
        for column in a
        if "seconds" not in column
        and column not in get(name).measured
        and not _equal(a[column], b[column], limits[column])
    ]


def _files(value: Any) -> Iterator[str]:
    """Yield the files in the options of an experiment, which are relative to its study."""
    if isinstance(value, str) and ":" in value and adapters.names_a_file(value, {}):
        yield value
    elif isinstance(value, Mapping):
        yield from [str(value["csv"])] if value.get("csv") else []
        yield from itertools.chain.from_iterable(map(_files, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(_files, value))


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / SUMMARY).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _largest(rows: list[dict[str, str]], column: str) -> float:
    numbers = [abs(number) for row in rows if math.isfinite(number := _number(row[column]) or 0.0)]
    return max(numbers, default=0.0)


def _equal(before: str, now: str, allowed: float) -> bool:
    first, second = _number(before), _number(now)
    return before == now or (first is not None and second is not None and abs(first - second) <= allowed)


def _number(text: Any) -> float | None:
    with contextlib.suppress(ValueError):
        return float(text)
    return None
