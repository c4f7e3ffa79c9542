"""Verdicts on claims, from synthetic studies with a known answer."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from ep_bench.published.claims import AverageRank, DatasetsWon, FractionConverged, PointsWon, TimeRatio
from ep_bench.report.claims import claim_verdicts
from ep_bench.report.merge import merge

PLACE = {"source": "bui2015", "place": "p", "claim": "c"}
NINE = ["boston", "concrete", "yacht"]


@pytest.fixture
def results(tmp_path, make_study):
    """Write a study of methods a and b with given log-likelihoods; return the only verdict on a claim."""

    def verdict(claim, change, name="s", splits=10, **lock):
        folder = make_study(tmp_path / name, ["a", "b"], NINE, splits, change=change, lock=lock)
        rows = claim_verdicts(merge([folder]), [claim])
        return rows[0] if rows else None

    return verdict


def won(threshold, first="a", second="b", datasets=NINE, behind=0.0):
    return DatasetsWon(
        **PLACE, statistic="data sets won", first=first, second=second, metric="ll", datasets=datasets,
        threshold=threshold, behind=behind,
    )  # fmt: skip


def ratio(threshold, limit="at least"):
    return TimeRatio(
        **PLACE, statistic="ratio of times", first="a", second="b", limit=limit, datasets=NINE, threshold=threshold
    )


def timed(of_a):
    """Return a change of rows: fits of b take a second, those of a so many, a number or a function of the split."""

    def change(row):
        seconds = of_a if row["method"] == "a" else 1.0
        return {**row, "fit_seconds": seconds(row["split"]) if callable(seconds) else seconds, "predict_seconds": 0.0}

    return change


def with_gaps(**gaps):
    """Return a change of rows: on each data set, a is better than b by a gap, up to noise of 0.1."""
    noise = np.random.default_rng(0).normal(0.0, 0.1, 100)

    def change(row):
        gap = gaps[row["dataset"]] if row["method"] == "a" else 0.0
        return {**row, "ll": gap + noise[row["split"]] * (row["method"] == "a")}

    return change


ONE_EACH = with_gaps(boston=1.0, concrete=-1.0, yacht=0.01)  # won, lost, within the error


@pytest.mark.parametrize(("behind", "ahead", "lost"), [(0.5, 2, 1), (1.5, 3, 0)])
def test_a_method_that_is_little_behind_counts(results, behind, ahead, lost):
    row = results(won(3, behind=behind), ONE_EACH)
    counts = f"{ahead} of 3 by means; by the paired test {ahead} won, {lost} lost"
    assert row["found"] == f"{counts}; claimed: at least 3, less than {behind:g} behind"
    assert row["verdict"] == ("does not hold" if lost else "holds")


@pytest.mark.parametrize(("threshold", "verdict"), [(1, "holds"), (2, "not decided"), (3, "does not hold")])
def test_data_sets_within_the_error_leave_a_claim_open(results, threshold, verdict):
    row = results(won(threshold), ONE_EACH)
    assert row["verdict"] == verdict
    assert row["found"].endswith(f"by the paired test 1 won, 1 lost; claimed: at least {threshold}")
    assert ("within their error" in row["reason"]) == (verdict == "not decided")


def test_a_single_split_has_no_test(results):
    row = results(won(1, datasets=["boston"]), ONE_EACH, splits=1)
    assert (row["verdict"], row["reason"]) == ("not decided", "a single split has no paired test (1 data set)")


def test_the_opposite_order_is_planted_and_found(results):
    assert results(won(1, datasets=["boston"]), ONE_EACH)["verdict"] == "holds"
    assert results(won(1, "b", "a", datasets=["boston"]), ONE_EACH, "t")["verdict"] == "does not hold"


@pytest.mark.parametrize("change", [{"target_transform": "log"}, {"irrelevant_inputs": 5}, {"csv": "boston.csv"}])
def test_other_data_under_the_name_of_a_card_decide_no_claim(results, change):
    datasets = {name: {"name": name, **change} for name in NINE}
    assert results(won(1, datasets=["boston"]), ONE_EACH, datasets=datasets) is None


def test_missing_splits_leave_a_claim_open(results):
    def change(row):
        return None if row["method"] == "a" and row["split"] == 3 else ONE_EACH(row)

    row = results(won(1), change)
    assert (row["verdict"], row["reason"]) == ("not decided", "splits are missing on 3 of 3 data sets")


def test_data_sets_under_another_scheme_or_without_cells_are_not_used(results):
    elsewhere = [{"name": "boston", "scheme": "kfold"}]
    assert results(won(1, datasets=elsewhere), ONE_EACH) is None
    row = results(won(2, datasets=["boston", "energy"]), ONE_EACH, "t")
    assert row["verdict"] == "not decided"
    assert results(won(1, "c"), ONE_EACH, "u") is None


def test_a_method_is_found_by_its_published_column(results):
    methods = {name: {"use": "x", "published": [f"col-{name}"], "options": {}} for name in "ab"}
    assert results(won(1, "col-a", "col-b"), ONE_EACH, methods=methods)["verdict"] == "holds"


LEVELS = {"a": "33333", "b": "22211", "c": "11122"}  # average ranks 1, 2.4 and 2.6


@pytest.fixture
def ranked(tmp_path, make_study):
    """Return the verdict on ranks of methods with the log-likelihoods ``LEVELS`` on five data sets."""
    number = count()

    def verdict(first, second, change=lambda row: row):
        datasets = ["boston", "concrete", "energy", "wine", "yacht"]
        folder = make_study(
            tmp_path / f"ranks-{next(number)}", [*LEVELS], datasets, 3,
            change=lambda row: change({**row, "ll": float(LEVELS[row["method"]][datasets.index(row["dataset"])])}),
        )  # fmt: skip
        claim = AverageRank(
            **PLACE, statistic="average rank", first=first, second=second, metric="ll", datasets=datasets
        )
        (row,) = claim_verdicts(merge([folder]), [claim])
        return row

    return verdict


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("a", "c", "holds"), ("c", "a", "does not hold"), ("b", "c", "not decided"), ("a", ["b", "c"], "not decided"),
        (["a", "b"], "c", "not decided"), ("b | a", "c", "holds"),
    ],
)  # fmt: skip
def test_average_ranks_differ_by_more_than_the_critical_difference(ranked, first, second, verdict):
    """The critical difference is 0.88 for two methods on five data sets, and 1.48 for three."""
    assert ranked(first, second)["verdict"] == verdict


def test_the_closest_pair_decides_on_average_ranks(ranked):
    row = ranked("a", ["b", "c"])
    ranks = "average ranks among 3 methods: a 1.00, b 2.40 (critical difference 1.48); claimed: a lower"
    assert (row["found"], row["reason"]) == (ranks, "the difference is below the critical difference")


@pytest.mark.parametrize("change", [{"r_hat": 1.2}, {"status": "failed", "reason": "diverged"}])
def test_ranks_with_splits_that_are_missing_or_have_not_converged_decide_nothing(ranked, change):
    def changed(row):
        return row | (change if (row["method"], row["dataset"], row["split"]) == ("b", "yacht", 0) else {})

    assert ranked("b | a", "c")["verdict"] == "holds"
    assert ranked("b | a", "c", changed)["verdict"] == "not decided"


@pytest.mark.parametrize(
    ("threshold", "noise", "verdict"), [(3, 0.0, "holds"), (5, 0.0, "does not hold"), (4, 0.5, "not decided")]
)
def test_ratios_of_times(results, threshold, noise, verdict):
    factors = np.exp(noise * np.random.default_rng(1).standard_normal(10))
    row = results(ratio(threshold), timed(lambda split: 4.0 * factors[split]))
    assert row["verdict"] == verdict
    assert row["found"].startswith("a / b ")
    assert row["found"].endswith(f"on 3 of 3 data sets (CPU times); claimed: at least {threshold}")


@pytest.mark.parametrize(("threshold", "verdict"), [(1.1, "does not hold"), (4.1, "holds")])
def test_a_ratio_of_at_most_is_not_reversed(results, threshold, verdict):
    row = results(ratio(threshold, "at most"), timed(4.0))
    assert (row["verdict"], row["reason"]) == (verdict, "")
    assert row["found"] == f"a / b 4 to 4 on 3 of 3 data sets (CPU times); claimed: at most {threshold}"


def test_times_of_one_run_are_compared(tmp_path, make_study):
    alone = make_study(tmp_path / "first", ["a"], NINE, 5, change=timed(9.0))
    both = make_study(tmp_path / "second", ["a", "b"], NINE, 5, change=timed(2.0))
    for folders in ([alone, both], [both, alone]):
        (row,) = claim_verdicts(merge(folders), [ratio(3.0)])
        assert row["verdict"] == "does not hold"
        assert row["found"].startswith("a / b 2 to 2 on 3 of 3 data sets")


def test_one_common_split_has_no_error_and_decides_nothing(results):
    row = results(ratio(1e-6), lambda row: row, splits=1)
    assert (row["verdict"], row["reason"]) == ("not decided", "fewer than two common splits")


@pytest.mark.parametrize(
    ("method", "stopped", "early_seconds", "verdict"),
    [
        ("a", 5, 0.5, "not decided"),  # not "does not hold": longer fits might take four times as long
        ("a", 9, 0.5, "not decided"),
        ("a", 5, 9.0, "holds"),  # longer fits would take longer still
        ("a", 9, 9.0, "holds"),
        ("b", 5, 0.1, "holds"),  # with the other splits alone
        ("b", 9, 0.1, "not decided"),  # not "holds": a longer fit of b might reduce the ratio
    ],
)
def test_the_time_of_an_unconverged_fit_is_a_lower_limit(results, method, stopped, early_seconds, verdict):
    """Converged fits of ``a`` take four times as long as those of ``b``."""

    def change(row):
        early = row["method"] == method and row["split"] < stopped
        seconds = early_seconds if early else 4.0 if row["method"] == "a" else 1.0
        return {**row, "fit_seconds": seconds, "predict_seconds": 0.0, "r_hat": 1.06 if early else None}

    assert results(ratio(3.0), change)["verdict"] == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(400.0, "does not hold"), (3.0, "holds")])
def test_long_unconverged_fits_refute_a_ratio_of_at_most(results, seconds, verdict):
    """Half of the fits of ``a`` stop after so many times the time of ``b``, the others converge in four times."""

    def change(row):
        early = row["method"] == "a" and row["split"] < 5
        own = 1.0 if row["method"] == "b" else seconds if early else 4.0
        return {**row, "fit_seconds": own, "predict_seconds": 0.0, "r_hat": 1.06 if early else None}

    assert results(ratio(6.0, "at most"), change)["verdict"] == verdict


def test_the_error_of_a_ratio_is_a_t_interval(results):
    def verdict(threshold, name):  # mean log ratio 0.2, interval ± 4.303 · 0.1 / √3 = 0.248
        return results(ratio(threshold), timed([*np.exp([0.1, 0.2, 0.3])].__getitem__), name, splits=3)["verdict"]

    assert [verdict(np.exp(x), f"s{x}") for x in (-0.05, -0.04, 0.44, 0.45)] == [
        "holds", "not decided", "not decided", "does not hold"
    ]  # fmt: skip


def test_methods_that_have_not_converged_are_named(results):
    def change(row):
        return ONE_EACH(row) | ({"r_hat": 1.2} if (row["method"], row["dataset"]) == ("b", "boston") else {})

    assert results(won(1), ONE_EACH)["verdict"] == "holds"
    row = results(won(1), change, "s")
    assert row["verdict"] == "not decided"  # the data set that decides has such splits
    assert row["reason"].endswith("; some splits have not converged: b")
    assert results(won(1, datasets=["concrete"]), change, "t")["reason"] == ""


@pytest.mark.parametrize(
    ("missing", "threshold", "verdict"), [(0, 0.9, "holds"), (0, 1.0, "does not hold"), (1, 0.95, "not decided")]
)
@pytest.mark.parametrize("bad", [{"status": "failed", "reason": "EP has not converged"}, {"r_hat": 1.2}])
def test_fractions_of_cells_that_converged(results, missing, threshold, verdict, bad):
    def change(row):
        first = row["dataset"] == "boston" and row["split"] == 0 and row["method"] == "a"
        if row["dataset"] == "yacht" and row["split"] < missing and row["method"] == "b":
            return None
        return row | (bad if first else {})

    claim = FractionConverged(
        **PLACE, statistic="fraction converged", methods=["a", "b"], datasets=NINE, threshold=threshold
    )
    row = results(claim, change)
    counts = f"{59 - missing} of {60 - missing} converged"
    assert row["found"] == f"{counts}; 60 planned; claimed: at least {threshold:.0%}"
    if not (missing and threshold == 0.95):
        assert row["verdict"] == verdict


@pytest.mark.parametrize(
    ("missing", "threshold", "verdict"), [(0, 0.75, "holds"), (0, 0.7, "does not hold"), (1, 0.74, "not decided")]
)
def test_at_most_a_fraction_of_the_cells_converges(results, missing, threshold, verdict):
    def change(row):
        if row["dataset"] == "yacht" and row["split"] < missing and row["method"] == "a":
            return None
        return row | ({"r_hat": 1.2} if row["split"] < 5 and row["method"] == "b" else {})

    claim = FractionConverged(
        **PLACE, statistic="fraction converged", methods=["a", "b"], datasets=NINE, limit="at most", threshold=threshold
    )
    row = results(claim, change)
    assert row["found"].endswith(f"claimed: at most {threshold:.0%}")
    assert row["verdict"] == verdict


@pytest.mark.parametrize(("ratio_of_a", "verdict"), [(3.0, "holds"), (5.9, "holds"), (6.1, "does not hold")])
@pytest.mark.parametrize("inverse", [False, True])
def test_about_allows_a_factor_of_two_on_both_sides(results, ratio_of_a, verdict, inverse):
    seconds = 9.0 / ratio_of_a if inverse else ratio_of_a
    assert results(ratio(3, "about"), timed(seconds))["verdict"] == verdict


@pytest.fixture
def by_points(tmp_path, make_study, monkeypatch):
    """Return the only verdict on a claim about methods whose test points have the scores ``ll[method]``."""

    def verdict(claim, ll, change=lambda row: row):
        folder = make_study(tmp_path / "points", [*ll], ["boston"], 4, change=change)
        merged = merge([folder])
        scores = {
            key: {"ll": values.tolist(), "ae": np.exp(-values).tolist()}
            for method, values in ll.items() for key in merged.cells[method, "boston"].values()
        }  # fmt: skip
        monkeypatch.setattr("ep_bench.results.row_scores.read", lambda _: scores)
        (row,) = claim_verdicts(merged, [claim])
        return row

    return verdict


def points(relation, first="a", second="b", metric="ll"):
    return PointsWon(
        **PLACE, statistic="points", first=first, second=second, metric=metric, relation=relation,
        datasets=["boston"], threshold=1,
    )  # fmt: skip


NOISE = np.random.default_rng(3).standard_normal(100)
SCORES = {"a": NOISE + 0.1, "b": NOISE + 0.05 * np.random.default_rng(4).standard_normal(100), "c": NOISE[::-1]}


@pytest.mark.parametrize(
    ("relation", "first", "second", "verdict"),
    [
        ("better", "a", "b", "holds"), ("better", "b", "a", "does not hold"), ("better", "b", "c", "not decided"),
        ("not worse", "b", "c", "holds"), ("not worse", "b", "a", "does not hold"),
        ("no different", "b", "c", "holds"), ("no different", "a", "b", "does not hold"),
        ("better", "b | a", "b", "holds"), ("better", ["a", "b"], "c", "not decided"),
    ],
)  # fmt: skip
def test_relations_over_test_points(by_points, relation, first, second, verdict):
    assert by_points(points(relation, first, second), SCORES)["verdict"] == verdict


def test_the_interval_over_points_is_that_of_the_mean(by_points):
    """The Bayesian bootstrap of a mean of n points has the standard deviation s / sqrt(n + 1)."""
    found = by_points(points("better"), SCORES)["found"]
    low, high = (float(text.rstrip(")")) for text in found.partition("(")[2].split(" to "))
    gaps = np.tile(SCORES["a"] - SCORES["b"], 4)
    assert found.startswith(f"advantage {gaps.mean():.3g} ")
    assert high - low == pytest.approx(2 * 1.96 * gaps.std() / np.sqrt(len(gaps) + 1), rel=0.1)


@pytest.mark.parametrize(
    ("metric", "verdict"), [("mae", "holds"), ("mse", "holds"), ("ll-low", "holds"), ("ll-std", "not decided")]
)
def test_other_statistics_of_test_points(by_points, metric, verdict):
    shifted = {"a": NOISE + 0.5, "b": NOISE}
    assert by_points(points("better", metric=metric), shifted)["verdict"] == verdict
    wide = {"a": NOISE, "b": 3.0 * NOISE}
    assert by_points(points("better", metric="ll-std"), wide)["verdict"] == "holds"


@pytest.mark.parametrize(("stopped", "verdict"), [(2, "holds"), (3, "not decided")])
def test_points_of_unconverged_splits_do_not_count(by_points, stopped, verdict):
    def change(row):
        return row | ({"r_hat": 1.2} if row["method"] == "b" and row["split"] < stopped else {})

    assert by_points(points("better"), SCORES, change)["verdict"] == verdict
