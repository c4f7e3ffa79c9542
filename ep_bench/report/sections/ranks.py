"""Ranks over data sets: tests, critical-difference diagrams and p-values of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import pandas as pd

from ep_bench.convergence import DAGGER
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report import rank_diagrams, ranks, tables, withheld_diagrams
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES, TARGET
from ep_bench.report.summary import RankedScore, Ranking
from ep_bench.report.withheld_diagrams import FEWEST_BLOCKS
from ep_bench.results.spreadsheets import harmless

DIFFERENT = " ≠"  # marks p-values below the level
CAPTION = f"{DIFFERENT.strip()}: the two methods differ at level {ranks.ALPHA:g}"
LOGS = ". Wilcoxon's tests rank differences of logs, which do not depend on the units of the targets"
LARGEST_TABLE = 10  # methods of a table of all pairs; with more, only the pairs with the best average rank are shown
TESTS = {rank_diagrams.WILCOXON: "Wilcoxon signed-rank tests, Holm-corrected", rank_diagrams.NEMENYI: "Nemenyi tests"}
P_FILE = "p-values.csv"
LEAD = (
    "The ranked methods and data sets are those of the leaderboard: the largest complete subset. A block is one data "
    "set, with its mean score, or one data set and split. The tests over blocks assume that blocks are independent."
)
NONE = "No ranks by {scores}: no two methods are complete on a common data set."


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
    pairs = p_values_csv([ranking for one in scores for ranking in one.rankings])
    files = {P_FILE: pairs} if pairs else {}
    return [Section("ranks", "Ranks over data sets", [*lines, LEAD], tables=shown, parts=parts, files=files)]


def _part(one: RankedScore, styles: Mapping[str, MethodStyle]) -> Section:
    diagrams = rank_diagrams.possible(one.rankings) if one.score.source in FIGURES else []
    pictures = [rank_diagrams.critical_difference(diagrams, styles)] if diagrams else []
    p_values = [table for ranking in one.rankings for table in _p_tables(ranking)]
    return Section(f"ranks-{one.score.name}", one.score.title, _lines(one.rankings), pictures, p_values)


def _averages(scores: Sequence[RankedScore]) -> Table:
    """Return the average ranks of all methods by each score, over data sets or over independent draws of one."""
    found = [(one.score, one.headline) for one in scores if one.headline is not None]
    texts = {score.name: ranking for score, ranking in found}
    names = dict.fromkeys(str(name) for _, ranking in found for name in ranking.average.index)
    head = ["method", *(f"{score.title} (N = {ranking.count})" for score, ranking in found)]
    rows = [[_name(name, texts.values()), *(_rank(ranking, name) for ranking in texts.values())] for name in names]
    caption = f"Average ranks by each score, 1 is the best. Bold: the lowest average rank, if it has no {DAGGER}"
    return Table(head, rows, caption)


def _name(name: str, rankings: Iterable[Ranking]) -> str:
    """Return the name of a method with its mark of convergence in the first ranking that has it."""
    return next(rank_diagrams.marked(ranking, name) for ranking in rankings if name in ranking.ranks)


def _rank(ranking: Ranking, name: str) -> Item:
    (text,) = tables.average_ranks(ranking, [name])
    rank = ranking.ranks.mean(axis=0).get(name)
    return item(text or "–", "" if rank is None else float(rank), strong=rank is not None and ranking.is_bold(name))


def _lines(rankings: Sequence[Ranking]) -> list[str]:
    """Return the tests, the methods that are not ranked, and the diagrams that are withheld."""
    lines = [friedman_line(ranking) for ranking in rankings]
    if rankings[0].left_out:
        names = ", ".join(rankings[0].left_out)
        lines.append(f"Not ranked because they are not complete on all of these data sets: {names}.")
    if rankings[0].unbounded:
        names = ", ".join(rankings[0].unbounded)
        lines.append(f"Not part of these ranks, because the log-likelihood has no upper bound there: {names}.")
    return [*lines, *rank_diagrams.withheld_lines(rankings)]


def friedman_line(ranking: Ranking) -> str:
    """Return the tests of Friedman and of Iman and Davenport, and the critical difference unless it is withheld."""
    test, blocks = ranking.test, ranking.blocks
    head = f"N = {ranking.count} ({', '.join(ranking.datasets)}), {test.k} methods"
    if ranking.incomplete:
        head += f" ({ranking.counted(ranking.incomplete)} without a score of every method omitted)"
    if ranking.repeated:
        return f"{head}: no test, because {ranking.repeated} contain the same data points."
    if math.isnan(test.chi2) or ranking.n < FEWEST_BLOCKS:
        return f"{head}: too few {blocks} for a test."
    degrees = "1 degree" if test.k == 2 else f"{test.k - 1} degrees"
    F = f"F = {test.F:.3f} with ({test.df[0]}, {test.df[1]}), {_p_text(test.p_iman_davenport)}"
    if math.isinf(test.F):
        F = "F is infinite (all blocks agree)"
    tied = test.chi2_ties > test.chi2 * (1 + 1e-9)
    ties = f" (corrected for ties {test.chi2_ties:.3f}, {_p_text(test.p_ties)})" if tied else ""
    text = (
        f"{head}: Friedman χ² = {test.chi2:.3f} with {degrees} of freedom, {_p_text(test.p)}{ties}; Iman-Davenport {F}"
    )
    if not withheld_diagrams.nemenyi(ranking):
        text += f"; Nemenyi q = {ranking.q:.3f}, critical difference {ranking.cd:.3f} at level {ranks.ALPHA}"
    text += "."
    if not ranking.independent:
        text += " Splits of one data set have common data points: blocks are not independent, and p-values too small."
    return text


def _p_text(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


def _p_tables(ranking: Ranking) -> Iterator[Table]:
    """Yield the p-values of the tests that are not withheld, folded: those of all pairs, or those against the best."""
    tests = _tests(ranking)
    if tests and ranking.test.k > LARGEST_TABLE:
        yield _against_the_best(ranking, tests)
        return
    for name, p in tests.items():
        rows = [[str(first), *(_p_item(p, str(first), str(second)) for second in p.columns)] for first in p.index]
        head = ["", *(str(second) for second in p.columns)]
        caption = CAPTION + LOGS * (name == rank_diagrams.WILCOXON and ranking.score.unit == TARGET)
        yield Table(head, rows, caption, folded=f"{TESTS[name]}: p-values, N = {ranking.count}")


def _tests(ranking: Ranking) -> dict[str, pd.DataFrame]:
    """Return the p-values (k, k) of the tests of all pairs that are not withheld, by name of the test."""
    found = {rank_diagrams.WILCOXON: ranking.wilcoxon, rank_diagrams.NEMENYI: ranking.nemenyi}
    return {name: p for name, p in found.items() if p is not None and not rank_diagrams.WITHHELD[name](ranking)}


def _against_the_best(ranking: Ranking, tests: Mapping[str, pd.DataFrame]) -> Table:
    """Return the table of p-values against the method with the lowest average rank."""
    average = ranking.average
    best, *others = (str(name) for name in average.index)
    rows = [
        [
            rank_diagrams.marked(ranking, name),
            item(f"{average[name]:.2f}", float(average[name])),
            *(_p_item(p, name, best) for p in tests.values()),
        ]
        for name in others
    ]
    title = f"p-values against {rank_diagrams.marked(ranking, best)} (average rank {average[best]:.2f})"
    logs = LOGS * (ranking.score.unit == TARGET and rank_diagrams.WILCOXON in tests)
    caption = f"{CAPTION}{logs}. Corrected for all pairs, whose p-values are in tables/{P_FILE}"
    head = ["method", "average rank", *(TESTS[name] for name in tests)]
    return Table(head, rows, caption, folded=f"{title}, N = {ranking.count}")


def _p_item(p: pd.DataFrame, first: str, second: str) -> Item:
    if first == second:
        return item("")
    value = float(p.loc[[first], [second]].to_numpy(dtype=float)[0, 0])
    text = "< 0.001" if value < 0.001 else f"{value:.3f}"
    return item(text + (DIFFERENT if value < ranks.ALPHA else ""), value)


def p_values_csv(rankings: Sequence[Ranking]) -> str:
    """Return the p-values of all pairs by all tests that are not withheld as CSV, empty if there are none."""
    lines = [
        {
            "score": ranking.score.name,
            "blocks": ranking.blocks,
            "n": ranking.n,
            "test": name,
            "first": first,
            "second": second,
            "p": p.loc[first, second],
        }
        for ranking in rankings
        for name, p in _tests(ranking).items()
        for first, second in combinations((str(method) for method in ranking.average.index), 2)
    ]
    return pd.DataFrame(lines).map(harmless).to_csv(index=False, lineterminator="\n") if lines else ""
