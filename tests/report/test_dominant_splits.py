"""Means that one split dominates."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.report import merge, summary
from ep_bench.report.dominant_splits import FEWEST, dominant_split, dominated_means
from ep_bench.report.scores import MAIN


def test_an_outlier_dominates_and_the_mean_without_it_is_returned():
    scores = np.random.default_rng(0).normal(size=20)
    scores[7] = -40.0
    found = dominant_split(scores)
    others = np.delete(scores, 7)
    assert (found.place, found.score) == (7, -40.0)
    assert found.mean == pytest.approx(others.mean())
    assert found.stderr == pytest.approx(others.std() / np.sqrt(19))


def test_no_split_of_equal_scores_or_of_few_splits_dominates():
    assert dominant_split(np.ones(20)) is None
    assert dominant_split(np.append(np.zeros(FEWEST - 2), 100.0)) is None


def test_the_table_names_the_split(tmp_path, make_study):
    def change(row):
        return row | ({"rmse": 1e3} if (row["method"], row["split"]) == ("gp", 3) else {})

    merged = merge.merge([make_study(tmp_path / "s", datasets=["boston"], splits=12, change=change)])
    table = dominated_means(merged, summary.score_table(merged, MAIN[0]))
    assert [(*row[:2], row[3]["text"], row[4]["value"]) for row in table.rows] == [("boston", "gp", "3", 1e3)]
