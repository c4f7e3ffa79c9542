"""Methods with their options, data sets with checksums, versions and machine of each study."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.results import store

ORDER = 180
# Not shown among the options of a data set.
HIDDEN = {"name", "n", "d", "checksum", "csv", "target_values", "unranked"}


def sections(report: ReportContext) -> list[Section]:
    """Return the tuned options, and what was run with one part per study."""
    merged = report.merged
    studies = zip(merged.studies, merged.tags, strict=True)
    parts = [_part(place, study, tag) for place, (study, tag) in enumerate(studies, 1)]
    return [*_tuned(report), Section("run", "What was run", parts=parts)]


def _part(place: int, study: store.StudyResults, tag: str) -> Section:
    tables = [table for table in (*_tables(study), *_origins(study)) if table.rows]
    return Section(f"run-{place}", tag, [_settings(study.lock)], tables=tables)


def _settings(lock: Mapping[str, Any]) -> str:
    """Return seed, splits and, for an experiment, its name and options, in one line."""
    experiment, splits = lock.get("experiment"), lock.get("splits", {})
    facts = [f"experiment {_words(experiment)}, options: {_words(lock.get('options', {}))}" if experiment else ""]
    facts += [f"seed {lock['seed']}" if "seed" in lock else "", f"splits: {_words(splits)}" if splits else ""]
    return "; ".join(fact for fact in facts if fact) or "No study.lock.json: plan, versions and checksums are unknown."


def _tables(study: store.StudyResults) -> Iterator[Table]:
    lock = study.lock
    methods = [
        [label, str(entry.get("use", "")), _long(_options(entry)), _words(entry.get("published", ""))]
        for label, entry in lock.get("methods", {}).items()
    ]
    yield Table(["method", "uses", "options", "published as"], methods, "Methods, with the options of their entries")
    caption = "Options that differ between data sets, as the cells were computed"
    yield Table(["method", "data sets", "options"], list(_differing(study)), caption)
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
    """Return the options of a study's entry, followed by its tuning and recalibration."""
    further = [f"{key}: {_inner(entry[key])}" for key in ("tune", "recalibrate") if entry.get(key)]
    return "; ".join(filter(None, [_words(entry.get("options", "")), *further]))


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


HEAD = ["method", "data set", "option", "search space", "chosen", "splits"]
CAPTION = (
    "Options with the best score on the validation data: median over splits (and range) of numbers, frequencies of "
    "other choices"
)
Group = tuple[str, str]  # method, data set


def _tuned(report: ReportContext) -> list[Section]:
    """Return the tuned options, if any method is tuned."""
    lines, rows = collect(report.merged)
    if not (lines or rows):
        return []
    items = [
        [*row[:3], item(row[3], kind="text"), item(row[4], kind="text"), item(row[5], float(row[5]))] for row in rows
    ]
    tables = [Table(HEAD, items, CAPTION)] if items else []
    return [Section("tuned", "Tuned options", lines, tables=tables)]


def collect(merged: MergedStudies) -> tuple[list[str], list[list[str]]]:
    """Return sentences on the tuning of finished cells, and rows of the columns ``HEAD``; both empty without tuning."""
    wanted = {key: found["tune"] for key, found in _factors(merged).items() if found.get("tune")}
    groups = {group: keys for group, hashes in _hashes(merged).items() if (keys := [k for k in hashes if k in wanted])}
    if not groups:
        return [], []
    known = merged.curves.tuned
    found = {group: [known[key] for key in keys if key in known] for group, keys in groups.items()}
    lines = list(_failures(found))
    count, stored = sum(map(len, groups.values())), sum(map(len, found.values()))
    if stored < count:
        lines.append(f"The chosen options of {stored or 'none'} of {count} tuned cells are stored.")
    rows = [row for group, kept in found.items() for row in _rows(group, kept, wanted[groups[group][0]]["space"])]
    return lines, rows


def _factors(merged: MergedStudies) -> dict[str, Mapping[str, Any]]:
    """Return what decides the numbers of each planned cell, by its hash."""
    return {cell["cell"]: cell["factors"] for study in merged.studies for cell in store.lock_cells(study.lock)}


def _hashes(merged: MergedStudies) -> dict[Group, list[str]]:
    """Return the hashes of the finished cells of each method on each data set."""
    found: dict[Any, list[str]] = merged.rows.groupby(["method", "dataset"], sort=False)["cell"].agg(list).to_dict()
    return found


def options_by_cell(merged: MergedStudies) -> dict[str, str]:
    """Return the options of each planned cell in words, by its hash; those of a search are its fixed ones."""
    return {key: _words(_fixed(factors)) for key, factors in _factors(merged).items()}


def _fixed(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a cell that are not searched."""
    searched = (factors.get("tune") or {}).get("space") or {}
    options = factors.get("options") or {}
    return {name: value for name, value in options.items() if name not in searched and value is not None}


def searches(merged: MergedStudies) -> dict[Group, str]:
    """Return how the options of each method on each data set were searched, and what was chosen, in words."""
    chosen: dict[Group, list[str]] = {}
    for method, dataset, option, _, value, _ in collect(merged)[1]:
        chosen.setdefault((method, dataset), []).append(f"{option} {value}")
    factors, found = _factors(merged), {}
    for group, keys in _hashes(merged).items():
        tune = (factors.get(keys[0]) or {}).get("tune")
        words = (
            [f"{tune['trials']} trials on each split chose {', '.join(chosen.get(group, ['options']))}"] if tune else []
        )
        words += [f"{validated} chosen on validation points"] if (validated := _validated(merged, group[0])) else []
        if words:
            found[group] = "; ".join(words)
    return found


def _validated(merged: MergedStudies, method: str) -> str:
    """Return the options that a fit of a method chooses on validation points itself, empty for none."""
    found = (entry["validated"] for name, entry in merged.method_entries() if name == method and entry.get("validated"))
    return str(next(found, ""))


def chosen_text(search: Mapping[str, Any] | None) -> str:
    """Return the options that the search of one cell chose, in words."""
    return ", ".join(f"{name} {_text(value)}" for name, value in ((search or {}).get("options") or {}).items())


def _differing(study: store.StudyResults) -> Iterator[list[Any]]:
    """Yield the options of the methods whose cells do not have the same ones on all data sets."""
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for group in study.lock.get("groups") or ():
        groups.setdefault(group["method"], {})[group["dataset"]] = group["factors"].get("options") or {}
    for method, by_dataset in groups.items():
        names = dict.fromkeys(name for options in by_dataset.values() for name in options)
        varying = [name for name in names if len({str(one.get(name)) for one in by_dataset.values()}) > 1]
        sets: dict[str, list[str]] = {}
        for dataset, options in by_dataset.items():
            sets.setdefault(_words({name: options[name] for name in varying if name in options}), []).append(dataset)
        if varying:
            yield from ([method, item(", ".join(found), kind="text"), _long(words)] for words, found in sets.items())


def _failures(found: Mapping[Group, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield one line per method and data set with failed trials."""
    for (method, dataset), searches in found.items():
        failed, trials = (sum(search[key] for search in searches) for key in ("failed", "trials"))
        if failed:
            reasons = Counter(search["reason"] for search in searches if search["failed"])
            often = reasons.most_common(1)[0][0]
            yield f"{method} on {dataset}: {failed} of {trials} trials failed, most often: {often}"


def _rows(
    group: Group, searches: Sequence[Mapping[str, Any]], space: Mapping[str, Mapping[str, Any]]
) -> Iterator[list[str]]:
    for name, entry in space.items():
        ((kind, values),) = entry.items()
        chosen = [search["options"][name] for search in searches if name in (search["options"] or {})]
        if chosen:
            yield [*group, name, _searched(kind, values), summarise(kind, chosen), str(len(chosen))]


def _searched(kind: str, values: Sequence[Any]) -> str:
    if kind == "choice":
        return ", ".join(_text(value) for value in values)
    scale = ", log" if kind in {"log", "log_int"} else ""
    return f"{_text(values[0])} to {_text(values[1])}{scale}"


def summarise(kind: str, chosen: Sequence[Any]) -> str:
    """Return the median and the range of numbers, or the frequencies of choices, the most frequent first."""
    numbers = [value for value in chosen if isinstance(value, int | float) and not isinstance(value, bool)]
    if kind != "choice" and len(numbers) == len(chosen):
        low, high = _text(min(numbers)), _text(max(numbers))
        return low if low == high else f"{_text(statistics.median(numbers))} ({low} to {high})"
    counts = Counter(_text(value) for value in chosen)
    return ", ".join(f"{text} × {count}" for text, count in counts.most_common())


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)
