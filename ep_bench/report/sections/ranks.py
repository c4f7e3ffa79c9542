"""Ranks over data sets: tests, critical-difference diagrams and p-values of all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report import rank_diagrams, ranks, tables
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES
from ep_bench.report.summary import RankedScore, Ranking

DIFFERENT = " ≠"  # marks p-values below the level
CAPTION = f"{DIFFERENT.strip()}: the two methods differ at level {ranks.ALPHA:g}"
LEAD = (
    "Only complete entries are ranked. A block is one data set, with its mean score, or one data set and split. The "
    "tests over blocks assume that blocks are independent."
)
NONE = "No ranks by {scores}: there is no data set on which all methods to be ranked are complete."


def sections(report: ReportContext) -> list[Section]:
    """Return the section of ranks: a table of the average ranks by each score, and one part per score."""
    scores = [one for one in report.scores if one.score.better]
    parts = [_part(one, report.styles) for one in scores if one.rankings]
    unranked = [one.score.inline for one in scores if not one.rankings and len(one.table.methods) > 1]
    lines = [NONE.format(scores=" and ".join(unranked))] if unranked else []
    if not parts:
        return [Section("ranks", "Ranks over data sets", lines)] if lines else []
    averages = _averages(scores)
    shown = [averages] if averages.rows else []
    return [Section("ranks", "Ranks over data sets", [*lines, LEAD], tables=shown, parts=parts)]


def _part(one: RankedScore, styles: Mapping[str, MethodStyle]) -> Section:
    diagrams = rank_diagrams.possible(one.rankings) if one.score.source in FIGURES else []
    pictures = [rank_diagrams.critical_difference(diagrams, styles)] if diagrams else []
    p_values = [table for ranking in one.rankings for table in _p_values(ranking)]
    return Section(f"ranks-{one.score.name}", one.score.title, _lines(one.rankings), pictures, p_values)


def _averages(scores: Sequence[RankedScore]) -> Table:
    """Return the average ranks of all methods by each score, over data sets or over independent draws of one."""
    found = [(one.score, one.headline) for one in scores if one.headline is not None]
    texts = {score.name: ranking for score, ranking in found}
    names = dict.fromkeys(str(name) for _, ranking in found for name in ranking.average.index)
    head = ["method", *(f"{score.title} (N = {ranking.count})" for score, ranking in found)]
    rows = [[_name(name, texts.values()), *(_rank(ranking, name) for ranking in texts.values())] for name in names]
    return Table(head, rows, "Average ranks by each score, 1 is the best. Bold: the lowest average rank")


def _name(name: str, rankings: Iterable[Ranking]) -> str:
    """Return the name of a method with its mark of convergence in the first ranking that has it."""
    return next(rank_diagrams.marked(ranking, name) for ranking in rankings if name in ranking.ranks)


def _rank(ranking: Ranking, name: str) -> Item:
    (text,) = tables.average_ranks(ranking, [name])
    rank = ranking.ranks.mean(axis=0).get(name)
    return item(text or "–", "" if rank is None else float(rank), strong=name == ranking.average.index[0])


def _lines(rankings: Sequence[Ranking]) -> list[str]:
    """Return the tests, the methods that are not ranked, and the diagrams that are withheld."""
    lines = [friedman_line(ranking) for ranking in rankings]
    if rankings[0].left_out:
        names = ", ".join(rankings[0].left_out)
        lines.append(f"Not ranked because they are complete on fewer than half of the data sets: {names}.")
    drawn = rankings if rankings[0].score.source in FIGURES else ()
    return [*lines, *rank_diagrams.withheld_lines(drawn)]


def friedman_line(ranking: Ranking) -> str:
    """Return the tests of Friedman and of Iman and Davenport, and the critical difference, or why there are none."""
    test, blocks = ranking.test, ranking.blocks
    head = f"N = {ranking.count} ({', '.join(ranking.datasets)}), {test.k} methods"
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
    if not ranking.independent:
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
            yield Table(head, rows, CAPTION, folded=f"{title}: p-values, N = {ranking.count}")


def _p_items(p: pd.DataFrame, name: str) -> list[Item]:
    return [
        item("") if other == name else item(f"{value:.3f}{DIFFERENT if value < ranks.ALPHA else ''}", value)
        for other, value in zip(p.columns, p.loc[name].to_numpy(dtype=float).tolist(), strict=True)
    ]
