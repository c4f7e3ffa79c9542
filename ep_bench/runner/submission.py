"""Checks of results that somebody submits, and the manifest of a submission."""

from __future__ import annotations

import importlib.metadata
import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench import adapters, data
from ep_bench.adapters.targets import distributions
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.results.selection import KEYS
from ep_bench.results.submission import SUBMISSION, VERIFIED
from ep_bench.runner.recompute import seconds_of
from ep_bench.runner.verify import Sample

SEEDS = 10**6  # number of seeds of a sample
STUDY = "study.yaml"  # copy of the study, next to copies of the files that it names
_FILES = (store.LOCK, store.RESULTS, "curves.json", "rows.json", STUDY)
_NEEDS = {  # classes of ep-bench and the packages of its extras
    "ep_bench.baselines:NGBoostRegressor": "ngboost",
    "ep_bench.tree_baselines:CatBoost": "catboost",
    "ep_bench.tree_baselines:LightGBM": "lightgbm",
    "ep_bench.tree_baselines:QuantileForest": "quantile_forest",
    "ep_bench.tree_baselines:XGBoost": "xgboost",
}


def problems(study: store.StudyResults) -> Iterator[str]:
    """Yield the reasons in its rows and data sets why a study cannot be submitted."""
    if "groups" not in study.lock:
        yield "these are not the results of a study with cells"
        return
    missing = len(store.lock_cells(study.lock)) - sum(row["status"] == "ok" for row in study.all_rows)
    if missing == len(store.lock_cells(study.lock)):
        yield "no cell has ended ok"
    origins = [origin for row in study.all_rows if (origin := study.origin(row)) is not None]
    if any(origin.changed_tree for origin in origins):
        yield "rows of uncommitted code: commit the code, remove the folder and run the study again"
    for label, entry in study.lock["datasets"].items():
        if entry["name"] not in data.names():
            yield f"data set {label}: only data sets of ep-bench can be submitted; add yours first, with its licence"
        elif entry.get("checksum") != data.card(entry["name"]).sha256:
            yield f"data set {label}: its checksum is not that of the card"


def method_problems(study: store.StudyResults) -> Iterator[str]:
    """Yield the external classes that others could not install; the packages must be installed here."""
    for use in methods_of(study.lock) if "groups" in study.lock else ():
        place = use.rpartition(":")[0]
        found = distributions().get(place.split(".")[0], ())[:1]
        if adapters.names_a_file(use, {}):
            if not (study.folder / place).is_file():
                yield f"{use}: name the study (--study), so that the file of the method is copied"
        elif not place.startswith("ep_bench.") and not any(_is_from_an_index(each) for each in found):
            yield f"{use}: not a package of a package index; install it from one, or use a file"


def _is_from_an_index(package: importlib.metadata.Distribution) -> bool:
    """Return whether a package was not installed from a folder, an archive or a repository, by which conda builds."""
    by_conda = (package.read_text("INSTALLER") or "").strip() == "conda"
    return by_conda or not package.read_text("direct_url.json")


def methods_of(lock: Mapping[str, Any]) -> list[str]:
    """Return the external classes of a study, nested ones included."""
    return sorted({use for group in lock["groups"] for use in _targets(group["factors"])})


def _targets(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        named = (value.get(key) for key in ("method", "use", "object"))
        yield from (use for use in named if isinstance(use, str) and adapters.is_target(use))
        yield from (use for each in value.values() for use in _targets(each))
    elif isinstance(value, list):
        yield from (use for each in value for use in _targets(each))


def requirements(lock: Mapping[str, Any]) -> list[str]:
    """Return the packages of the methods with their installed versions, as pip takes them."""
    used = {_NEEDS.get(use, use.partition(":")[0]) for use in methods_of(lock)}
    modules = {place.partition(".")[0] for place in used} - {"", "ep_bench"}
    found = (each for module in modules for each in distributions().get(module, ())[:1])
    return sorted(f"{each.metadata['Name']}=={each.version}" for each in found)


def copy_study(path: Path, folder: Path, lock: Mapping[str, Any]) -> None:
    """Copy a study and the files of its methods into its results folder."""
    shutil.copyfile(path, folder / STUDY)
    for use in methods_of(lock):
        for file in adapters.files(use, path.parent, {}):
            inside = path.parent.resolve()
            if not file.is_relative_to(inside):
                raise UserError("is not in the folder of the study or below it", where=str(file))
            copy = folder / file.relative_to(inside)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def manifest(study: store.StudyResults, by: str) -> dict[str, Any]:
    """Return the manifest of a submission."""
    names = {entry["name"] for entry in study.lock["datasets"].values()}
    files = {file for use in methods_of(study.lock) for file in adapters.files(use, study.folder, {})}
    sources = {str(file.relative_to(study.folder.resolve())) for file in files}
    present = {name for name in _FILES if (study.folder / name).exists()}
    return {
        "study": study.name,
        "by": by,
        "ep-bench": importlib.metadata.version("ep-bench"),
        "requirements": requirements(study.lock),
        "licences": {name: data.card(name).licence for name in sorted(names)},
        "files": store.file_checksums(study.folder, sorted(sources | present)),
    }


def seed_of(submission: Mapping[str, Any]) -> int:
    """Return the seed of the sample that is computed before a submission; it follows from the submitted files."""
    return int(store.factor_hash(submission["files"]), 16) % SEEDS


def longer_cells(study: store.StudyResults, sample: Sample) -> list[str]:
    """State how many finished cells are too long for the sample, and name a random one, which anybody may compute."""
    cells = {cell["cell"]: cell for cell in store.lock_cells(study.lock)}
    rows = [row for row in study.all_rows if row["status"] == "ok"]
    longer = [row for row in rows if seconds_of(row) > sample.longest]
    lines = [f"sample of {len(rows) - len(longer)} of {len(rows)} cells, which took at most {sample.longest:g} s each"]
    if longer:
        cell = cells[random.Random(sample.seed).choice(longer)["cell"]]
        chosen = " ".join(f"--select '{key}={cell[key]}'" for key in KEYS)
        lines.append(f"one of the others, not computed again: ep-bench verify {study.folder} {chosen}")
    return lines


def changed_files(folder: Path, submission: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs from the files that were submitted, and what a submission must not state."""
    if "verified" in submission:
        yield f"{SUBMISSION} has `verified`, which only {VERIFIED} of the maintainers states"
    for name, expected in {store.LOCK: "", store.RESULTS: "", **submission["files"]}.items():
        if not (folder / name).is_file() or store.file_checksums(folder, [name])[name] != expected:
            yield f"{name} is not the file that was submitted"
