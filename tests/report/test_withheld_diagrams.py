"""Critical-difference diagrams are withheld, with the reason, where they can say nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ep_bench.report import significance, summary
from ep_bench.report.scores import BY_NAME
from ep_bench.report.sections import ranks
from ep_bench.report.summary import DATASETS, SPLITS, Ranking

SCORE = BY_NAME["error_rate"]  # its differences are those of the test


def ranking(scores, blocks=DATASETS, **about):
    table = pd.DataFrame(scores, columns=[f"m{j}" for j in range(np.shape(scores)[1])])
    return Ranking(SCORE, blocks, ("boston",), table, **about)


def clear(n, k, seed=0):
    """Scores (n, k) whose methods are in the same order on every block."""
    return np.arange(k) + 0.01 * np.random.default_rng(seed).random((n, k)) + np.arange(n)[:, None]


@pytest.mark.parametrize(
    ("scores", "nemenyi", "wilcoxon"),
    [
        (clear(4, 3), "at least 5 blocks are needed, here N = 4 data sets", "at least 5 blocks"),
        (np.random.default_rng(1).random((8, 3)), "Friedman's test does not reject", "Friedman's test does not reject"),
        (np.ones((8, 3)), "Friedman's test does not reject equal ranks (p = 1)", "Friedman's test"),
        (
            clear(5, 12),
            "",
            "for 66 pairs, the smallest attainable",
        ),
        (clear(9, 3), "", ""),
        (clear(9, 5), "", ""),  # 10 pairs, 2^-8 each
        (clear(7, 4), "", "smallest attainable p-value is 0.094"),
    ],
)
def test_reasons(scores, nemenyi, wilcoxon):
    found = ranking(scores)
    for reason, expected in (
        (summary.no_nemenyi(found), nemenyi),
        (summary.no_wilcoxon(found), wilcoxon),
    ):
        assert expected in reason
        assert bool(reason) is bool(expected)


def test_a_critical_difference_that_no_ranks_can_reach(monkeypatch):
    for cd, withheld in ((3.0, True), (2.99, False)):
        monkeypatch.setattr(significance, "critical_difference", lambda *_, cd=cd: cd)
        reason = summary.no_nemenyi(ranking(clear(5, 4)))
        assert ("is not below 3, the largest possible difference of ranks" in reason) is withheld


def test_lines_name_the_test_and_the_blocks():
    lines = list(ranks.withheld_lines([ranking(clear(3, 3)), ranking(clear(7, 4), SPLITS)]))
    why = "at least 5 blocks are needed, here N = 3 data sets"
    assert lines[0] == f"No tests of pairs and no critical-difference diagram over data sets: {why}."
    assert lines[1].startswith("No Wilcoxon-Holm tests and no critical-difference diagram over data sets × splits: ")
    (one,) = ranks.withheld_lines([ranking(clear(1, 3))])
    assert one.endswith("here N = 1 data set.")
    assert [(one.ranking.blocks, one.test) for one in ranks.possible([ranking(clear(9, 4), SPLITS)])] == [
        (SPLITS, "Nemenyi"),
        (SPLITS, "Wilcoxon-Holm"),
    ]


def test_bars_of_both_tests_and_marks_of_the_names():
    scores = clear(12, 4)
    scores[::2, 1] = scores[::2, 0] - 0.5  # m1 is better than m0 on half of the blocks
    found = ranking(scores, marks={"m3": "†"})
    bars = {test: ranks.joined(ranks.Diagram(found, test)) for test in ranks.WITHHELD}
    for table in bars.values():
        assert list(table)[3] == "m3†"
        assert table.loc["m0", "m1"] == 1.0
        assert table.loc["m0", "m3†"] == 0.0
    assert bars["Wilcoxon-Holm"].loc["m2", "m3†"] == 0.0  # every block agrees
    average = found.ranks.mean(axis=0)
    for first in average.index[:3]:
        for second in average.index[:3]:
            far = abs(average[first] - average[second]) >= found.cd
            assert bars["Nemenyi"].loc[first, second] == float(not far)
