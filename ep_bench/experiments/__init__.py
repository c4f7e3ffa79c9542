"""The papers' figures that are no grid of cells: each computes arrays and a summary table, and draws nothing.

An experiment is a module with ``NAME``, ``VERSION``, a frozen pydantic ``Config`` of its options and
``compute(config, seed) -> (arrays, summary)``; the report draws what it stored. A long one asks for its parts by
``pieces.each``.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from ep_bench import methods
from ep_bench import options as options_in_words
from ep_bench.experiments import checkpoints
from ep_bench.results import store
from ep_bench.results.provenance import environment
from ep_bench.types import OptionProblem

# One line an experiment: its name and its module.
REGISTRY = {
    "cubic_toy": "ep_bench.experiments.cubic_toy",
    "alpha_linear": "ep_bench.experiments.alpha_linear",
    "calibration": "ep_bench.experiments.calibration",
    "mountain_car": "ep_bench.experiments.mountain_car",
    "conflict_posteriors": "ep_bench.experiments.conflict_posteriors",
    "conflict_tilted": "ep_bench.experiments.conflict_tilted",
    "conflict_convergence": "ep_bench.experiments.conflict_convergence",
    "conflict_evidence": "ep_bench.experiments.conflict_evidence",
    "fixed_predictions": "ep_bench.experiments.fixed_predictions",
    "fixed_times": "ep_bench.experiments.fixed_times",
    "ard_overfitting": "ep_bench.experiments.ard_overfitting",
    "additive_effects": "ep_bench.experiments.additive_effects",
    "discontinuity": "ep_bench.experiments.discontinuity",
    "network_restarts": "ep_bench.experiments.network_restarts",
    "network_convergence": "ep_bench.experiments.network_convergence",
}
ARRAYS, SUMMARY, PIECES = "arrays.npz", "summary.csv", "pieces"


def names() -> tuple[str, ...]:
    """Return the names of the experiments."""
    return tuple(REGISTRY)


def problems(name: str, options: Mapping[str, Any]) -> list[OptionProblem]:
    """Return what is wrong with an experiment's options."""
    module = import_module(REGISTRY[name])
    try:
        module.Config(**options)
    except ValidationError as error:
        return list(options_in_words.problems(module.Config, name, error))
    return []


def run(name: str, options: Mapping[str, Any], seed: int, folder: Path, study: str, jobs: int = 1) -> Path:
    """Compute an experiment into ``folder``, unless the same one stands there already; return the folder.

    One that consists of pieces has ``jobs`` of them computed at a time and goes on where an earlier run ended. Raises
    pydantic's ValidationError for options that ``problems`` refuses.
    """
    if is_computed(name, options, seed, folder):
        shutil.rmtree(folder / PIECES, ignore_errors=True)  # of a run that was stopped between the lock and here
        return folder
    module, made_by = import_module(REGISTRY[name]), environment()
    config, factors = _read(name, options, seed)
    with checkpoints.kept_in(folder / PIECES, jobs):
        arrays, summary = module.compute(config, seed)
    _write_arrays(folder / ARRAYS, arrays)
    store.write_atomically(folder / SUMMARY, _table(summary))
    key = store.factor_hash(factors)
    versions = {"method_versions": _method_versions(config)}
    store.write_lock(folder, {"study": study, "cell": key, **factors, **versions, "environment": made_by})
    shutil.rmtree(folder / PIECES, ignore_errors=True)
    return folder


def is_computed(name: str, options: Mapping[str, Any], seed: int, folder: Path) -> bool:
    """Return whether what an experiment computes stands in ``folder``: same versions, its methods' too, options, seed.

    Raises as ``run`` does.
    """
    before = store.read_lock(folder)
    config, factors = _read(name, options, seed)
    if not before or before.get("cell") != store.factor_hash(factors):
        return False
    versions = _method_versions(config)
    same = before.get("method_versions", versions) == versions
    return same and (folder / ARRAYS).exists() and (folder / SUMMARY).exists()


def checkpoints_kept(folder: Path) -> int:
    """Return how many pieces an earlier run that was cut short has left in ``folder``."""
    return len(list((folder / PIECES).glob("*.json")))


def _read(name: str, options: Mapping[str, Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """Return an experiment's options, and all that its numbers hang on."""
    module = import_module(REGISTRY[name])
    config = module.Config(**options)
    factors = {"experiment": name, "version": module.VERSION, "options": config.model_dump(mode="json"), "seed": seed}
    return config, factors


def _method_versions(config: BaseModel) -> dict[str, str]:
    """Return the versions of the methods that an experiment's options name, by name."""
    from ep_bench.experiments.method_entries import ExperimentMethod  # not above: it loads scikit-learn

    values = [value if isinstance(value, tuple) else (value,) for _, value in config]
    used = {entry.use for entries in values for entry in entries if isinstance(entry, ExperimentMethod)}
    return {name: str(methods.version(name)) for name in sorted(used)}


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        np.savez_compressed(file, **arrays)
    draft.replace(path)


def _table(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
