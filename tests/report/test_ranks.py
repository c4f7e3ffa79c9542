"""Rank statistics against Demsar's worked example, SciPy, scikit-posthocs and hand computation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ep_bench.report import significance
from ep_bench.report.scores import BY_NAME
from ep_bench.report.sections import ranks as ranks_section
from ep_bench.report.summary import DATASETS, Ranking

# Demsar 2006, table 6: AUC of four classifiers on 14 data sets.
AUC = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.975, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip


def test_demsar_from_the_printed_ranks():
    printed = np.array([3.143, 2.000, 2.893, 1.964])
    sums = np.round(2 * 14 * printed) / 2  # rank sums are multiples of a half
    test = significance.friedman_of_ranks(sums / 14, 14)
    assert test.chi2 == pytest.approx(9.2786, abs=1e-4)


def test_demsar_from_the_scores_with_and_without_ties():
    table = significance.block_ranks(AUC, higher_is_better=True)
    assert table.mean(axis=0) == pytest.approx([3.1429, 2.0, 2.9286, 1.9286], abs=1e-4)
    test = significance.friedman(table)
    assert test.chi2 == pytest.approx(9.8571, abs=1e-4)
    assert test.chi2_ties == pytest.approx(10.9524, abs=1e-4)
    expected = stats.friedmanchisquare(*AUC.T)
    assert test.chi2_ties == pytest.approx(expected.statistic, rel=1e-12)
    assert test.p_ties == pytest.approx(expected.pvalue, rel=1e-12)


@pytest.mark.parametrize(
    ("alpha", "table"),
    [
        (0.05, [1.960, 2.344, 2.569, 2.728, 2.850, 2.948, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.460, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_nemenyi_q_table(alpha, table):
    # Demsar truncated some of the third decimals.
    assert [significance.nemenyi_q(k, alpha) for k in range(2, 11)] == pytest.approx(table, abs=1.01e-3)


@pytest.mark.parametrize(("alpha", "q", "cd"), [(0.05, 2.56903, 1.25356), (0.10, 2.29134, 1.11806)])
def test_nemenyi_critical_difference(alpha, q, cd):
    assert significance.nemenyi_q(4, alpha) == pytest.approx(q, abs=1e-5)
    assert significance.critical_difference(significance.nemenyi_q(4, alpha), 4, 14) == pytest.approx(cd, abs=1e-5)


def test_nemenyi_p_is_alpha_at_the_critical_difference():
    table = pd.DataFrame(significance.block_ranks(AUC, higher_is_better=True), columns=list("abcd"))
    p = significance.nemenyi_p(table)
    average = table.mean(axis=0)
    cd = significance.critical_difference(significance.nemenyi_q(4), 4, 14)
    for first in "abcd":
        for second in "abcd":
            assert (p.loc[first, second] < 0.05) == (abs(average[first] - average[second]) > cd)
    gap = abs(average["a"] - average["d"])
    q = gap / math.sqrt(4 * 5 / (6 * 14)) * math.sqrt(2)
    assert p.loc["a", "d"] == pytest.approx(stats.studentized_range.sf(q, 4, np.inf), rel=1e-6)


@pytest.mark.parametrize("n", [6, 9, 12, 20, 60])
@pytest.mark.exhaustive
def test_wilcoxon_equals_scikit_posthocs(n):
    from scikit_posthocs import posthoc_wilcoxon

    rng = np.random.default_rng(n)
    scores = rng.normal(size=(n, 5)) + np.array([0.0, 0.1, 0.5, 1.0, 1.0])
    scores[:, 4] = scores[:, 0]  # only zero differences with the first
    scores[:3, 2] = scores[:3, 1]  # some zeros
    scores[3:5, 3] = scores[3:5, 2] + 0.25  # a tie
    ours = significance.wilcoxon_p(pd.DataFrame(scores, columns=list("abcde")))
    theirs = posthoc_wilcoxon(list(scores.T), zero_method="zsplit", p_adjust="holm")
    assert np.allclose(ours, theirs, rtol=1e-12, atol=0)
    assert ours.loc["a", "e"] == 1.0


def test_wilcoxon_of_errors_does_not_depend_on_the_units_of_the_targets():
    rng = np.random.default_rng(0)
    errors = pd.DataFrame(np.exp(0.3 * rng.normal(size=(8, 3))), columns=list("abc"))
    units = 10.0 ** rng.integers(-4, 4, size=(8, 1))
    for name in ("rmse", "crps"):
        one, other = (
            Ranking(BY_NAME[name], DATASETS, tuple("12345678"), scores) for scores in (errors, errors * units)
        )
        assert np.allclose(one.wilcoxon, other.wilcoxon, rtol=1e-12)
    nats = Ranking(BY_NAME["ll"], DATASETS, tuple("12345678"), errors)
    assert np.allclose(nats.wilcoxon, significance.wilcoxon_p(errors))


def test_two_errors_of_zero_do_not_differ():
    scores = pd.DataFrame({"a": [0.0, 0.0, 0.5, 1.0, 2.0, 3.0], "b": [0.0, 0.1, 0.6, 1.1, 2.2, 3.5]})
    found = Ranking(BY_NAME["rmse"], DATASETS, tuple("123456"), scores).wilcoxon
    by_hand = 2.0 * (1 + 1) / 2**6  # ranks 2 to 6 are negative, the zero is split: one more sum is as small
    assert found.loc["a", "b"] == pytest.approx(by_hand)


def test_holm_by_hand():
    # sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, made monotone
    assert significance.holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert significance.holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])
    np.testing.assert_allclose(significance.holm(np.array([0.01, np.nan, 0.04])), [0.02, np.nan, 0.04])


def test_the_smallest_wilcoxon_p_is_that_of_equal_signs():
    scores = pd.DataFrame(np.arange(1.0, 8.0)[:, None] * np.arange(4.0), columns=list("abcd"))
    smallest = significance.wilcoxon_p(scores).to_numpy().min()
    assert significance.smallest_wilcoxon_p(4, 7) == pytest.approx(smallest, rel=1e-12)  # 6 pairs, 2^-6 each
    assert significance.smallest_wilcoxon_p(4, 7) == pytest.approx(6 / 64, rel=1e-12)
    assert significance.smallest_wilcoxon_p(9, 3) == 1.0


@pytest.mark.parametrize(
    ("different", "expected"),
    [
        ([], [(0, 3)]),
        ([(0, 1), (1, 2), (2, 3)], []),
        ([(0, 2), (0, 3), (1, 3)], [(0, 1), (1, 2), (2, 3)]),
        ([(0, 1), (1, 3)], [(1, 2), (2, 3)]),
        ([(0, 1)], [(1, 3)]),  # the first differs from the second only: no group of the first
        ([(2, 3)], [(0, 3)]),  # a group is that of its best method
    ],
)
def test_groups_of_equal_methods_as_in_aeon(different, expected):
    p = np.ones((4, 4))
    for pair in different:
        p[pair] = p[pair[::-1]] = 0.01
    assert significance.cliques(p) == expected


@pytest.mark.parametrize("shape", [(1, 3), (5, 1), (1, 1)])
def test_too_few_blocks_or_methods_give_no_statistic(shape):
    scores = np.arange(np.prod(shape), dtype=float).reshape(shape)
    test = significance.friedman(significance.block_ranks(scores, higher_is_better=True))
    assert math.isnan(test.chi2)


def test_all_equal_scores_show_no_difference():
    test = significance.friedman(significance.block_ranks(np.ones((6, 4)), higher_is_better=True))
    assert test.chi2 == 0.0
    assert test.p == 1.0
    assert math.isnan(test.chi2_ties)


def ranking(n, k, seed=0):
    scores = np.exp(np.arange(k) + 0.3 * np.random.default_rng(seed).standard_normal((n, k)))
    table = pd.DataFrame(scores, columns=[f"m{j}" for j in range(k)])
    return Ranking(BY_NAME["rmse"], DATASETS, ("boston",), table)


def test_a_withheld_test_has_no_critical_difference():
    few = ranking(4, 3)
    assert "Nemenyi" not in ranks_section.friedman_line(few)
    assert "critical difference 0." in ranks_section.friedman_line(ranking(30, 3))
