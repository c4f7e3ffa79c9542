"""Verdicts against hand-computed z values."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from ep_bench.errors import UserError
from ep_bench.published import (
    CHECK_COLUMNS,
    COLUMN_NAMES,
    VERDICTS,
    check,
    counted_once,
    counts,
    regressions,
    verdict_counts,
    worst_first,
)
from ep_bench.published.values import values_by_split
from ep_bench.types import COLUMNS

HERNANDEZ = "hernandez-lobato2015"


def study(method="PBP", published=("PBP",), dataset="boston", splits=None, use="pbp", **more):
    """Return the lock of a study of one method on one data set."""
    return {
        "study": "s",
        "splits": splits or {"scheme": "standard"},
        "methods": {method: {"use": use, "published": list(published)}},
        "datasets": {dataset: {"name": dataset}},
        "accept": [],
        **more,
    }


def rows(method="PBP", dataset="boston", n=20, status="ok", **scores):
    """Return n rows of results; a score is a number or a list of n."""
    return [
        {
            "study": "s", "method": method, "dataset": dataset, "split": i, "status": status,
            **{key: value[i] if isinstance(value, list) else value for key, value in scores.items()},
        }
        for i in range(n)
    ]  # fmt: skip


def frame(*lists):
    return pd.DataFrame([row for part in lists for row in part], columns=list(COLUMNS))


def only(checked, **where):
    for key, value in where.items():
        checked = checked[checked[key] == value]
    (found,) = checked.to_dict("records")
    return found


def test_z_by_hand():
    # rmse 2.8 and 3.0 in turn: mean 2.9, standard deviation 0.1 (ddof 0), standard error 0.1 / sqrt 20 = 0.0223607
    # published 3.014 +- 0.1800, last digit 0.001: width sqrt(0.0005 + 0.0324 + 1e-6 / 12) = 0.1813838
    found = only(check(frame(rows(rmse=[2.8, 3.0] * 10, ll=-2.5)), study()), source=HERNANDEZ, metric="rmse")
    assert found["mean"] == pytest.approx(2.9)
    assert found["stderr"] == pytest.approx(0.0223607, rel=1e-5)
    assert found["z"] == pytest.approx(-0.114 / 0.1813838, rel=1e-6)
    assert (found["published_mean"], found["published_stderr"], found["n_splits"]) == (3.014, 0.18, 20)
    assert (found["verdict"], found["reason"], found["table"]) == ("reproduced", "", "1")


def test_published_values_of_each_split_are_compared_in_pairs():
    source = "gal-dropout-2018"
    known = values_by_split()[source, "stored per-split results", "MC-dropout-1", "boston", "ll"]
    lock = study("Dropout-1", ["MC-dropout-1"])
    ours = frame(rows("Dropout-1", ll=[known[k] + 0.01 * (k % 2) for k in range(20)], n_train=455, n_test=51))
    found = only(check(ours, lock), source=source, metric="ll")
    # differences 0 and 0.01 in turn: mean 0.005, variance 0.005^2 * 20 / 19
    assert found["z"] == pytest.approx(1.0 / math.sqrt(20 / 19 * (1 / 20 + 51 / 455)), rel=1e-4)
    assert "paired, split by split" in found["reason"]
    more = frame(rows("Dropout-1", n=21, ll=-2.4, n_train=455, n_test=51))
    assert "paired" not in only(check(more, lock), source=source, metric="ll")["reason"]


def test_the_rounding_of_the_printed_number_counts():
    # naval is printed as 0.006 +- 0.0000: the width is 0.001 / sqrt 12 alone
    lock = study(dataset="naval", datasets={"naval": {"name": "naval", "constant_inputs": "paper"}})
    found = only(check(frame(rows(dataset="naval", rmse=0.0057)), lock), metric="rmse")
    assert found["z"] == pytest.approx(-0.0003 * math.sqrt(12) / 0.001)
    assert (found["verdict"], found["reason"]) == ("reproduced", "the printed standard error is 0 by rounding")


@pytest.mark.parametrize(
    ("scores", "metric", "verdict"),
    [
        ({"rmse": 3.014 + 2.01 * 0.18}, "rmse", "worse"),
        ({"rmse": 3.014 + 1.99 * 0.18}, "rmse", "reproduced"),
        ({"rmse": 3.014 - 1.99 * 0.18}, "rmse", "reproduced"),
        ({"rmse": 3.014 - 2.01 * 0.18}, "rmse", "better"),
        ({"ll": -2.574 - 2.01 * 0.089}, "ll", "worse"),
        ({"ll": -2.574 - 1.99 * 0.089}, "ll", "reproduced"),
        ({"ll": -2.574 + 2.01 * 0.089}, "ll", "better"),
    ],
)
def test_verdicts_follow_the_direction_of_the_metric(scores, metric, verdict):
    checked = check(frame(rows(**scores)), study(), [HERNANDEZ])
    assert only(checked, metric=metric)["verdict"] == verdict
    assert len(regressions(checked)) == (verdict == "worse")


def test_missing_splits_make_it_incomplete():
    checked = check(frame(rows(n=19, rmse=9.0, ll=-9.0)), study(), [HERNANDEZ])
    assert set(checked["verdict"]) == {"incomplete"}
    assert only(checked, metric="rmse")["reason"] == "19 of 20 splits"
    assert only(checked, metric="rmse")["z"] > 2
    assert len(regressions(checked)) == 0


def test_a_cell_that_is_not_ok_makes_it_incomplete_and_its_numbers_do_not_count():
    bad = rows(n=1, status="failed", rmse=1e9)
    checked = check(frame(rows(n=19, rmse=3.0), bad), study(), [HERNANDEZ])
    found = only(checked, metric="rmse")
    assert (found["verdict"], found["mean"], found["n_splits"]) == ("incomplete", 3.0, 19)
    assert found["reason"] == "19 of 20 splits; 1 cells without a score"


def test_a_published_number_under_another_name_is_reported():
    checked = check(frame(rows(method="mine", rmse=3.0, ll=-2.5)), study(method="mine", published=["PBP-1"]))
    assert set(checked["source"]) == {"bui2015"}
    found = only(checked, table="4")
    assert (found["method"], found["reason"]) == ("mine", f"published as PBP-1; repeated from {HERNANDEZ}")


def test_the_exchanged_numbers_are_compared_after_the_exchange():
    lock = study(method="drop", published=["Dropout-1"], dataset="power")
    found = only(check(frame(rows(method="drop", dataset="power", ll=-2.80, rmse=4.0)), lock), metric="ll")
    assert (found["published_mean"], found["verdict"]) == (-2.80, "reproduced")
    # the printed spread 0.05 (of the row printed under protein) is a standard deviation over 20 splits
    assert found["published_stderr"] == pytest.approx(0.0111803, rel=1e-5)
    assert "exchanged" in found["reason"]


def test_a_printed_standard_deviation_is_not_a_standard_error():
    # 2.97 with standard deviation 0.85 over 20 splits: 3.5 is 2.79 standard errors above, 0.62 standard deviations
    lock = study(method="drop", published=["Dropout-1"])
    found = only(check(frame(rows(method="drop", rmse=3.5)), lock), metric="rmse")
    assert found["z"] == pytest.approx(0.53 / math.sqrt(0.85**2 / 20 + 1e-4 / 12))
    assert found["verdict"] == "worse"


def test_a_disputed_number_is_shown_and_never_fails():
    lock = study(method="sgp", published=["GP-50"])
    checked = check(frame(rows(method="sgp", rmse=3.184, ll=-2.387)), lock)
    found = only(checked, metric="rmse")
    assert (found["verdict"], found["published_mean"]) == ("disputed", 2.43)
    assert found["z"] == pytest.approx(0.754 / math.sqrt(0.12**2 + 1e-4 / 12))
    assert "authors' own program" in found["reason"]
    assert len(regressions(checked)) == 0


def test_an_accepted_difference_stays_worse_and_is_no_regression():
    lock = study(accept=[{"method": "pbp", "dataset": "boston", "metric": "rmse", "reason": "known"}])
    checked = check(frame(rows(rmse=4.0, ll=-4.0)), lock, [HERNANDEZ])
    found = only(checked, metric="rmse")
    assert (found["verdict"], found["reason"]) == ("worse", "accepted: known")
    assert list(regressions(checked)["metric"]) == ["ll"]


@pytest.mark.parametrize("item", [{"method": "PBP"}, {"method": "pbp"}, {"dataset": "b"}, {"dataset": "boston"}])
def test_accept_takes_labels_and_names(item):
    accept = {"method": "PBP", "dataset": "b", "metric": "rmse", "reason": "r"} | item
    lock = study(dataset="b", datasets={"b": {"name": "boston"}}, accept=[accept])
    assert len(regressions(check(frame(rows(dataset="b", rmse=4.0)), lock, [HERNANDEZ]))) == 0


def test_accept_without_a_data_set_or_metric_means_all():
    lock = study(accept=[{"method": "pbp", "reason": "known"}])
    assert len(regressions(check(frame(rows(rmse=4.0, ll=-4.0)), lock, [HERNANDEZ]))) == 0


def test_an_accepted_difference_that_is_none_is_not_mentioned():
    lock = study(accept=[{"method": "PBP", "dataset": "boston", "metric": "rmse", "reason": "known"}])
    assert only(check(frame(rows(rmse=3.0)), lock, [HERNANDEZ]), metric="rmse")["reason"] == ""


def test_another_split_scheme_is_not_compared():
    for splits in ({"scheme": "kfold", "folds": 10}, {"scheme": "shuffle", "test_fraction": 0.1}, {"scheme": "gap"}):
        assert len(check(frame(rows(rmse=3.0)), study(splits=splits))) == 0


def test_published_gaps_are_those_of_the_public_files():
    gaps = study(method="vi", published=["MFVI"], splits={"scheme": "gap", "files": "public"})
    # ll -2.703 +- 0.072 over 13 splits, a standard deviation; the score of ours is that of one Gaussian
    ours = frame(rows(method="vi", n=13, ll=-9.0, ll_gaussian=-2.7))
    found = only(check(ours, gaps), source="depth-uncertainty", metric="ll")
    assert (found["verdict"], found["n_splits"], found["mean"]) == ("yardstick", 13, pytest.approx(-2.7))
    assert found["published_stderr"] == pytest.approx(0.072 / math.sqrt(13))
    gaps["splits"] = {"scheme": "gap"}  # the middle third of the sorted values, ties in the order of the file
    assert len(check(ours, gaps)) == 0


def test_own_random_splits_are_compared_with_own_random_splits():
    splits = {"scheme": "shuffle", "test_fraction": 0.1, "seed": 0}
    lock = study(method="vi", published=["DVI-1"], splits=splits)
    found = only(check(frame(rows(method="vi", ll=-2.41)), lock))
    assert found["verdict"] == "yardstick"
    assert "not the published splits but others of the same kind: independent means" in found["reason"]
    lock["splits"] = splits | {"test_fraction": 0.2}
    assert len(check(frame(rows(method="vi", ll=-2.41)), lock)) == 0


def test_standard_splits_are_compared_with_random_ones_as_independent_means():
    # ll -2.5 and -2.7 in turn: mean -2.6, standard error 0.1 / sqrt 20; published -2.58 +- 0.04, last digit 0.01
    lock = study(method="vi", published=["hoDVI-1 (homoscedastic)"], use="vi")
    found = only(check(frame(rows(method="vi", ll=[-2.5, -2.7] * 10)), lock))
    assert found["z"] == pytest.approx(-0.02 / math.sqrt(0.0005 + 0.0016 + 1e-4 / 12))
    assert (found["verdict"], found["n_splits"]) == ("yardstick", 20)
    assert found["reason"] == (
        "published as hoDVI-1 (homoscedastic); "
        "not the published splits but others of the same kind: independent means; "
        "the published row has an empirical-Bayes prior"
    )


def test_a_remark_on_one_method_is_not_on_entries_of_another():
    # the prior of dvi is that of the paper, without an option for it
    locks = {use: study(published=["hoDVI-1 (homoscedastic)"], use=use) for use in ("vi", "dvi")}
    found = {use: only(check(frame(rows(ll=-2.6)), lock))["reason"] for use, lock in locks.items()}
    assert found["vi"] == f"{found['dvi']}; the published row has an empirical-Bayes prior"


@pytest.mark.parametrize(("column", "source"), [("hoDVI-1 (homoscedastic)", "wu2019-dvi"), ("SGP L1", "star-dgp")])
@pytest.mark.parametrize(("dataset", "needed"), [("boston", 20), ("protein", 5)])
def test_kindred_splits_are_complete_with_the_number_of_the_study_s_own_scheme(column, source, dataset, needed):
    lock = study(method="vi", published=[column], dataset=dataset)
    for n, complete in ((needed, True), (needed - 1, False)):
        found = only(check(frame(rows(method="vi", dataset=dataset, n=n, ll=-2.6)), lock), source=source)
        assert (f"{n} of {needed} splits" in found["reason"]) != complete


FOLDS = {"scheme": "folds", "count": 5, "above": 5000}


def of_folds(use, *names, **scores):
    """Return the comparison of an entry on sets with published folds, of which five are there."""
    lock = study(use, (), splits=FOLDS, datasets={name: {"name": name} for name in names})
    lock["methods"][use]["use"] = use
    return check(frame(*(rows(use, name, n=5, **scores) for name in names)), lock)


@pytest.mark.parametrize(
    ("use", "column", "metrics"),
    [
        ("swag", "SWAG", {"rmse", "lpd-mean"}),
        ("neural_linear", "NL", {"rmse", "ll"}),
        ("mve", "SGD", {"rmse", "lpd-mean"}),
        ("bp", "SGD", {"rmse"}),
    ],
)
def test_sets_with_published_folds_have_yardsticks(use, column, metrics):
    names = ("elevators", "keggdirected", "keggundirected", "skillcraft", "pol")
    checked = of_folds(use, *names, "protein", "sml", rmse=0.1, ll=0.9, target_std=0.25)
    assert set(checked["source"]) == {"subspace-inference"}
    assert {(name, metric) for name in names for metric in metrics} == set(
        zip(checked["dataset"], checked["metric"], strict=True)
    )
    assert set(checked["published_method"]) == {column}
    assert set(checked["verdict"]) == {"yardstick"}
    assert checked["reason"].str.contains("5 of 10 splits").all()
    assert checked["reason"].str.contains("independent means").all()


def test_log_likelihoods_of_published_folds_are_those_of_the_standardised_target():
    # ll 0.95 of a target with standard deviation 0.25: 0.95 + log 0.25 = -0.4362944; printed -0.395 with 0.030 over 10
    found = only(of_folds("swag", "elevators", rmse=0.1, ll=0.95, target_std=0.25), metric="lpd-mean")
    assert found["mean"] == pytest.approx(-0.4362944, rel=1e-6)
    assert found["z"] == pytest.approx((-0.4362944 + 0.395) / math.sqrt(0.03**2 / 10 + 1e-6 / 12), rel=1e-5)


@pytest.mark.parametrize(
    "ref",
    [
        {"irrelevant_inputs": 92},
        {"target_transform": "log"},
        {"target": "y"},
        {"csv": "/x/boston.csv"},
        {"name": "yacht"},
        {"altered_file": True},
        {"drop_rows": "suspect"},
    ],
)
def test_other_data_are_not_compared(ref):
    lock = study(datasets={"boston": {"name": "boston"} | ref})
    assert not set(check(frame(rows(rmse=3.0)), lock)["published_mean"]) & {3.014}


def test_normalised_scores_of_ten_folds():
    # ll -2.9 of a target with standard deviation 9: -2.9 + log 9 = -0.7027754; squared error (3.6 / 9)^2 = 0.16
    lock = study(method="nn", published=["NN-EP-LA"], splits={"scheme": "kfold", "folds": 10, "seed": 0})
    checked = check(frame(rows(method="nn", n=10, ll=-2.9, rmse=3.6, target_std=9.0)), lock)
    density, square = only(checked, metric="lpd-mean"), only(checked, metric="se-mean")
    assert density["mean"] == pytest.approx(-0.7027754, rel=1e-6)
    assert density["z"] == pytest.approx((-0.7027754 + 0.44) / math.sqrt(1.64**2 / 506 + 1e-4 / 12), rel=1e-5)
    assert density["verdict"] == "worse"
    assert square["mean"] == pytest.approx(0.16)
    assert (square["published_mean"], square["verdict"]) == (0.15, "reproduced")
    assert set(checked["metric"]) == {"lpd-mean", "se-mean"}


def folds(**scores):
    """Return ten folds of boston with unlike numbers of points, by NN-EP-LA's label nn, and their study."""
    lock = study(method="nn", published=["NN-EP-LA"], splits={"scheme": "kfold", "folds": 10, "seed": 0})
    parts = rows(method="nn", n=10, n_test=[51] * 6 + [50] * 4, target_std=9.0, **scores)
    return frame(parts), lock


def test_folds_are_pooled_over_their_points():
    # six folds of 51 points with -2.9, four of 50 with -2.4: mean -(306 * 2.9 + 200 * 2.4) / 506 + log 9; within the
    # folds the standard deviation is 1.5, between them 0.5 with fractions 306 / 506 and 200 / 506
    results, lock = folds(ll=[-2.9] * 6 + [-2.4] * 4, ll_std=1.5, rmse=3.6, se_std=40.5)
    density = only(check(results, lock), metric="lpd-mean")
    mean = math.log(9.0) - (306 * 2.9 + 200 * 2.4) / 506
    deviation = math.sqrt(1.5**2 + 0.25 * 306 * 200 / 506**2)
    assert density["mean"] == pytest.approx(mean, rel=1e-12)
    assert density["stderr"] == pytest.approx(deviation / math.sqrt(506), rel=1e-12)
    width = math.sqrt((deviation**2 + 1.64**2) / 506 + 1e-4 / 12)
    assert density["z"] == pytest.approx((mean + 0.44) / width, rel=1e-12)
    square = only(check(results, lock), metric="se-mean")
    assert square["stderr"] == pytest.approx(40.5 / 81.0 / math.sqrt(506))  # errors squared have the target's square
    assert (square["verdict"], square["n_splits"], square["reason"]) == ("reproduced", 10, "published as NN-EP-LA")


def test_without_standard_deviations_over_points_folds_are_compared_as_splits():
    results, lock = folds(ll=[-2.9, -2.4] * 5, rmse=3.6)
    density = only(check(results, lock), metric="lpd-mean")
    assert density["mean"] == pytest.approx(math.log(9.0) - 2.65)
    assert density["stderr"] == pytest.approx(0.25 / math.sqrt(10))


def test_crime_rests_on_the_cube_root_of_its_target():
    for transform, said in (({}, True), ({"target_transform": "cube_root"}, False)):
        lock = study(
            method="GP", published=["GP"], splits={"scheme": "kfold", "folds": 10, "seed": 0},
            datasets={"c": {"name": "communities"} | transform},
        )  # fmt: skip
        checked = check(frame(rows(method="GP", dataset="c", n=10, n_test=199, target_std=1.0, ll=-0.8)), lock)
        reason = only(checked, metric="lpd-mean")["reason"]
        assert ("the published row rests on target_transform: cube_root" in reason) == said


def kin40k(n, **scores):
    lock = study(
        method="nn", published=["NN-EP-ARD"], splits={"scheme": "shuffle", "count": n, "test_fraction": 0.875},
        datasets={"kin": {"name": "kin40k", "irrelevant_inputs": 92}},
    )  # fmt: skip
    return frame(rows(method="nn", dataset="kin", n=n, target_std=1.0, n_test=35000, **scores)), lock


def test_kin40k_with_irrelevant_inputs_is_one_split_with_errors_over_its_points():
    checked = check(*kin40k(1, ll=0.27, ll_std=1.2, rmse=0.18, se_std=0.08))
    assert set(checked["n_splits"]) == {1}
    assert all("on kin40k-irrelevant" in reason for reason in checked["reason"])
    assert all("one split: standard errors over its test points alone" in reason for reason in checked["reason"])
    assert "incomplete" not in set(checked["verdict"])
    assert only(checked, metric="lpd-mean")["stderr"] == pytest.approx(1.2 / math.sqrt(35000))


def test_several_random_splits_give_the_uncertainty_of_one_published_split():
    # 0.20 and 0.30: mean 0.25, standard deviation 0.05 over splits, which the published single split has as well
    checked = check(*kin40k(2, ll=[0.2, 0.3], ll_std=1.2, rmse=0.18, se_std=0.08))
    found = only(checked, metric="lpd-mean")
    assert found["stderr"] == pytest.approx(0.05 / math.sqrt(2))
    width = math.sqrt(0.05**2 / 2 + 1.19**2 / 35000 + 0.05**2 + 1e-4 / 12)
    assert found["z"] == pytest.approx((0.25 - 0.27) / width, rel=1e-9)
    assert "one split" not in found["reason"]


def test_a_missing_published_spread_counts_as_zero_and_is_reported():
    lock = study(dataset="year")
    found = only(check(frame(rows(dataset="year", n=1, rmse=8.8791)), lock), metric="rmse", source=HERNANDEZ)
    assert found["z"] == pytest.approx(0.0001 * math.sqrt(12) / 0.001)
    assert math.isnan(found["published_stderr"])
    assert found["reason"] == "one split, no spread of ours; no published spread, taken as 0"


def test_naval_and_protein_name_the_detail_that_the_paper_rests_on():
    found = only(check(frame(rows(dataset="naval", ll=3.667)), study(dataset="naval"), [HERNANDEZ]), metric="ll")
    assert found["verdict"] == "worse"
    assert found["reason"] == "the published row rests on constant_inputs: paper"
    groups = [{"method": "PBP", "dataset": "protein", "factors": {"options": {"epochs": 40}}, "cells": {}}]
    forty = check(frame(rows(dataset="protein", n=5, ll=-2.966)), study(dataset="protein", groups=groups), [HERNANDEZ])
    assert only(forty, metric="ll")["reason"] == "the published row was made with 20 epochs"
    groups[0]["factors"]["options"]["epochs"] = 20
    twenty = check(frame(rows(dataset="protein", n=5, ll=-2.974)), study(dataset="protein", groups=groups), [HERNANDEZ])
    assert only(twenty, metric="ll")["reason"] == ""


def test_against_narrows_and_an_unknown_source_is_refused():
    lock = study(published=["PBP", "PBP-1"])
    results = frame(rows(rmse=3.0, ll=-2.5))
    assert set(check(results, lock)["source"]) == {HERNANDEZ, "bui2015"}
    assert set(check(results, lock, ["bui2015"])["source"]) == {"bui2015"}
    with pytest.raises(UserError, match=r"--against.*unknown source.*'bui2014'.*did you mean 'bui2015'"):
        check(results, lock, ["bui2014"])


def test_columns_order_and_types():
    checked = check(frame(rows(rmse=3.0, ll=-2.5)), study(published=["PBP", "PBP-1"]))
    assert tuple(checked.columns) == (*CHECK_COLUMNS, *COLUMN_NAMES, "repeats", "unconverged")
    keys = [tuple(r[c] for c in CHECK_COLUMNS[:5]) for r in checked.to_dict("records")]
    assert keys == sorted(keys)
    assert checked["n_splits"].dtype == "int64"
    for empty in (check(pd.DataFrame(), {}), check(frame(), study(published=[]))):
        assert tuple(empty.columns) == (*CHECK_COLUMNS, *COLUMN_NAMES, "repeats", "unconverged")
        assert len(empty) == len(regressions(empty)) == 0
        assert empty["z"].dtype == "float64"


def test_the_words_state_how_many_numbers_are_of_fits_that_have_not_converged():
    settled = check(frame(rows(rmse=3.0, ll=-2.5)), study(), [HERNANDEZ])
    assert verdict_counts(settled) == "2 reproduced"
    open_fit = check(frame(rows(rmse=3.0, ll=-2.5, converged="false")), study(), [HERNANDEZ])
    assert verdict_counts(open_fit) == "2 reproduced (2 of them not converged)"


def test_a_number_with_several_entries_counts_once_by_the_worst_complete_one():
    lock = study(methods={name: {"use": "pbp", "published": ["PBP"]} for name in ("good", "bad", "begun")})
    results = frame(rows("good", rmse=3.0), rows("bad", rmse=4.0), rows("begun", n=1, rmse=9.0))
    checked = check(results, lock, [HERNANDEZ])
    assert len(checked) == 6
    assert counts(checked) == dict.fromkeys(VERDICTS, 0) | {"worse": 1, "incomplete": 1}


def test_a_number_that_a_later_paper_repeats_counts_once():
    checked = check(frame(rows(rmse=3.0, ll=-2.5)), study(published=["PBP", "PBP-1"]), [HERNANDEZ, "bui2015"])
    assert list(checked["repeats"]) == [HERNANDEZ, HERNANDEZ, "", ""]
    assert set(counted_once(checked)["source"]) == {HERNANDEZ}
    assert sum(counts(checked).values()) == 2
    assert verdict_counts(checked).endswith("; not counted: 2 repeated from an earlier paper")
    alone = checked[checked["source"] == "bui2015"]  # without the first paper, the quotation is all there is
    assert sum(counts(alone).values()) == 2
    assert "not counted" not in verdict_counts(alone)
    assert set(alone["reason"].str.contains(f"repeated from {HERNANDEZ}")) == {True}


def test_two_quotations_of_one_number_count_once():
    lock = study(methods={"d": {"use": "dropout", "published": ["Dropout-1"], "options": {"hidden": [50]}}})
    checked = check(frame(rows("d", rmse=3.0, ll=-2.5)), lock, ["bui2015", "lakshminarayanan2017"])
    assert len(checked) == 4
    assert set(counted_once(checked)["source"]) == {"bui2015"}


def test_the_worst_comes_first_and_accepted_differences_after_others():
    accept = [{"method": "known", "dataset": "boston", "metric": "rmse", "reason": "r"}]
    names = ("fine", "known", "bad", "worst")
    lock = study(methods={name: {"use": "x", "published": ["PBP"]} for name in names}, accept=accept)
    results = frame(rows("fine", rmse=3.0), rows("known", rmse=9.0), rows("bad", rmse=4.0), rows("worst", rmse=5.0))
    checked = check(results, lock, [HERNANDEZ])
    ordered = worst_first(checked[checked["metric"] == "rmse"])
    assert list(ordered["method"]) == ["worst", "bad", "known", "fine"]


def test_a_later_paper_is_a_yardstick_and_never_a_failure():
    options = {"options": {"hidden": [50]}}
    lock = study(
        methods={"mine": {"use": "ensemble", **options}, "wide": {"use": "ensemble", "options": {"hidden": [9, 9]}}}
    )
    checked = check(frame(rows("mine", rmse=9.0, ll=-9.0, ll_gaussian=-2.5), rows("wide", rmse=3.0)), lock)
    assert only(checked, metric="ll")["mean"] == pytest.approx(-2.5)  # the paper has the density of one Gaussian
    assert set(checked["source"]) == {"lakshminarayanan2017"}
    assert set(checked["method"]) == {"mine"}  # the published networks have one hidden layer
    assert set(checked["verdict"]) == {"yardstick"}
    assert only(checked, metric="rmse")["z"] > 2
    assert len(regressions(checked)) == 0


def test_times_and_ranks_get_no_verdict():
    lock = study(
        method="x",
        published=["PBP", "PBP-1", "GA", "PBP-R"],
        datasets={"boston": {"name": "boston"}, "average-rank": {"name": "average-rank"}},
    )
    assert set(check(frame(rows(method="x", rmse=3.0, fit_seconds=3.0)), lock)["metric"]) == {"rmse", "ll"}
    assert set(check(frame(rows(method="x", rmse=3.0)), lock)["dataset"]) == {"boston"}
    assert set(check(frame(rows(method="x", rmse=3.0)), lock)["table"]) == {"1", "3", "4"}


@pytest.mark.parametrize(
    ("dataset", "table", "ll", "verdict"),
    [
        ("crabs", "1", -0.03, "reproduced"),
        ("pima", "1", -0.51, "reproduced"),  # printed at australian
        ("glass", "2", -0.60, "better"),
        ("wine-cultivars", "2", -0.07, "reproduced"),  # wine in the table
    ],
)
def test_classification_tables_under_the_standard_scheme(dataset, table, ll, verdict):
    scores = [ll - 0.01, ll + 0.01] * 10
    of_classes = rows("deep", dataset, ll=scores, error_rate=0.1, brier=0.2)
    checked = check(frame(of_classes), study("deep", ("DGP-2",), dataset), ["bui2015"])
    checked = checked[checked["verdict"] != "disputed"]
    found = only(checked, metric="ll")
    assert (found["table"], found["verdict"], found["n_splits"]) == (table, verdict, 20)
    assert len(checked) == 1
    missing = check(frame(of_classes[:19]), study("deep", ("DGP-2",), dataset), ["bui2015"])
    assert set(missing["verdict"]) - {"disputed"} == {"incomplete"}


def test_exchanged_rows_of_classification_are_also_compared_as_printed():
    checked = check(frame(rows("deep", "pima", ll=-0.48)), study("deep", ("DGP-2",), "pima"), ["bui2015"])
    printed = only(checked, verdict="disputed")
    assert printed["published_mean"] == -0.40
    assert "look exchanged" in printed["reason"]
    assert only(checked, published_mean=-0.51)["reason"].endswith("look exchanged in print")
    assert sum(counts(checked).values()) == 1
