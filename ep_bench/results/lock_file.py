"""The lock file of a study: the plan, the factors behind each hash, and the checksum and provenance of each row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from ep_bench.errors import UserError, visible
from ep_bench.results.files import FORMAT, canonical, factor_hash, refuse_newer, write_if_changed

LOCK = "study.lock.json"


class Origin(NamedTuple):
    """How a row was computed."""

    method: str  # registry name or target
    version: Any
    source: str  # hash of the source code of the engine, empty if unknown
    environment: Mapping[str, Any]  # as in ``provenance.environment``

    @property
    def revision(self) -> str:
        """The git revision of the source code, empty if unknown."""
        return str(self.environment.get("revision", ""))

    @property
    def changed_tree(self) -> bool:
        """True if the source code had uncommitted changes."""
        return self.revision.endswith("+changes")


def write_lock(folder: Path, lock: Mapping[str, Any]) -> None:
    """Write ``study.lock.json`` in a form that version control can compare, unless it already has this content."""
    entries = (f" {json.dumps(name)}: {_lines(value)}" for name, value in _sorted({"format": FORMAT, **lock}).items())
    write_if_changed(folder / LOCK, "{\n" + ",\n".join(entries) + "\n}\n")


def _lines(value: Any) -> str:
    """Return the JSON of a list or mapping with one line per entry, of another value on one line."""
    if value and isinstance(value, Mapping):
        return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items()) + "\n }"
    if value and isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(one)}" for one in value) + "\n ]"
    return json.dumps(value)


def _sorted(value: Any, key: str = "") -> Any:
    """Return a value with sorted mappings, but the search spaces of a study: trials depend on the order of the options."""
    if isinstance(value, Mapping):
        names = value if key == "space" else sorted(value)
        return {name: _sorted(value[name], name) for name in names}
    return [_sorted(one) for one in value] if isinstance(value, list | tuple) else value


def read_lock(folder: Path) -> dict[str, Any] | None:
    """Return ``study.lock.json``, or None if there is no file. Raises UserError if it cannot be read."""
    path = folder / LOCK
    if not path.exists():
        return None
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(lock, dict):
        raise UserError("not the lock file of a study", where=str(path))
    refuse_newer(lock.get("format"), path)
    if found := _unprintable(lock):
        raise UserError(f"not the lock file of a study: {found}; restore it from version control", where=str(path))
    return lock


def names_any(path: Path, keys: AbstractSet[str]) -> bool:
    """Return whether a lock file has one of these hashes, without a check of the file."""
    return not keys.isdisjoint(re.findall(r'"([0-9a-f]{16})"', path.read_text(encoding="utf-8", errors="replace")))


def refuse_other_kind(folder: Path, lock: Mapping[str, Any] | None, *, experiment: bool) -> None:
    """Raise UserError if a folder has the lock file of an experiment, and not of cells, or the other way round."""
    if lock and ("groups" if experiment else "experiment") in lock:
        kind = "a study with cells" if experiment else "an experiment"
        raise UserError(f"is the folder of {kind}; choose another name in `study:`", where=str(folder))


def _unprintable(lock: Mapping[str, Any]) -> str:
    """Return which label has a control character, empty if none has."""
    labels = (label for part in ("datasets", "methods") for label in lock.get(part, ()))
    return next((f"the label {label!r} has a control character" for label in labels if visible(label) != label), "")


def lock_cells(lock: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the planned cells of a lock file, each as {cell, method, dataset, split, factors}.

    Two cells have the same hash if one configuration has two labels.
    """
    return [
        {
            "cell": key,
            "method": group["method"],
            "dataset": group["dataset"],
            "split": int(split),
            "factors": {**group["factors"], "split": int(split)},
        }
        for group in lock.get("groups", ())
        for split, key in group["cells"].items()
    ]


def provenance(origins: Mapping[str, Origin], checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return the entries ``environments`` and ``provenance`` of a lock file for rows by hash."""
    environments: dict[str, Mapping[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    for key in sorted(checksums):
        origin = origins[key]
        identifier = factor_hash(origin.environment)[:8]
        environments[identifier] = origin.environment
        entry = {"method": origin.method, "version": origin.version, "source": origin.source, "environment": identifier}
        groups.setdefault(canonical(entry), {**entry, "rows": {}})["rows"][key] = checksums[key]
    return {"environments": environments, "provenance": [groups[name] for name in sorted(groups)]}


def read_provenance(lock: Mapping[str, Any]) -> tuple[dict[str, Origin], dict[str, str]]:
    """Return the origins and the checksums of rows by hash."""
    origins: dict[str, Origin] = {}
    checksums: dict[str, str] = {}
    for entry in lock.get("provenance", ()):
        environment = lock["environments"][entry["environment"]]
        origin = Origin(entry["method"], entry["version"], entry["source"], environment)
        origins |= dict.fromkeys(entry["rows"], origin)
        checksums |= entry["rows"]
    return origins, checksums
