"""Matching of published values and labels of a study: the same method, data set, irrelevant inputs and splits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ep_bench.published.sources import PublishedTable, load_sources
from ep_bench.published.values import described_rows

Lock = Mapping[str, Any]  # study.lock.json

# Options of a data set that is not the published one.
OTHER_DATA = ("csv", "target", "altered_file", "drop_rows", "drop_inputs", "train_points")
_DEFAULTS = {"folds": 10, "test_fraction": 0.1}


def labels(number: Mapping[str, Any], lock: Lock) -> Iterator[tuple[str, str]]:
    """Yield the labels of method and data set to which a published value applies, regardless of the splits."""
    compared = load_sources().table(number["source"], number["table"]).compared
    columns = [entries for entries in compared if number["method"] in entries.methods]
    for method, entry in (lock.get("methods") or {}).items():
        named = number["method"] in (entry.get("published") or ())
        for dataset in datasets(number, lock) if named or columns else ():
            if named or any(column.fits(entry.get("use", ""), options(lock, method, dataset)) for column in columns):
                yield method, dataset


def datasets(number: Mapping[str, Any], lock: Lock) -> Iterator[str]:
    """Yield the labels of the data sets to which a published value applies."""
    for dataset, ref in (lock.get("datasets") or {}).items():
        if _same_data(number, dataset, ref):
            yield dataset


def by_splits(number: Mapping[str, Any], splits: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the published value with the number of splits required under a study's scheme, if it applies."""
    if scheme_fits(number, splits):
        yield number
    elif number["kindred_scheme"] and splits.get("scheme", "standard") == number["kindred_scheme"]:
        yield {**number, "n_splits": number["kindred_splits"]}


def printed_over_points(table: PublishedTable, lock: Lock) -> dict[str, dict[str, dict[str, str]]]:
    """Return the printed values of a table that apply to a study: label of the data set -> method -> metric -> text."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for number in described_rows():
        if (number["source"], number["table"]) == (table.source, table.table) and scheme_fits(
            number, lock.get("splits") or {}
        ):
            for dataset in datasets(number, lock):
                metrics = found.setdefault(dataset, {}).setdefault(number["method"], {})
                metrics[number["metric"]] = number["printed_mean"]
    return found


def options(lock: Lock, method: str, dataset: str) -> Mapping[str, Any]:
    """Return the resolved options of a method on a data set, else those of the entry in the study."""
    for group in lock.get("groups") or ():
        if (group.get("method"), group.get("dataset")) == (method, dataset):
            return dict((group.get("factors") or {}).get("options") or {})
    return dict((lock.get("methods") or {}).get(method, {}).get("options") or {})


def scheme_fits(number: Mapping[str, Any], splits: Mapping[str, Any]) -> bool:
    """Return whether a study's split scheme is that of a published value."""
    if not number["scheme"] or splits.get("scheme", "standard") != number["scheme"]:
        return False
    if splits.get("files") != number["files"]:  # of `gap`: the public test sets, or those of the sorted values
        return False
    return all(
        number[key] is None or math.isclose(splits.get(key) or default, number[key])
        for key, default in _DEFAULTS.items()
    )


def _same_data(number: Mapping[str, Any], label: str, ref: Mapping[str, Any]) -> bool:
    if (
        any(ref.get(key) for key in OTHER_DATA)
        or (ref.get("target_transform") or "none") not in number["target_transforms"]
    ):
        return False
    same_name = ref.get("name", label) == number["name"]
    return bool(same_name and (ref.get("irrelevant_inputs") or 0) == number["irrelevant_inputs"])
