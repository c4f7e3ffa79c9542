"""Means, standard errors, marks and rankings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ep_bench.report import merge, summary
from ep_bench.report import score_table_formats as tables
from ep_bench.report.scores import BY_NAME

RMSE, LL, COVERAGE = (BY_NAME[name] for name in ("rmse", "ll", "coverage95"))


def study_of(values, folder, make_study, name="rmse", datasets=("boston",)):
    """A study with given scores: method -> values by split, equal on all data sets."""

    def change(row):
        value = values[row["method"]][row["split"]]
        return None if value is None else {**row, name: float(value)}

    count = max(len(scores) for scores in values.values())
    return merge.merge([make_study(folder / "s", list(values), list(datasets), count, change=change)])


def test_standard_error_has_ddof_0(tmp_path, make_study):
    merged = study_of({"a": [1.0, 2.0, 4.0, 5.0]}, tmp_path, make_study)
    table = summary.score_table(merged, RMSE)
    assert table.mean[0, 0] == pytest.approx(3.0)
    assert table.stderr[0, 0] == pytest.approx(math.sqrt(2.5) / 2.0)


def test_the_best_and_its_equals_are_marked(tmp_path, make_study):
    rng = np.random.default_rng(1)
    base = rng.normal(3.0, 0.5, 20)
    noise = rng.normal(0.0, 0.2, 20)
    equal = base + noise - noise.mean() + 0.02
    values = {"worse": base + 1.0 + 0.01 * rng.normal(size=20), "best": base, "equal": equal}
    table = summary.score_table(study_of(values, tmp_path, make_study), RMSE)
    assert table.best[0] == 1
    assert table.marked[0].tolist() == [False, True, True]
    assert table.p[0, 0] < 1e-6
    assert table.p[0, 2] > 0.05


def test_a_complete_entry_without_competitor_is_named(tmp_path, make_study):
    values = {"partial": [1.0, 1.1, None], "full": [1.2, 1.3, 1.25]}
    table = summary.score_table(study_of(values, tmp_path, make_study), RMSE)
    assert table.is_best.tolist() == [[False, True]]
    assert "Only one entry is complete on boston: its bold mean is compared with no other." in tables.caption(table)


def test_a_higher_log_likelihood_is_better(tmp_path, make_study):
    values = {"low": [-3.0, -3.1, -2.9, -3.0], "high": [-1.0, -1.1, -0.9, -1.05]}
    table = summary.score_table(study_of(values, tmp_path, make_study, "ll"), LL)
    assert table.best[0] == 1
    assert table.marked[0].tolist() == [False, True]


def test_a_method_that_failed_on_splits_is_never_the_best(tmp_path, make_study):
    values = {"partial": [1.0, 1.1, 1.05, None], "full": [1.2, 1.3, 1.25, 9.0]}
    table = summary.score_table(study_of(values, tmp_path, make_study), RMSE)
    assert table.mean[0, 0] < table.mean[0, 1]
    assert table.best[0] == 1
    assert table.complete.tolist() == [[False, True]]
    assert table.marked[0].tolist() == [False, True]
    assert np.isnan(table.p).all()  # incomplete entries are not tested
    assert table.n.tolist() == [[3, 4]]
    assert table.planned.tolist() == [[4, 4]]


def test_with_one_split_only_the_best_is_marked(tmp_path, make_study):
    table = summary.score_table(study_of({"a": [1.0], "b": [1.0001]}, tmp_path, make_study), RMSE)
    assert table.marked[0].tolist() == [True, False]
    assert np.isnan(table.p).all()


def test_both_numbers_of_blocks(tmp_path, make_study):
    merged = merge.merge([make_study(tmp_path / "s", splits=4)])
    by_set, by_split = summary.ranked_score(merged, RMSE).rankings
    assert (by_set.n, by_set.blocks) == (3, "data sets")
    assert (by_split.n, by_split.blocks) == (12, "data sets × splits")
    assert by_set.average.sum() == pytest.approx(6.0)
    assert by_set.cd > by_split.cd


def test_only_data_sets_on_which_all_ranked_methods_are_complete_are_blocks(tmp_path, make_study):
    """Three methods on two data sets are as many entries as two methods on three, and fewer than in all."""

    def change(row):
        return None if (row["dataset"], row["split"]) == ("boston", 1) and row["method"] != "pbp" else row

    merged = merge.merge([make_study(tmp_path / "s", splits=4, change=change)])
    by_set, by_split = summary.ranked_score(merged, RMSE).rankings
    assert by_set.datasets == ("yacht", "wine")
    assert (by_set.n, by_set.incomplete, by_split.n, by_split.incomplete) == (2, 1, 8, 4)
    means = summary.pivot(merged, RMSE).groupby(level="dataset", sort=False).mean().loc[["yacht", "wine"]]
    assert by_set.ranks.to_numpy().tolist() == means.rank(axis=1).to_numpy().tolist()


def test_one_data_set_has_no_test_over_data_sets(tmp_path, make_study):
    by_set, by_split = summary.ranked_score(
        merge.merge([make_study(tmp_path / "s", datasets=["boston"])]), RMSE
    ).rankings
    assert by_set.nemenyi is None
    assert math.isnan(by_set.test.chi2)
    assert by_split.nemenyi is not None


def test_equal_scores_have_average_ranks(tmp_path, make_study):
    values = {"a": [2.0, 3.0], "b": [2.0, 3.0], "c": [2.0, 3.0]}
    by_set, by_split = summary.ranked_score(
        study_of(values, tmp_path, make_study, datasets=("boston", "yacht")), RMSE
    ).rankings
    assert by_set.average.tolist() == [2.0, 2.0, 2.0]
    assert by_split.test.chi2 == 0.0
    assert (by_set.wilcoxon.to_numpy() == 1.0).all()
