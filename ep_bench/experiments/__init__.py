"""Experiments: figures and tables of papers that are not grids of cells.

An experiment is a folder ``<paper>/<name>`` with ``compute.py``, ``figure.py`` and a record (``record.Experiment``) in
``__init__.py``, and one line in ``registry.REGISTRY``. ``run`` stores ``arrays.npz``, ``summary.csv`` and
``study.lock.json``; ``figures.section`` draws them.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ep_bench.errors import OptionProblem, UserError
from ep_bench.experiments import checkpoints
from ep_bench.experiments.registry import REGISTRY, get
from ep_bench.results import store
from ep_bench.results.provenance import environment
from ep_bench.results.spreadsheets import harmless

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ep_bench.experiments.method_entries import ExperimentMethod

ARRAYS, SUMMARY, CHECKPOINTS, SUPERSEDED = "arrays.npz", "summary.csv", "pieces", "superseded"
FILES = (ARRAYS, SUMMARY)


def names() -> tuple[str, ...]:
    """Return the names of the experiments."""
    return tuple(REGISTRY)


def options_model(name: str) -> type[BaseModel]:
    """Return the model of the options of an experiment. Raises KeyError for an unknown name."""
    return get(name).config


def problems(name: str, options: Mapping[str, Any]) -> list[OptionProblem]:
    """Return the problems of an experiment's options; the list is empty if all are valid."""
    from pydantic import ValidationError

    from ep_bench.options import problems as described

    config = options_model(name)
    try:
        config(**options)
    except ValidationError as error:
        return list(described(config, name, error))
    return []


def run(
    name: str,
    options: Mapping[str, Any],
    seed: int,
    folder: Path,
    study: str,
    jobs: int = 1,
    accept: Sequence[Mapping[str, str]] = (),
    report: Callable[[int, int], None] | None = None,
    *,
    retry_failed: bool = False,
) -> Path:
    """Compute an experiment into ``folder``, unless the same results are there already; return the folder.

    The lock file has the differences from published numbers that the study accepts (``accept``). If the experiment uses
    checkpoints, ``jobs`` parts are computed in parallel, and an interrupted run continues; ``report`` receives the
    number of finished parts and of all parts. The checkpoints of a run with failed parts are kept, and with
    ``retry_failed`` the failed parts are computed again. Results of other options, seeds or versions are kept in the
    folder ``superseded``.

    Raises
    ------
    pydantic.ValidationError
        The options are invalid; see ``problems``.
    UserError
        The folder has the cells of a study, or the checkpoints of failed parts are not there any more.
    """
    if retry_failed:
        _prepare_retry(folder)
    done = is_computed(name, options, seed, folder)
    if done and not (retry_failed and failures(folder)):
        _update_lock(folder, {**_accepted(accept), **_columns(_read(name, options, seed)[0])})
        _remove_checkpoints(folder)  # if a run ended between writing the lock and here
        return folder
    made_by = environment()
    config, factors = _read(name, options, seed)
    versions = {"method_versions": _method_versions(config)}
    with checkpoints.kept_in(folder / CHECKPOINTS, {**factors, **versions}, jobs, report):
        started = time.monotonic()
        arrays, summary = get(name).compute(config, seed)
        seconds = round(time.monotonic() - started, 1)
    if not done and is_computed(name, options, seed, folder):  # by another run, meanwhile
        return folder
    _keep_earlier(folder)
    _write_arrays(folder / ARRAYS, arrays)
    store.write_atomically(folder / SUMMARY, _csv(summary))
    key = store.factor_hash(factors)
    files = store.file_checksums(folder, FILES)
    store.write_lock(
        folder,
        {
            "study": study,
            "cell": key,
            **factors,
            **versions,
            "environment": made_by,
            "files": files,
            "seconds": seconds,
            **_accepted(accept),
            **_columns(config),
        },
    )
    _remove_checkpoints(folder)
    return folder


def _prepare_retry(folder: Path) -> None:
    """Remove the checkpoints of failed parts. Raises UserError if no checkpoints are there to continue with."""
    if failures(folder) and not checkpoints_kept(folder):
        raise UserError(
            "the parts of this experiment are not stored, so failed parts cannot be computed alone; remove "
            f"{folder / store.LOCK} and run again to compute all parts"
        )
    checkpoints.remove_failed(folder / CHECKPOINTS)


def _remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a finished run, unless parts failed, which ``retry_failed`` computes again."""
    if not failures(folder):
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def is_computed(name: str, options: Mapping[str, Any], seed: int, folder: Path) -> bool:
    """Return whether ``folder`` has intact results of these options, this seed, and the current versions.

    The versions are those of the experiment and of the methods in its options. Raises as ``run`` does.
    """
    lock = store.read_lock(folder)
    store.refuse_other_kind(folder, lock, experiment=True)
    config, factors = _read(name, options, seed)
    if not lock or lock.get("cell") != store.factor_hash(factors):
        return False
    same = _are_current(lock.get("method_versions"), config)
    return same and all((folder / name).exists() for name in FILES) and not store.suspect_files(folder, lock)


def _keep_earlier(folder: Path) -> None:
    """Move the results that the folder has to ``superseded/<time of their end>``."""
    if not has_results(folder):
        return
    ended = time.gmtime((folder / store.LOCK).stat().st_mtime)
    place = folder / SUPERSEDED / time.strftime("%Y-%m-%dT%H-%M-%S", ended)
    place.mkdir(parents=True, exist_ok=True)
    for name in (*FILES, store.LOCK):
        if (folder / name).exists():
            (folder / name).replace(place / name)


def _update_lock(folder: Path, comparison: Mapping[str, Any]) -> None:
    """Replace what a lock file has about the comparison with published numbers.

    Checksums of the files are added if an older version wrote the lock file.
    """
    other = {"format", "accept", "published"}
    lock = {key: value for key, value in (store.read_lock(folder) or {}).items() if key not in other}
    lock.setdefault("files", store.file_checksums(folder, FILES))
    store.write_lock(folder, {**lock, **comparison})


def _accepted(accept: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {"accept": [dict(item) for item in accept]} if accept else {}


def _columns(config: BaseModel) -> dict[str, Any]:
    """Return the columns of published tables that entries name, by label."""
    named = {entry.name: getattr(entry, "published", None) for entry in _entries(config)}
    found = {label: column for label, column in named.items() if column is not None}
    return {"published": found} if found else {}


def has_results(folder: Path) -> bool:
    """Return whether ``folder`` has results of an experiment, of any options and versions."""
    return (folder / store.LOCK).exists() and any((folder / name).exists() for name in FILES)


def failures(folder: Path) -> list[str]:
    """Return one text per part of a computed experiment that failed; empty if the experiment does not count them."""
    if not (folder / ARRAYS).exists():
        return []
    with np.load(folder / ARRAYS) as arrays:
        return [str(text) for text in arrays["failures"]] if "failures" in arrays else []


def parts(name: str, options: Mapping[str, Any]) -> list[tuple[int, float | None]]:
    """Return numbers of parts of an experiment and the rough seconds of one, None if unknown; empty without parts."""
    experiment = get(name)
    return experiment.parts(experiment.config(**options))


def checkpoints_kept(folder: Path) -> int:
    """Return the number of checkpoints that an interrupted run left in ``folder``."""
    return len(list((folder / CHECKPOINTS).glob("*.json")))


def _read(name: str, options: Mapping[str, Any], seed: int) -> tuple[BaseModel, dict[str, Any]]:
    """Return an experiment's options, and the factors that determine its numbers."""
    from ep_bench.options import factors

    experiment = get(name)
    config = experiment.config(**options)
    return config, {"experiment": name, "version": experiment.version, "options": factors(config), "seed": seed}


def _entries(config: BaseModel) -> list[ExperimentMethod]:
    """Return the methods in an experiment's options."""
    from ep_bench.experiments.method_entries import ExperimentMethod

    values = [value if isinstance(value, tuple) else (value,) for _, value in config]
    return [entry for entries in values for entry in entries if isinstance(entry, ExperimentMethod)]


def _versions(config: BaseModel) -> list[tuple[str, tuple[str, ...]]]:
    """Return what the entries of an experiment's options name, each with its versions, the newest first."""
    return sorted(item for entry in _entries(config) for item in entry.versions().items())


def _method_versions(config: BaseModel) -> dict[str, str]:
    """Return the newest version of what the entries of an experiment's options name."""
    return {name: versions[0] for name, versions in _versions(config)}


def _are_current(stored: Mapping[str, str] | None, config: BaseModel) -> bool:
    """Return whether stored versions of the methods are the newest, or those that last changed their numbers."""
    if stored is None:
        return True
    found = _versions(config)
    return stored.keys() == {name for name, _ in found} and all(stored[name] in versions for name, versions in found)


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        np.savez_compressed(file, **arrays)
    draft.replace(path)


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    return out.getvalue()
