"""Comparison with published numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.plotting.page import Section, Table, item
from ep_bench.published.claims import load_claims
from ep_bench.report.context import ReportContext
from ep_bench.report.published_checks import CLAIM_VERDICTS, claim_verdicts

ORDER = 150
HEAD = [
    "source", "table", "method", "data set", "score", "published", "ours", "splits", "z", "verdict", "reason",
]  # fmt: skip
CLAIMS_HEAD = ["verdict", "source", "place", "claim", "found", "reason"]
EXPLANATION = (
    "z is the difference divided by the root of the sum of both squared standard errors and of the rounding error of "
    "the printed number. A number with |z| of at most 2 is “reproduced”: with the same splits as the paper, this "
    "excludes gross differences only, and with few printed digits it excludes little. A disputed number is no "
    "reference. A yardstick is a number of a later paper, on the same data sets. A number that several entries "
    "correspond to counts once, with the worst verdict of those with all splits."
)
CLAIMS_EXPLANATION = (
    "Orderings, ratios of times and fractions of cells that ended without an error, as a paper states them in its "
    "text. A method is better on a data set if the paired test finds it better at level 0.05, without correction for "
    "several data sets. A comparison with splits that have not converged decides nothing. Times are CPU times of "
    "tuning, fit and prediction."
)


def sections(report: ReportContext) -> list[Section]:
    """Return the comparison with the papers' numbers and claims; claims are about grids of cells."""
    if any(study.rows for study in report.merged.studies):
        return [_numbers(report), *_claims(report)]
    return [_numbers(report)] if len(report.checks) else []


def _claims(report: ReportContext) -> list[Section]:
    """Return the verdicts on the claims whose methods are in the report."""
    claims = claim_verdicts(report.merged, load_claims())
    if not claims:
        return []
    verdicts = Counter(row["verdict"] for row in claims)
    counts = ", ".join(f"{verdict}: {verdicts[verdict]}" for verdict in CLAIM_VERDICTS if verdicts[verdict])
    rows = [
        [
            item(row["verdict"], kind="word"), row["source"], row["place"],
            item(row["claim"], kind="text"), item(row["found"], kind="text"), item(row["reason"], kind="text"),
        ]
        for row in claims
    ]  # fmt: skip
    lines = [f"{len(claims)} claims; {counts}.", CLAIMS_EXPLANATION]
    return [Section("claims", "Claims of the papers", lines, tables=[Table(CLAIMS_HEAD, rows)])]


def _numbers(report: ReportContext) -> Section:
    """Return the comparison with published numbers."""
    checks = report.checks
    if not len(checks):
        return Section("published", "Published numbers", ["There is no published number for these cells."])
    found, once = published.counts(checks), published.counted_once(checks)
    shown = published.worst_first(once[once["n_splits"] > 0])
    lines = [f"{sum(found.values())} numbers: {published.verdict_counts(checks)}.", EXPLANATION]
    if len(shown) < len(checks):
        omitted = {"without a finished split": len(once) - len(shown), "that are repeated": len(checks) - len(once)}
        words = " and ".join(f"{count} rows {which}" for which, count in omitted.items() if count)
        lines.append(f"{words} are omitted; check.csv has them.")
    return Section("published", "Published numbers", lines, tables=[Table(HEAD, _rows(shown))])


def _rows(checks: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of the table."""
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
            item(_text(record["verdict"]), kind="word"),
            item(_text(record["reason"]), kind="text"),
        ])  # fmt: skip
    return rows


def _number(value: Any) -> float:
    return float(pd.to_numeric(value, errors="coerce"))


def _sort_key(number: float) -> float | None:
    return None if math.isnan(number) else number


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
