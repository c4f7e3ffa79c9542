"""Jobs that compute stored cells again, from the lock file of their results folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ep_bench import adapters, data, estimator, methods
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner.jobs import Job
from ep_bench.types import Cell, DatasetRef, SplitScheme


def stored_job(study: store.StudyResults, cell: Mapping[str, Any], row: store.Row) -> Job:
    """Return the job of a finished cell of a lock file.

    Raises UserError with the reason if the cell cannot be computed again here: its data or its method is not installed,
    or its method has another version now.
    """
    factors = dict(cell["factors"])
    for key in ("method", "options", "dataset", "splits"):
        if key not in factors:
            raise UserError(f"the lock file has no {key} of the cell")
    ref = _dataset(factors["dataset"], cell["dataset"])
    options = _options(factors)
    identity = Cell(cell["method"], cell["dataset"], cell["split"], row["seed"], factors, cell["cell"])
    scheme = SplitScheme(**factors["splits"])
    seconds = seconds_of(row)
    return Job(
        identity, study.name, ref, scheme, factors["method"], options, str(Path.cwd()), tune=factors.get("tune"),
        estimate=seconds,
    )  # fmt: skip


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return the wall time of tuning, fit and prediction of a stored cell."""
    return float(sum(row.get(f"{what}_seconds") or 0.0 for what in ("tune", "fit", "predict")))


def _dataset(factors: Mapping[str, Any], label: str) -> DatasetRef:
    if "csv" in factors:
        raise UserError(f"the file of {factors['name']} is not in the results folder")
    if factors["name"] not in {*data.names(), *data.plugin_names()}:
        raise UserError(f"the data set {factors['name']} is not installed")
    options = {key: value for key, value in factors.items() if key != "checksum"}
    ref = DatasetRef(label=label, **options)
    info = data.describe(ref)
    if not info.present:
        raise UserError(f"the data of {factors['name']} are not on this machine")
    if info.checksum != factors.get("checksum"):
        raise UserError(f"the data of {factors['name']} have another checksum now")
    return ref


def _options(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a stored cell. Raises UserError if the version of its method is another one now."""
    use, tuned = factors["method"], "tune" in factors
    if adapters.is_target(use):
        options = dict(factors["options"])
        if adapters.names_a_file(use, options):
            raise UserError(f"{use} is or uses a file that the lock file does not contain")
        version = adapters.version(use, Path.cwd(), options | ({"tune": factors["tune"]} if tuned else {}))
    else:
        methods.get(use)
        options = estimator.restore(use, factors["options"])
        version = estimator.resolve(use, options, tuned=tuned).version
    if version != factors.get("version"):
        raise UserError(f"{use} has version {version} now, the cell has {factors.get('version')}")
    return options
