"""The leaderboard: the complete subset, ranks with intervals, losses, and the table."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from ep_bench.plotting.method_style import method_styles
from ep_bench.report import first_screen, inline_charts, merge, significance
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import BY_NAME
from ep_bench.report.sections import leaderboard
from ep_bench.report.significance import PairedTest, block_ranks
from ep_bench.results import store


def largest_by_search(whole):
    """Return the size of the largest complete subset by trying all sets of data sets."""
    sizes = [0]
    for count in range(1, len(whole) + 1):
        for chosen in itertools.combinations(range(len(whole)), count):
            methods = int(whole[list(chosen)].all(axis=0).sum())
            sizes.append(count * methods if methods > 1 else 0)
    return max(sizes)


@pytest.mark.parametrize("seed", range(20))
def test_no_complete_subset_is_larger(seed):
    rng = np.random.default_rng(seed)
    whole = rng.random((rng.integers(1, 7), rng.integers(2, 9))) < 0.7
    found = significance.largest_complete_subset(whole)
    assert whole[np.ix_(found.datasets, found.methods)].all()
    assert len(found.datasets) * len(found.methods) == largest_by_search(whole)


@pytest.fixture
def report(report_of):
    """Three methods on six data sets; the third lacks one split of the last data set."""

    def change(row):
        return None if (row["method"], row["dataset"], row["split"]) == ("gp", "power", 3) else row

    sets = ["boston", "concrete", "energy", "wine", "yacht", "power"]
    return report_of(datasets=sets, splits=6, change=change)


def test_ranks_and_losses_are_those_of_the_means(report):
    board = next(one for one in report.leaderboards if one.score.name == "rmse")
    assert board.datasets == ("boston", "concrete", "energy", "wine", "yacht")
    assert board.splits == (6,) * 5
    ok = report.merged.ok()
    means = ok.pivot_table(index="dataset", columns="method", values="rmse").loc[list(board.datasets)]
    ranks = means.rank(axis=1).mean()
    losses = np.exp(np.log(means.div(means.min(axis=1), axis=0)).mean()) - 1.0
    for row in board.rows:
        assert row.rank == pytest.approx(ranks[row.method])
        assert row.loss == pytest.approx(losses[row.method])
        assert row.low <= row.rank <= row.high
        assert (row.finished, row.planned) == (35 if row.method == "gp" else 36, 36)
    assert [row.rank for row in board.rows] == sorted(row.rank for row in board.rows)


def test_intervals_follow_the_noise_of_the_splits(report_of):
    """A method that is better on every split has rank 1 in every resample; the order of the other two is uncertain."""

    def change(row):
        return {**row, "rmse": {"pbp": 0.5, "ridge": 1.4, "gp": 1.0 + 0.1 * row["split"]}[row["method"]]}

    report = report_of(splits=10, change=change)
    first, second, third = next(one for one in report.leaderboards if one.score.name == "rmse").rows
    assert (first.method, first.low, first.high) == ("pbp", 1.0, 1.0)
    assert second.method == "ridge"
    assert second.low < second.rank + 0.5 < third.high + 0.5
    assert second.low < second.high
    assert third.low < third.high


def test_a_method_that_is_not_complete_is_last_and_not_ranked(report_of):
    def change(row):
        return None if row["method"] == "pbp" and row["split"] else {**row, "rmse": row["rmse"] / 100.0}

    report = report_of(change=change)
    last = report.leaderboards[0].rows[-1]
    assert last.method == "pbp"
    assert math.isnan(last.rank)
    (shown,) = leaderboard.sections(report)
    texts = [entry["text"] for entry in shown.tables[0].rows[-1]]
    assert texts[:4] == ["pbp", "–", "not ranked", "–"]
    excluded = first_screen.views(report)[0].excluded
    assert "pbp is not ranked: it lacks scores on boston (1 of 5 splits), yacht (1 of 5 splits) and wine" in excluded[1]
    assert first_screen.subset_text(report.leaderboards[0]) == (
        "2 of 3 methods on 3 data sets (boston, yacht, wine), 5 splits each"
    )


def test_data_sets_on_which_ranked_methods_lack_splits_are_named_in_one_sentence(report_of):
    def change(row):
        return None if row["method"] != "ridge" and row["dataset"] in {"wine", "energy"} else row

    excluded = first_screen.views(report_of(datasets=["boston", "yacht", "wine", "energy"], change=change))[0].excluded
    assert excluded[1] == (
        "Some ranked methods lack splits on data sets that do not count in these ranks: wine, energy."
    )


def test_a_single_data_set_has_means_instead_of_ranks(report_of):
    def change(row):
        return (
            None
            if row["method"] == "gp" and row["split"]
            else {**row, "ll": {"pbp": -2.5, "ridge": -2.0}.get(row["method"])}
        )

    report = report_of(datasets=["boston"], change=change)
    (shown,) = leaderboard.sections(report)
    table = shown.tables[0]
    assert table.head[:3] == ["method", "mean test log-likelihood on boston", "loss (nats)"]
    assert [[entry["text"] for entry in row[:3]] for row in table.rows[:2]] == [
        ["ridge", "−2.000 ± 0.000", "0.000"],
        ["pbp", "−2.500 ± 0.000", "0.500"],
    ]
    assert table.rows[2][1]["text"] == "not ranked"
    assert shown.lines[0].startswith("Best by mean test log-likelihood: ridge (−2.000 ± 0.000). By the paired test")


def test_a_method_that_has_not_converged_is_ranked_by_its_scores_and_named_in_the_headline(report_of):
    def change(row):
        better = row["method"] == "pbp"
        return {**row, "converged": str(not better).lower(), "ll": row["ll"] + 10.0 * better}

    report = report_of(change=change)
    (shown,) = leaderboard.sections(report)
    first, *_ = shown.tables[0].rows
    assert (first[0]["text"], first[0]["strong"], first[-1]["text"]) == ("pbp", True, "0 %")
    assert "hollow" in first[2]["html"]
    assert "pbp (rank 1.0) has the lowest rank" in shown.lines[0]
    assert shown.lines[0].endswith("pbp has not converged on 15 of 15 splits.")


def test_a_method_is_marked_also_for_a_data_set_without_ranks(report_of):
    """The first method has not converged on power alone, where no other method is complete; its place is unchanged."""

    def change(row):
        if row["dataset"] == "power" and row["method"] != "pbp" and row["split"] == 0:
            return None
        first = row["method"] == "pbp"
        return {**row, "converged": str(row["dataset"] != "power" or not first).lower(), "ll": row["ll"] + 10.0 * first}

    report = report_of(datasets=["boston", "yacht", "wine", "power"], change=change)
    board = report.leaderboards[0]
    assert board.datasets == ("boston", "yacht", "wine")
    first = board.rows[0]
    assert (first.method, first.mark, first.converged.unconverged) == ("pbp", "†", 5)
    (shown,) = leaderboard.sections(report)
    name, _, interval, *_ = shown.tables[0].rows[0]
    assert (name["text"], name["strong"]) == ("pbp", True)
    assert "hollow" in interval["html"]


def test_a_best_error_of_zero_has_no_part_in_the_loss(report_of):
    def change(row):
        perfect = (row["method"], row["dataset"]) == ("gp", "wine")
        rmse = 0.0 if perfect else {"pbp": 1.1, "ridge": 1.2, "gp": 1.0}[row["method"]]
        return {**row, "rmse": rmse}

    report = report_of(change=change)
    board = next(one for one in report.leaderboards if one.score.name == "rmse")
    losses = {row.method: row.loss for row in board.rows}
    assert losses == pytest.approx({"pbp": 0.1, "ridge": 0.2, "gp": 0.0})
    single = report_of(datasets=["wine"], change=change, name="one")
    board = next(one for one in single.leaderboards if one.score.name == "rmse")
    assert all(math.isnan(row.loss) for row in board.rows)


def test_overlapping_splits_widen_the_interval(report_of):
    """The means of pbp and gp are 2.2 standard errors apart, and 1.5 with the variance of overlapping splits."""

    def change(row):
        return {**row, "ll": {"pbp": -1.96, "ridge": -3.0, "gp": -2.0 - 0.02 * (row["split"] - 4.5)}[row["method"]]}

    widths = []
    for scheme in ("holdout", "standard"):
        lock = {"splits": {"scheme": scheme, "count": 10}}
        report = report_of(datasets=["boston"], splits=10, change=change, lock=lock, name=scheme)
        rows = report.leaderboards[0].rows
        widths.append([row.high - row.low for row in rows])
    assert widths == [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0157, "15.7 ms"), (0.9996, "1000 ms"), (1.9, "1.90 s"), (600.0, "10.0 min"), (9000.0, "2.50 h")],
)
def test_times_have_units(seconds, words):
    assert leaderboard.duration(seconds) == words


def test_all_names_of_a_long_front_are_inside_the_chart():
    names = [f"method {i}" for i in range(20)]
    points = [inline_charts.Point(name, 10.0 + i, 1.0 / (1 + i), hollow=False) for i, name in enumerate(names)]
    svg = inline_charts.LossAndTime(points, method_styles(names), "mean loss", 1.0).svg()
    top = int(re.search(r'viewBox="0 (-?\d+)', svg)[1])
    heights = [int(y) for y in re.findall(r"class=label x=-?\d+ y=(-?\d+)", svg)]
    assert len(heights) == len(names)
    assert min(heights) - top >= 12


def test_methods_of_equal_rank_tie_and_are_bold(report_of):
    def change(row):
        state = {"pbp": {"converged": "false"}, "gp": {"r_hat": 1.0 + 0.03 * (row["split"] > 2)}}
        level = {"pbp": 3.0, "ridge": 1.0 + (row["dataset"] == "boston"), "gp": 1.0 + (row["dataset"] == "yacht")}
        return {**row, "ll": -level[row["method"]], **state.get(row["method"], {})}

    (shown,) = leaderboard.sections(report_of(datasets=("boston", "yacht"), change=change))
    rows = {row[0]["value"]: row for row in shown.tables[0].rows}
    assert {name: row[0]["strong"] for name, row in rows.items()} == {"ridge": True, "gp": True, "pbp": False}
    assert {name: row[-1]["text"] for name, row in rows.items()} == {
        "ridge": "no criterion",
        "gp": "60 %",
        "pbp": "0 %",
    }
    assert "6 of 10 converged, 4 nearly, 0 not" in rows["gp"][-1]["html"]
    assert "ridge and gp tie by mean test log-likelihood (rank 1.5)" in shown.lines[0]


def test_a_tie_for_the_second_place_is_named_and_rounding_errors_are_ties(report_of):
    levels = {"pbp": 0.25, "ridge": 0.3, "gp": 0.1 + 0.2}
    assert levels["gp"] != levels["ridge"]
    report = report_of(datasets=("boston", "yacht", "wine"), change=lambda row: {**row, "ll": -levels[row["method"]]})
    board = report.leaderboards[0]
    assert report.table_of(board.score).ranks.tolist() == [[1.0, 2.5, 2.5]] * 3
    verdict = first_screen.verdict(report, board)
    assert "pbp (rank 1.0) has the lowest rank" in verdict
    assert "followed by ridge (rank 2.5) and gp (2.5)" in verdict


def test_tests_separate_the_first_method_from_all_others(report_of):
    """On 10 data sets with the same order of two methods, Wilcoxon's test rejects."""

    def change(row):
        return {**row, "ll": row["ll"] - 5.0 * (row["method"] == "gp")}

    sets = [f"set {i}" for i in range(10)]
    report = report_of(["pbp", "gp"], sets, change=change)
    board = report.leaderboards[0]
    assert first_screen.separated_from_best(report, board) == (["gp"], "")
    assert "tests separate pbp from the other method" in first_screen.verdict(report, board)
    assert "No single winner" not in first_screen.verdict(report, board)


def test_the_best_within_a_budget_is_ranked_among_the_methods_below_it(report_of):
    """The best of all is too slow. Of the other two, one is better than the other on two data sets of three."""
    levels = {"pbp": (1, 1, 1), "ridge": (2, 3, 2), "gp": (3, 2, 3)}

    def change(row):
        level = levels[row["method"]][("boston", "yacht", "wine").index(row["dataset"])]
        seconds = {"pbp": 30.0, "ridge": 3.0, "gp": 0.1}[row["method"]]
        return {**row, "ll": -float(level), "fit_seconds": seconds, "predict_seconds": 0.0}

    board = report_of(change=change).leaderboards[0]
    assert [board.best_within(limit) for limit in (0.01, 1.0, 5.0, 100.0)] == [[], ["gp"], ["ridge"], ["pbp"]]


def covered(draw, true, repetitions):
    """Return the fraction of intervals that contain the true ranks; ``draw`` returns scores (J, M) by data set."""
    found = []
    for _ in range(repetitions):
        scores = draw()
        means = np.array([block.mean(axis=0) for block in scores])
        tests = [PairedTest(independent=False, ratio=1 / 9)] * len(scores)
        ranks = leaderboard._ranks(scores, means, BY_NAME["rmse"], tests)
        found.append((ranks["low"] <= true) & (true <= ranks["high"]))
    return np.mean(found)


@pytest.mark.exhaustive
def test_intervals_contain_expected_ranks_of_a_population_but_often_not_those_of_close_methods():
    rng = np.random.default_rng(0)
    levels = np.linspace(0.0, 2.0, 10)
    population = block_ranks(levels + rng.normal(size=(100_000, 10)), higher_is_better=False).mean(axis=0)

    def from_population():
        return [10.0 + levels + rng.normal(size=10) + 0.1 * rng.normal(size=(20, 10)) for _ in range(5)]

    def close():  # overlapping splits have a correlation of 0.1
        common = [np.sqrt(0.1) * rng.normal(size=6) for _ in range(4)]
        return [10.0 + 0.15 * np.arange(6) + one + np.sqrt(0.9) * rng.normal(size=(20, 6)) for one in common]

    assert covered(from_population, population, 60) > 0.88
    assert 0.5 < covered(close, np.arange(1.0, 7.0), 60) < 0.85


def test_data_sets_without_an_upper_bound_do_not_count_in_ranks_of_log_likelihoods(tmp_path, make_study):
    """The worst method of two data sets is far ahead on the third, whose target has few values."""

    def change(row):
        last = row["method"] == "ridge"
        return {**row, "ll": row["ll"] + (50.0 if row["dataset"] == "wine" else -50.0) * last}

    folder = make_study(tmp_path / "s", change=change)
    lock = store.read_lock(folder)
    lock["datasets"]["wine"]["target_values"] = 6
    store.write_lock(folder, lock)
    report = ReportContext(merge.merge([folder]))
    boards = {board.score.name: board for board in report.leaderboards}
    assert boards["ll"].datasets == ("boston", "yacht")
    assert boards["ll"].rows[-1].method == "ridge"
    assert boards["ll"].rows[-1].rank == 3.0
    assert boards["rmse"].datasets == ("boston", "yacht", "wine")
    rankings = {one.score.name: one.rankings[0].datasets for one in report.scores}
    assert (rankings["ll"], rankings["rmse"]) == (boards["ll"].datasets, boards["rmse"].datasets)
    excluded = first_screen.views(report)[0].excluded
    assert (
        "wine does not count in these ranks: with 6 target values, the log-likelihood has no upper bound."
        in excluded[1]
    )
    table = report.table_of(boards["ll"].score)
    assert table.ranked_rows([2]) == [2]  # nothing else is there
    lock["datasets"]["boston"]["unranked"] = "a leak"
    store.write_lock(folder, lock)
    report = ReportContext(merge.merge([folder]))
    assert {board.score.name: board.datasets for board in report.leaderboards}["rmse"] == ("yacht", "wine")
    assert "boston does not count in these ranks: a leak." in first_screen.views(report)[1].excluded
