"""Methods with their options, data sets with checksums, versions and machine of each study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.results import store

ACCEPT_KEYS = ("method", "dataset", "metric", "reason")
HIDDEN = {"name", "n", "d", "checksum", "csv", "target_values"}  # not shown among the options of a data set


def sections(report: ReportContext) -> list[Section]:
    """Return the section of what was run, with one part per study."""
    merged = report.merged
    studies = zip(merged.studies, merged.tags, strict=True)
    parts = [_part(place, study, tag) for place, (study, tag) in enumerate(studies, 1)]
    return [Section("run", "What was run", parts=parts)]


def _part(place: int, study: store.StudyResults, tag: str) -> Section:
    tables = [table for table in (*_tables(study.lock), *_origins(study)) if table.rows]
    return Section(f"run-{place}", tag, [_settings(study.lock)], tables=tables)


def _settings(lock: Mapping[str, Any]) -> str:
    """Return seed, splits and, for an experiment, its name and options, in one line."""
    experiment, splits = lock.get("experiment"), lock.get("splits", {})
    facts = [f"experiment {_words(experiment)}, options: {_words(lock.get('options', {}))}" if experiment else ""]
    facts += [f"seed {lock['seed']}" if "seed" in lock else "", f"splits: {_words(splits)}" if splits else ""]
    return "; ".join(fact for fact in facts if fact) or "No study.lock.json: plan, versions and checksums are unknown."


def _tables(lock: Mapping[str, Any]) -> Iterator[Table]:
    methods = [
        [label, str(entry.get("use", "")), _long(_options(entry)), _words(entry.get("published", ""))]
        for label, entry in lock.get("methods", {}).items()
    ]
    yield Table(["method", "uses", "options", "published as"], methods, "Methods")
    datasets = [
        [
            label,
            item(str(entry.get("n", "")), entry.get("n")),
            item(str(entry.get("d", "")), entry.get("d")),
            _words({key: value for key, value in entry.items() if key not in HIDDEN}),
            _long(str(entry.get("checksum") or "")),
        ]
        for label, entry in lock.get("datasets", {}).items()
    ]
    yield Table(["data set", "data points", "inputs", "options", "SHA-256"], datasets, "Data sets")
    accepted = [[str(entry.get(key, "any")) for key in ACCEPT_KEYS] for entry in lock.get("accept", [])]
    head = ["method", "data set", "score", "reason"]
    yield Table(head, accepted, "Known differences from published numbers")


def _origins(study: store.StudyResults) -> Iterator[Table]:
    """Yield the versions of the methods and the environments, with the number of cells of each."""
    origins = [origin for row in study.rows if (origin := study.origin(row)) is not None]
    experiment = study.lock.get("environment") if study.lock.get("experiment") else None
    environments: list[Mapping[str, Any]] = []
    for environment in [experiment] if experiment else [origin.environment for origin in origins]:
        if environment and environment not in environments:
            environments.append(environment)
    names = {store.factor_hash(environment): str(i) for i, environment in enumerate(environments, 1)}
    counts = Counter(
        (origin.method, str(origin.version or ""), origin.source, names.get(store.factor_hash(origin.environment), ""))
        for origin in origins
    )
    head = ["method", "version", "hash of its source code", "environment", "cells"]
    rows = [[*key, item(str(count), count)] for key, count in sorted(counts.items())]
    yield Table(head, rows, "How the cells were computed")
    flat = [dict(_flatten(environment)) for environment in environments]
    keys = dict.fromkeys(key for settings in flat for key in settings)
    values = [[key, *(_long(settings.get(key, "")) for settings in flat)] for key in keys]
    yield Table(["environment", *names.values()], values, "Versions and machines")


def _options(entry: Mapping[str, Any]) -> str:
    """Return the options of a study's entry, followed by its tuning."""
    tune = entry.get("tune")
    return "; ".join(
        part for part in (_words(entry.get("options", "")), f"tune: {_inner(tune)}" if tune else "") if part
    )


def _long(text: str) -> dict[str, Any]:
    return item(text, kind="text")


def _words(value: Any) -> str:
    """Return a nested setting as text, such as ``hidden: [50], epochs: 40``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_inner(entry) for entry in value)
    return str(value)


def _inner(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + _words(value) + "}"
    return f"[{_words(value)}]" if isinstance(value, list | tuple) else str(value)


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as pairs of a path and a text."""
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            yield from _flatten(entry, f"{prefix}{key} ")
        else:
            yield f"{prefix}{key}", _words(entry)
