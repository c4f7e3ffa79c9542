"""Comparison of two methods: closed forms, other programs' values, simulated power and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ep_bench.report.pairwise import ALL, compare, compare_all
from ep_bench.report.significance import holm, t_test_p

# On these differences baycomp 1.0 (CorrelatedTTest, ten folds, rope 0.05) has these probabilities.
GAPS = np.array([0.3, -0.1, 0.4, 0.25, 0.6, 0.05, -0.2, 0.5, 0.33, 0.1])
BAYCOMP = (0.9111727107268763, 0.065622604842697, 0.02320468443042667)


def results(scores: dict[str, dict[str, np.ndarray]], *, column: str = "ll", n_train: int = 90) -> pd.DataFrame:
    """Return finished cells from scores (J,) by data set and method."""
    rows = [
        {
            "method": method,
            "dataset": dataset,
            "split": j,
            "status": "ok",
            column: value,
            "n_train": n_train,
            "n_test": 10,
        }
        for dataset, columns in scores.items()
        for method, values in columns.items()
        for j, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def pair(gaps: np.ndarray, **options: object) -> pd.Series:
    """Return the row of one data set whose differences are ``gaps``."""
    found = results({"d": {"A": gaps + 1.0, "B": np.ones(len(gaps))}})
    return compare(found, "A", "B", **options).iloc[0]  # type: ignore[arg-type]


def test_probabilities_are_those_of_baycomp() -> None:
    row = pair(GAPS, rope=0.05)
    assert (row.p_better, row.p_equivalent, row.p_worse) == pytest.approx(BAYCOMP, abs=1e-10)


def test_test_and_interval_of_independent_draws_are_those_of_scipy() -> None:
    row = pair(GAPS, independent=["d"])
    known = stats.ttest_1samp(GAPS, 0.0)
    assert row.p == pytest.approx(known.pvalue, rel=1e-10)
    assert (row.low, row.high) == pytest.approx(tuple(known.confidence_interval()), rel=1e-10)
    assert row.p_better == pytest.approx(1.0 - known.pvalue / 2.0, rel=1e-10)


def test_overlapping_splits_have_the_corrected_test() -> None:
    row = pair(GAPS)
    assert row.p == pytest.approx(t_test_p(GAPS, 10 / 90), rel=1e-10)
    assert row.p > pair(GAPS, independent=["d"]).p


def test_exchanged_methods_and_lower_scores_mirror_the_row() -> None:
    scores = {"d": {"A": 1.0 + GAPS, "B": np.ones(10)}}
    forward, back = (compare(results(scores), *names, rope=0.05).iloc[0] for names in (("A", "B"), ("B", "A")))
    lower = compare(results(scores, column="rmse"), "A", "B", score="rmse", rope=0.05).iloc[0]
    assert (back.difference, back.low, back.high) == pytest.approx((-forward.difference, -forward.high, -forward.low))
    for mirrored in (back, lower):
        assert (mirrored.wins, mirrored.losses) == (forward.losses, forward.wins) == (2, 8)
        assert (mirrored.p_better, mirrored.p_worse) == pytest.approx((forward.p_worse, forward.p_better))


def test_the_detectable_difference_is_found_in_four_of_five_samples() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(20000, 20))
    p = stats.ttest_1samp(
        samples + pair(samples[0], independent=["d"]).detectable / samples[0].std(ddof=1), 0.0, axis=1
    )
    assert np.mean(p.pvalue < 0.05) == pytest.approx(0.8, abs=0.01)


def test_the_last_row_compares_the_means_of_data_sets() -> None:
    rng = np.random.default_rng(1)
    scores = {f"d{i}": {"A": rng.normal(size=5) + i, "B": rng.normal(size=5)} for i in range(4)}
    last = compare(results(scores), "A", "B").iloc[-1]
    gaps = [columns["A"].mean() - columns["B"].mean() for columns in scores.values()]
    assert (last.dataset, last.blocks) == (ALL, 4)
    assert last.p == pytest.approx(stats.ttest_1samp(gaps, 0.0).pvalue)


def test_errors_in_different_units_are_compared_by_their_logarithms() -> None:
    scores = {"d": {"A": np.full(3, 2.0), "B": np.full(3, 1.0)}, "e": {"A": np.full(3, 400.0), "B": np.full(3, 200.0)}}
    last = compare(results(scores, column="rmse"), "A", "B", score="rmse").iloc[-1]
    assert last.difference == pytest.approx(np.log(2.0))
    assert last.mean_first == pytest.approx(np.sqrt(800.0))


def test_only_common_splits_of_finished_cells_count() -> None:
    found = results({"d": {"A": GAPS, "B": np.zeros(10)}, "e": {"A": GAPS}})
    found.loc[0, ["status", "ll"]] = "failed", 99.0
    table = compare(found, "A", "B")
    assert table[["dataset", "blocks"]].to_numpy().tolist() == [["d", 9]]
    assert table[["blocks", "wins", "losses"]].dtypes.tolist() == [np.dtype(int)] * 3
    assert table.difference[0] == pytest.approx(GAPS[1:].mean())


def test_equal_scores_and_constant_differences_and_one_split() -> None:
    equal, constant, single = pair(np.zeros(5), rope=0.1), pair(np.full(5, 0.25)), pair(np.array([0.25]))
    assert (equal.p, equal.p_equivalent, equal.wins, equal.losses) == (1.0, 1.0, 0, 0)
    assert (constant.p, constant.p_better, constant.detectable) == (0.0, 1.0, 0.0)
    assert np.isnan([single.low, single.p, single.p_better, single.detectable]).all()
    assert (single.difference, single.wins) == (0.25, 1)


def test_holm_corrects_over_data_sets_or_over_pairs() -> None:
    rng = np.random.default_rng(2)
    found = results({f"d{i}": {name: rng.normal(size=10) for name in "ABC"} for i in range(3)})
    two = compare(found, "A", "B").iloc[:-1]
    np.testing.assert_allclose(two.p_holm, holm(two.p.to_numpy()))
    every = compare_all(found, ["A", "B", "C"])
    assert len(every) == 3 * 4
    for _, part in every.groupby("dataset"):
        np.testing.assert_allclose(part.p_holm, holm(part.p.to_numpy()))


def test_data_sets_may_be_left_out_of_the_last_row() -> None:
    scores = {name: {"A": GAPS + shift, "B": np.zeros(10)} for name, shift in (("d", 0.0), ("e", 1.0), ("wine", 50.0))}
    table = compare(results(scores), "A", "B", left_out=["wine"])
    assert list(table.dataset) == ["d", "e", "wine", ALL]
    assert (table.blocks.iloc[-1], table.difference.iloc[-1]) == (2, pytest.approx(GAPS.mean() + 0.5))
