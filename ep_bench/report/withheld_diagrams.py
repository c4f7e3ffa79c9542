"""Reasons why pairs of average ranks are not compared: Friedman's test does not reject, or the test of pairs cannot."""

from __future__ import annotations

from ep_bench.report import ranks
from ep_bench.report.ranks import ALPHA
from ep_bench.report.summary import Ranking

FEWEST_BLOCKS = 5  # fewer blocks say too little about average ranks


def nemenyi(ranking: Ranking) -> str:
    """Return why there is no diagram by Nemenyi's test, empty if there is one."""
    if reason := _friedman(ranking):
        return reason
    k = ranking.test.k
    if ranking.cd >= k - 1:
        return (
            f"the critical difference {ranking.cd:.2f} is not below {k - 1}, the largest possible difference of ranks"
        )
    return ""


def wilcoxon(ranking: Ranking) -> str:
    """Return why there is no diagram by Wilcoxon's signed-rank tests, empty if there is one."""
    if reason := _friedman(ranking):
        return reason
    smallest = ranks.smallest_wilcoxon_p(ranking.test.k, ranking.n)
    if smallest >= ALPHA:
        pairs = ranking.test.k * (ranking.test.k - 1) // 2
        return (
            f"with {ranking.count} and Holm's correction for {pairs} pairs, the smallest attainable "
            f"p-value is {smallest:.2g}"
        )
    return ""


def _friedman(ranking: Ranking) -> str:
    """Return why average ranks may not be compared pair by pair, empty if they may."""
    if ranking.repeated:
        return f"{ranking.repeated} contain the same data points"
    if len(ranking.datasets) == 1 and not ranking.independent:
        return "the splits of a single data set are compared by the paired test"
    if ranking.n < FEWEST_BLOCKS:
        return f"at least {FEWEST_BLOCKS} blocks are needed, here N = {ranking.count}"
    p = ranking.test.p_decisive
    if not p < ALPHA:
        return f"Friedman's test does not reject equal ranks (p = {p:.2g})"
    return ""
