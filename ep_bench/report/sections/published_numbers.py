"""Comparison with published numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.plotting.axes import canvas
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import LOOKS, STYLE, finish
from ep_bench.published.claims import load_claims
from ep_bench.report.claims import CLAIM_VERDICTS, claim_verdicts
from ep_bench.report.context import ReportContext

ORDER = 150
HEAD = ["paper", "method", "data set", "score", "published", "ours", "splits", "z", "verdict"]
FILTERS = ("paper", "method", "verdict")
_BLUE, _RED, _GREEN, _LIGHT = (LOOKS[place][0] for place in (0, 1, 3, 5))
COLOURS = {"worse": _RED, "better": _BLUE, "reproduced": _GREEN, "disputed": "0.6", "yardstick": _LIGHT}
EDGE = 10.0  # largest |z| that the figure shows at its place
CLAIMS_HEAD = ["paper", "place", "claim", "found", "verdict"]
EXPLANATION = (
    "z is the difference divided by the root of the sum of both squared standard errors and of the rounding error of "
    "the printed number. A number with |z| of at most 2 is “reproduced”: with the same splits as the paper, this "
    "excludes gross differences only, and with few printed digits it excludes little. A disputed number is no "
    "reference. A yardstick is a number of a later paper, on the same data sets. A number that several entries "
    "correspond to counts once, with the worst verdict of those with all splits."
)
CLAIMS_EXPLANATION = (
    "Orderings, ratios of times and fractions of cells that have converged, as a paper states them in its text. A "
    "method is better on a data set if the paired test finds it better at level 0.05, without correction for several "
    "data sets, or if the 95 % interval of the difference over test points, by Bayesian bootstrap, excludes 0. Splits "
    "that have not converged decide nothing. Times are CPU times of tuning, fit and prediction."
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
            row["source"], row["place"], item(row["claim"], kind="text"), item(row["found"], kind="text"),
            _verdict(row["verdict"], row["reason"]),
        ]
        for row in claims
    ]  # fmt: skip
    lines = [f"{len(claims)} claims; {counts}.", CLAIMS_EXPLANATION]
    return [
        Section(
            "claims", "Claims of the papers", lines, tables=[Table(CLAIMS_HEAD, rows, filters=("paper", "verdict"))]
        )
    ]


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
    compared = shown[shown["z"].notna() & shown["verdict"].isin(COLOURS)]
    pictures = [z_figure(compared)] if len(compared) else []
    return Section("published", "Published numbers", lines, pictures, [Table(HEAD, _rows(shown), filters=FILTERS)])


def z_figure(known: pd.DataFrame) -> Picture:
    """Return the z of each compared number, with one line per column of a published table."""
    columns = [f"{source}, {name}" for source, name in zip(known["source"], known["published_method"], strict=True)]
    names = sorted(set(columns))
    lines = np.array([names.index(column) for column in columns])
    z = (known["z"] * known["metric"].map(published.METRICS)).to_numpy(dtype=float)
    with mpl.rc_context(STYLE):
        figure, (ax,) = canvas(1, names, width=5.0)
        ax.axvspan(-2.0, 2.0, color="0.93", zorder=0)
        for verdict, colour in COLOURS.items():
            mine = (known["verdict"] == verdict).to_numpy()
            for where, marker in ((np.abs(z) <= EDGE, "o"), (z > EDGE, ">"), (z < -EDGE, "<")):
                x, y = np.clip(z[mine & where], -EDGE, EDGE), lines[mine & where]
                ax.plot(x, y, marker, color=colour, markersize=3.5, alpha=0.7, clip_on=False)
            if mine.any():
                ax.plot([], [], "o", color=colour, markersize=3.5, label=verdict)
        ax.set_xlim(-EDGE, EDGE)
        ax.set_xlabel("z, positive where ours is better")
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(COLOURS), frameon=False, handletextpad=0.2)
    caption = (
        f"z of each number, by column of the published tables. Grey: |z| of at most 2; triangles: |z| above {EDGE:g}."
    )
    return finish(figure, "published-z", caption)


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
            item(_text(record["source"]), _text(record["source"]), small=f"table {record['table']}", kind=""),
            item(_text(record["method"]), kind="word"), _text(record["dataset"]), _text(record["metric"]),
            theirs, ours, item("" if math.isnan(count) else f"{count:.0f}"),
            item("" if math.isnan(z) else f"{z:.2f}", _sort_key(z)),
            _verdict(record["verdict"], _text(record["reason"])),
        ])  # fmt: skip
    return rows


def _verdict(verdict: str, reason: str) -> Item:
    """Return a verdict that the reader unfolds for its reason."""
    return item(verdict, verdict, small=reason, kind="folded" if reason else "word")


def _number(value: Any) -> float:
    return float(pd.to_numeric(value, errors="coerce"))


def _sort_key(number: float) -> float | None:
    return None if math.isnan(number) else number


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
