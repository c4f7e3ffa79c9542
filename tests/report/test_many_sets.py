"""What many data sets decide: orders of pairs, pairs decided, groups of data sets, data sets ranked by CRPS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ep_bench.report import significance
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import learning_curves, many_sets

NAMES = tuple(f"set{i}" for i in range(13))
METHODS = ("good", "fair", "poor")
GROUP = {"name": "group", "methods": list(METHODS), "pairs": [["good", "poor"], ["fair", "good"]]}


def scored(row: dict[str, Any]) -> dict[str, Any] | None:
    """Give methods known scores: ``good`` is best but on sets 0 and 1; ``poor`` lacks sets 2 and 3."""
    place, level = NAMES.index(row["dataset"]), METHODS.index(row["method"])
    if row["method"] == "poor" and place in (2, 3):
        return None
    value = level + 0.01 * place * level + 0.001 * row["split"]
    if place < 2 and row["method"] == "fair":
        value = -0.5 - 0.1 * place
    return row | {"ll": -value, "rmse": float(np.exp(value)), "crps": float(np.exp(value)), "target_std": 10.0}


@pytest.fixture
def report(report_of: Any) -> ReportContext:
    sets = {name: {"name": name, "n": 500, "d": 4 + i, "checksum": f"{i:064x}"} for i, name in enumerate(NAMES)}
    sets["set12"]["target_values"] = 5
    return report_of(METHODS, NAMES, 3, change=scored, lock={"ranks": [GROUP], "datasets": sets})


def test_orders_are_signed_rank_tests_on_common_data_sets(report: ReportContext) -> None:
    table = next(one.table for one in report.scores if one.score.name == "ll")
    first, second = many_sets.orders(many_sets.set_means(table), [("good", "poor"), ("fair", "good")])
    assert (len(first.differences), first.wins, first.verdict) == (10, 10, "holds")
    assert (len(second.differences), second.wins, second.verdict) == (12, 2, "reversed")
    p = [stats.wilcoxon(one.differences).pvalue for one in (first, second)]
    assert first.p == pytest.approx(min(2 * min(p), 1.0))
    assert second.p == pytest.approx(max(p[1], first.p))
    assert "set12" not in second.differences.index  # the log-likelihood has no upper bound there


def test_a_failed_fit_is_the_largest_loss(report: ReportContext) -> None:
    table = next(one.table for one in report.scores if one.score.name == "ll")
    rows, means = report.merged.rows.copy(), many_sets.set_means(table)
    rows.loc[(rows["method"] == "good") & rows["dataset"].isin(["set5", "set6"]) & (rows["split"] == 1), "status"] = (
        "failed"
    )
    merged = replace(report.merged, rows=rows)
    (order,) = many_sets.orders(many_sets.with_losses(means, merged), [("good", "poor")])
    assert (order.differences[["set5", "set6"]] == -np.inf).all()
    assert order.wins == 8
    finite = order.differences.replace(-np.inf, -1e3).to_numpy()
    assert order.p == pytest.approx(float(significance.signed_rank_p(finite[None])[0]))
    both = means.copy()
    both.loc["set7", ["good", "poor"]] = -np.inf
    assert "set7" not in many_sets.orders(both, [("good", "poor")])[0].differences.index


def test_numbers_of_decided_pairs_are_those_of_the_tests(report: ReportContext) -> None:
    ranking = next(one.headline for one in report.scores if one.score.name == "ll")
    assert ranking is not None
    assert ranking.wilcoxon is not None
    assert ranking.nemenyi is not None
    expected = [int((p.to_numpy() < 0.05).sum()) // 2 for p in (ranking.nemenyi, ranking.wilcoxon)]
    assert list(many_sets.decided(ranking, ranking.n)) == expected
    assert sum(many_sets.decided(ranking, 5)) <= sum(expected)


def test_data_sets_without_a_bound_are_ranked_by_crps(report: ReportContext) -> None:
    scores = {one.score.name: one for one in report.scores}
    ranking = scores["ll"].headline
    assert ranking is not None
    whole = many_sets.with_crps(scores["ll"].table, scores["crps"].table, ranking)
    assert whole is not None
    assert set(whole.datasets) - set(ranking.datasets) == {"set12"}
    assert whole.ranks.iloc[-1].to_dict() == {name: 1.0 + METHODS.index(name) for name in ranking.scores.columns}


def test_facts_divide_the_data_sets(report: ReportContext) -> None:
    for fact in many_sets.facts(report):
        names = [name for _, part in fact.groups() for name in part]
        assert sorted(names) == sorted(NAMES)


def test_facts_count_wins_and_test_trends(report: ReportContext) -> None:
    table = next(one.table for one in report.scores if one.score.name == "ll")
    found = many_sets.orders(many_sets.set_means(table), [("good", "poor"), ("fair", "good")])
    facts = many_sets.facts(report)
    assert [fact.name for fact in facts] == ["N", "inputs", "noise"]
    trends = many_sets.trend_table({"ll": found}, facts).rows
    assert [row[2] for row in trends] == ["", ""]  # all data sets have the same number of points
    expected = [
        stats.spearmanr(one.differences, [NAMES.index(str(name)) for name in one.differences.index]) for one in found
    ]
    assert expected[0].statistic == pytest.approx(1.0)
    assert [row[3]["value"] for row in trends] == pytest.approx([one.statistic for one in expected])
    differences = found[1].differences
    below_8 = differences[[4 + NAMES.index(str(name)) < 8 for name in differences.index]]
    row = many_sets.fact_table(found, facts).rows[1]
    assert row[4]["text"] == f"{(below_8 > 0).sum()} of {len(below_8)}"
    assert row[4]["value"] == pytest.approx(below_8.median())


def test_the_section_has_its_tables_and_the_figure(report: ReportContext) -> None:
    (section,) = many_sets.sections(report)
    assert [len(table.rows) for table in section.tables] == [10, 2, 2, 6, 3]
    assert section.tables[1].rows[0][0] == "good above poor"
    assert section.pictures[0].name == "differences-by-size"


def test_few_or_equal_data_sets_have_no_section(report_of: Any) -> None:
    equal = {name: {"name": "one", "n": 500, "d": 4, "checksum": "a"} for name in NAMES}
    assert many_sets.sections(report_of(name="few")) == []
    assert many_sets.sections(report_of(METHODS, NAMES, 2, lock={"datasets": equal}, name="same")) == []


def test_ties_count_for_neither_method() -> None:
    means = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    (one,) = many_sets.orders(means, [("a", "b")])
    assert (one.wins, one.verdict, one.p) == (0, "open", 1.0)


def test_learning_curves_are_by_number_of_training_points(report_of: Any) -> None:
    labels = ("a 50", "a 100", "b 50", "b 100", "c 50")
    sets = {
        label: {"name": label[0], "n": 500, "d": 4, "checksum": label * 8, "train_points": int(label[2:])}
        for label in labels
    }
    report = report_of(("pbp", "gp"), labels, 3, lock={"datasets": sets})
    assert learning_curves.curves_of(report) == {
        "a": {50: "a 50", 100: "a 100"},
        "b": {50: "b 50", 100: "b 100"},
    }
    (section,) = learning_curves.sections(report)
    assert [picture.name for picture in section.pictures] == ["learning-curves-rmse", "learning-curves-ll"]
    table = next(one.table for one in report.scores if one.score.name == "rmse")
    best = table.methods[int(np.argmin(table.mean[0]))]
    assert section.tables[0].rows[0][1]["text"] == best
