"""Comparison with published numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.plotting.page import Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies

HEAD = [
    "source", "table", "method", "data set", "score", "published", "ours", "splits", "z", "verdict", "reason",
]  # fmt: skip
VERDICTS = ("worse", "better", "reproduced", "incomplete", "disputed")  # in the order of the page
EXPLANATION = (
    "z is the difference divided by the root of the sum of both squared standard errors and of the rounding error of "
    "the printed number. A number with |z| of at most 2 is “reproduced”. A disputed number is no reference."
)


def sections(report: ReportContext) -> list[Section]:
    """Return the comparison of all studies that are grids of cells with the published numbers."""
    checks = _checks(report.merged)
    if checks is None:
        return []
    if not len(checks):
        return [Section("published", "Published numbers", ["There is no published number for these cells."])]
    counts = Counter(str(verdict) for verdict in checks["verdict"])
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    lines = [f"{len(checks)} numbers: {summary}.", EXPLANATION]
    return [Section("published", "Published numbers", lines, tables=[Table(HEAD, _rows(checks))])]


def _checks(merged: MergedStudies) -> pd.DataFrame | None:
    """Return the comparison of every study with the published numbers, or None if no study is a grid of cells."""
    grids = [study for study in merged.studies if study.rows and study.lock]
    found = [published.check(pd.DataFrame(study.rows), study.lock) for study in grids]
    if not found:
        return None
    return pd.concat([frame for frame in found if len(frame)] or found[:1], ignore_index=True)


def _rows(checks: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of the table, sorted by verdict."""
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    place = checks["verdict"].map(order).fillna(len(order))
    checks = checks.assign(_place=place).sort_values(["_place", "source", "table", "metric"], kind="stable")
    rows = []
    for record in checks.to_dict("records"):
        ours, theirs = (
            item(show(_number(record[mean]), _number(record[error])) or "–", _sort_key(_number(record[mean])))
            for show, mean, error in (
                (published.measured, "mean", "stderr"),
                (published.printed, "published_mean", "published_stderr"),
            )
        )
        z, count = _number(record["z"]), _number(record["n_splits"])
        rows.append([
            *(_text(record[name]) for name in ("source", "table", "method", "dataset", "metric")),
            theirs, ours, item("" if math.isnan(count) else f"{count:.0f}"),
            item("" if math.isnan(z) else f"{z:.2f}", _sort_key(z)),
            item(_text(record["verdict"]), strong=record["verdict"] == "worse", kind="word"),
            item(_text(record["reason"]), kind="text"),
        ])  # fmt: skip
    return rows


def _number(value: Any) -> float:
    return float(pd.to_numeric(value, errors="coerce"))


def _sort_key(number: float) -> float | None:
    return None if math.isnan(number) else number


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
