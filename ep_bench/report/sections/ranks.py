"""Ranks over data sets: tests, critical-difference diagrams and p-values of all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report import rank_diagrams, ranks
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES
from ep_bench.report.summary import RankedScore, Ranking


def sections(report: ReportContext) -> list[Section]:
    """Return the section of ranks, with one part per score that can be ranked."""
    parts = [_part(one, report.styles) for one in report.scores if one.rankings]
    return [Section("ranks", "Ranks over data sets", parts=parts)] if parts else []


def _part(one: RankedScore, styles: Mapping[str, MethodStyle]) -> Section:
    testable = [ranking for ranking in one.rankings if ranking.nemenyi is not None]
    drawn = bool(testable) and one.score.source in FIGURES
    pictures = [rank_diagrams.critical_difference(testable, styles)] if drawn else []
    tables = [table for ranking in one.rankings for table in _p_values(ranking)]
    return Section(f"ranks-{one.score.name}", one.score.title, _lines(one.rankings), pictures, tables)


def _lines(rankings: Sequence[Ranking]) -> list[str]:
    """Return the tests, and the methods that are not ranked."""
    lines = [friedman_line(ranking) for ranking in rankings]
    if rankings[0].left_out:
        names = ", ".join(rankings[0].left_out)
        lines.append(f"Not ranked because of scores on fewer than half of the data sets: {names}.")
    return lines


def friedman_line(ranking: Ranking) -> str:
    """Return the tests of Friedman and of Iman and Davenport, and the critical difference, or why there are none."""
    test, blocks = ranking.test, ranking.blocks
    head = f"N = {ranking.n} {blocks}, {test.k} methods"
    if ranking.incomplete:
        head += f" ({ranking.incomplete} {blocks} without a score of every method omitted)"
    if math.isnan(test.chi2):
        return f"{head}: too few {blocks} for a test."
    degrees = "1 degree" if test.k == 2 else f"{test.k - 1} degrees"
    F = f"F = {test.F:.3f} with ({test.df[0]}, {test.df[1]}), {_p_text(test.p_iman_davenport)}"
    if math.isinf(test.F):
        F = "F is infinite (all blocks agree)"
    tied = test.chi2_ties > test.chi2 * (1 + 1e-9)
    ties = f" (corrected for ties {test.chi2_ties:.3f}, {_p_text(test.p_ties)})" if tied else ""
    text = (
        f"{head}: Friedman χ² = {test.chi2:.3f} with {degrees} of freedom, {_p_text(test.p)}{ties}; "
        f"Iman-Davenport {F}; "
        f"Nemenyi q = {ranking.q:.3f}, critical difference {ranking.cd:.3f} at level {ranks.ALPHA}."
    )
    if "splits" in blocks:
        text += " Splits of one data set have common data points: blocks are not independent, and p-values too small."
    return text


def _p_text(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


def _p_values(ranking: Ranking) -> Iterator[Table]:
    """Yield the tables of p-values of all pairs, folded."""
    tests = {"Wilcoxon signed-rank tests, Holm-corrected": ranking.wilcoxon, "Nemenyi tests": ranking.nemenyi}
    for title, p in tests.items():
        if p is not None:
            head = ["", *(str(name) for name in p.columns)]
            rows = [[str(name), *_p_items(p, str(name))] for name in p.index]
            yield Table(head, rows, folded=f"{title}: p-values, N = {ranking.n} {ranking.blocks}")


def _p_items(p: pd.DataFrame, name: str) -> list[Item]:
    return [
        item("") if other == name else item(f"{value:.3f}", value, strong=value < ranks.ALPHA)
        for other, value in zip(p.columns, p.loc[name].to_numpy(dtype=float).tolist(), strict=True)
    ]
