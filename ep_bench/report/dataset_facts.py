"""Facts on data sets that decide how their scores are compared, from the lock files of the merged studies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ep_bench.report.merge import MergedStudies

INDEPENDENT = "holdout"  # scheme whose splits are different data sets from one distribution, with no common data points


def independent_draws(merged: MergedStudies) -> frozenset[str]:
    """Return the data sets whose splits have no data points in common. Splits of all other schemes overlap."""
    return frozenset(
        name for name, _, lock in _entries(merged) if (lock.get("splits") or {}).get("scheme") == INDEPENDENT
    )


def few_target_values(merged: MergedStudies) -> dict[str, tuple[int, int]]:
    """Return the numbers of target values and of data points of the data sets with few different target values."""
    return {
        name: (int(entry["target_values"]), int(entry["n"]))
        for name, entry, _ in _entries(merged)
        if entry.get("target_values")
    }


def same_data(merged: MergedStudies, datasets: Collection[str]) -> str:
    """Return the data sets that contain the same data points, in words; empty if there are none.

    Examples are one data set with two split schemes, or with different inputs.
    """
    groups: dict[str, dict[str, None]] = {}
    for name, entry, _ in _entries(merged):
        if name in datasets and entry.get("checksum"):
            groups.setdefault(entry["checksum"], {})[name] = None
    return "; ".join(" and ".join(names) for names in groups.values() if len(names) > 1)


def _entries(merged: MergedStudies) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the name in the report, the entry and the lock of each data set of each study."""
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        for label, entry in (study.lock.get("datasets") or {}).items():
            yield merged.dataset_names.get((tag, label), label), entry, study.lock
