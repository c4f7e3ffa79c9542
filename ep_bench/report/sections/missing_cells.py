"""Cells that are not ok or left out, and the reasons of failures and warnings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies, split_ranges

ORDER = 170
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def sections(report: ReportContext) -> list[Section]:
    """Return the notes of the merge and the tables of missing cells and of remarks, if there are any."""
    unfinished = [[gap[key] for key in ("method", "dataset", "done", "detail")] for gap in gaps(report.merged)]
    reasons = [
        [remark["method"], remark["dataset"], remark["status"], item(remark["reason"], kind="text"), remark["splits"]]
        for remark in remarks(report.merged)
    ]
    excluded = [[method, dataset, item(reason, kind="text")] for method, dataset, reason in left_out(report.merged)]
    tables = [
        Table(["method", "data set", "finished", "not ok"], unfinished, "Planned cells that are not ok"),
        Table(["method", "data set", "reason"], excluded, "Combinations that a study leaves out"),
        Table(["method", "data set", "status", "reason", "splits"], reasons, "Reasons of failures and warnings"),
    ]
    shown, notes = [table for table in tables if table.rows], report.merged.notes
    return [Section("missing", "Missing cells and remarks", notes, tables=shown)] if shown or notes else []


def gaps(merged: MergedStudies) -> list[dict[str, Any]]:
    """Return every (method, dataset) with cells that are not ok, with the counts by status."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for method, dataset, status in merged.rows[["method", "dataset", "status"]].itertuples(index=False):
        counts.setdefault((method, dataset), Counter())[status] += 1
    found = []
    for (method, dataset), planned in merged.planned.items():
        states = counts.get((method, dataset), Counter())
        states["missing"] = planned - states.total()
        if states["ok"] < planned:
            parts = [f"{count} {status}" for status, count in sorted(states.items()) if status != "ok" and count]
            done = f"{states['ok']} of {planned} splits"
            found.append({"method": method, "dataset": dataset, "done": done, "detail": ", ".join(parts)})
    return found


def left_out(merged: MergedStudies) -> list[tuple[str, str, str]]:
    """Return method, data set and reason of each combination that a study leaves out and no other study has."""
    found: dict[tuple[str, str], str] = {}
    for tag, study in zip(merged.tags, merged.studies, strict=True):
        for each in study.lock.get("left_out") or ():
            method = merged.names.get((tag, each["method"]), each["method"])
            found.setdefault(
                (method, merged.dataset_names.get((tag, each["dataset"]), each["dataset"])), each["reason"]
            )
    return [(*place, reason) for place, reason in found.items() if place not in merged.planned]


def remarks(merged: MergedStudies) -> list[dict[str, Any]]:
    """Return the reasons of failures and warnings, by method, data set and status.

    Reasons that differ only in numbers are combined, and the numbers are replaced by their range.
    """
    grouped: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for row in merged.rows[["method", "dataset", "status", "reason", "split"]].to_dict("records"):
        reason = row["reason"] if isinstance(row["reason"], str) else ""
        if reason or row["status"] != "ok":
            key = (str(row["method"]), str(row["dataset"]), str(row["status"]), _NUMBER.sub("\0", reason))
            grouped.setdefault(key, []).append((reason, int(row["split"])))
    keys = ("method", "dataset", "status")
    return [
        dict(zip(keys, key, strict=False))
        | {
            "reason": _joined_reasons([reason for reason, _ in found]),
            "splits": split_ranges(split for _, split in found),
        }
        for key, found in grouped.items()
    ]


def _joined_reasons(reasons: Sequence[str]) -> str:
    """Combine reasons that differ only in numbers: "2.09 to 2.87" replaces these."""
    columns = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    spans = iter([min(column, key=float) + _up_to(column) for column in columns])
    return _NUMBER.sub(lambda _: next(spans), reasons[0])


def _up_to(numbers: Sequence[str]) -> str:
    return f" to {max(numbers, key=float)}" if len(set(numbers)) > 1 else ""
