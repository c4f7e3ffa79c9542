"""The stored results of an experiment: arrays, summary and lock file, written when all parts are finished."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ep_bench.experiments import ARRAYS, FILES, SUMMARY, get
from ep_bench.experiments.record import Computed, Experiment
from ep_bench.results import store
from ep_bench.results.provenance import environment
from ep_bench.results.spreadsheets import csv_text

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ep_bench.experiments.method_entries import ExperimentMethod

SUPERSEDED = "superseded"  # folder of the results of other options, seeds or versions
VERDICTS = ("check.csv", "claims.csv")  # which `check` writes next to the results


@dataclass(frozen=True)
class ExperimentSetup:
    """An experiment with its options and its seed.

    The options are read when they are first needed, which must be inside ``study_folder.relative_to`` if they name
    files.
    """

    name: str
    options: Mapping[str, Any]
    seed: int

    @property
    def experiment(self) -> Experiment:
        """The record of the experiment."""
        return get(self.name)

    @cached_property
    def config(self) -> BaseModel:
        """The options. Raises pydantic.ValidationError if they are invalid."""
        return self.experiment.config(**self.options)

    @cached_property
    def factors(self) -> dict[str, Any]:
        """What determines the numbers, apart from the versions of methods."""
        from ep_bench.options import factors

        version = self.experiment.version
        return {"experiment": self.name, "version": version, "options": factors(self.config), "seed": self.seed}

    @cached_property
    def versions(self) -> dict[str, tuple[str, ...]]:
        """The versions with which stored results are current, the newest first, by what the options name."""
        return {name: versions for entry in self.entries() for name, versions in entry.versions().items()}

    def newest_versions(self) -> dict[str, str]:
        """Return the newest version of each method in the options."""
        return {name: versions[0] for name, versions in sorted(self.versions.items())}

    def entries(self) -> list[ExperimentMethod]:
        """Return the methods in the options."""
        from ep_bench.experiments.method_entries import ExperimentMethod

        values = [value if isinstance(value, tuple) else (value,) for _, value in self.config]
        return [entry for entries in values for entry in entries if isinstance(entry, ExperimentMethod)]

    def is_computed(self, folder: Path) -> bool:
        """Return whether a folder has intact results of these options, this seed, and the current versions.

        Raises UserError if it has the cells of a study.
        """
        lock = store.read_lock(folder)
        store.refuse_other_kind(folder, lock, experiment=True)
        if not lock or lock.get("cell") != store.factor_hash(self.factors):
            return False
        stored = lock.get("method_versions", {name: versions[0] for name, versions in self.versions.items()})
        same = stored.keys() == self.versions.keys() and all(stored[name] in self.versions[name] for name in stored)
        return same and all((folder / name).exists() for name in FILES) and not store.suspect_files(folder, lock)


def write(setup: ExperimentSetup, folder: Path, computed: Computed, about: Mapping[str, Any], seconds: float) -> None:
    """Store the results of an experiment; earlier ones are kept in the folder ``superseded``.

    The lock file is moved away last and written last, and has the checksums of the other files. A folder without it has
    no results, so that none are a mixture if the process is killed here.
    ``about`` has the further entries of the lock file, ``seconds`` is the wall time of all parts.
    """
    keep_earlier(folder)
    arrays, summary = computed
    store.write_atomically(folder / ARRAYS, _npz(arrays))
    store.write_atomically(folder / SUMMARY, csv_text(list(summary[0]) if summary else [], summary))
    lock = {
        "cell": store.factor_hash(setup.factors),
        **setup.factors,
        "method_versions": setup.newest_versions(),
        "environment": environment(),
        "files": store.file_checksums(folder, FILES),
        "seconds": round(seconds, 1),
    }
    store.write_lock(folder, {**lock, **about})


def update_comparison(folder: Path, about: Mapping[str, Any]) -> None:
    """Replace what a lock file has about the comparison with published numbers."""
    lock = {k: v for k, v in (store.read_lock(folder) or {}).items() if k not in {"format", "accept"}}
    store.write_lock(folder, {**lock, **about})


def keep_earlier(folder: Path) -> None:
    """Move the results that the folder has, complete or not, to ``superseded/<time of their end>``."""
    found = [path for name in (*FILES, *VERDICTS, store.LOCK) if (path := folder / name).exists()]
    if not found:
        return
    ended = time.gmtime(max(path.stat().st_mtime for path in found))
    place = folder / SUPERSEDED / time.strftime("%Y-%m-%dT%H-%M-%S", ended)
    place.mkdir(parents=True, exist_ok=True)
    for path in found:
        path.replace(place / path.name)


def failures(folder: Path) -> list[str]:
    """Return one text per part of a computed experiment that failed; empty if the experiment does not count them."""
    if not (folder / ARRAYS).exists():
        return []
    with np.load(folder / ARRAYS) as arrays:
        return [str(text) for text in arrays["failures"]] if "failures" in arrays else []


def _npz(arrays: Mapping[str, Any]) -> bytes:
    """Return the content of an npz file, which LZMA makes about a tenth smaller than ``np.savez_compressed`` does."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()
