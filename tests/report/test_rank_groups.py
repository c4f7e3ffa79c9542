"""Ranks of groups of methods: our ranks, published ranks, pairs and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ep_bench import published
from ep_bench.report import merge
from ep_bench.report.sections import rank_groups
from ep_bench.results import store

METHODS, DATASETS, SPLITS = ("PBP-1", "HMC-1", "DGP-2-50", "mine"), ("boston", "yacht", "wine", "energy", "power"), 6
LEVEL = {"HMC-1": 1.0, "DGP-2-50": 2.0, "PBP-1": 3.0, "mine": 4.0}  # RMSE; the log-likelihood has the opposite sign
GROUP_OF_THREE = {"name": "three", "methods": ["PBP-1", "HMC-1", "DGP-2-50"], "beside": "bui2015"}


def levelled(row: dict[str, Any]) -> dict[str, Any]:
    level = LEVEL[row["method"]] + 0.01 * row["split"]
    return row | {"rmse": level, "ll": -level}


def study(folder: Path, make_study: Any, groups: Any = None, change: Any = levelled, **options: Any) -> Path:
    lock = {"ranks": [GROUP_OF_THREE] if groups is None else groups, **options.pop("lock", {})}
    return make_study(folder, options.pop("methods", METHODS), DATASETS, SPLITS, change=change, lock=lock, **options)


def collected(*folders: Path) -> list[rank_groups.RankGroupResult]:
    return rank_groups.collect(merge.merge(folders))


def test_ranks_are_those_of_the_group_alone(tmp_path: Path, make_study: Any) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    assert [one.ours.score.name for one in group.ranks] == ["ll", "rmse"]
    for one in group.ranks:
        assert one.ours.mean_ranks == {"PBP-1": 3.0, "HMC-1": 1.0, "DGP-2-50": 2.0}
        assert one.ours.n == 5
    assert group.disputed == {"DGP-2-50"}


def test_published_ranks_are_of_the_same_methods_on_the_same_data_sets(tmp_path: Path, make_study: Any) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    table = published.load_published()
    table = table[
        (table.source == "bui2015") & table.dataset.isin(DATASETS) & table.method.isin(GROUP_OF_THREE["methods"])
    ]
    for one, sign in zip(group.ranks, (-1.0, 1.0), strict=True):
        means = table[table.metric == one.ours.score.name].pivot_table("mean", "dataset", "method")
        expected = (sign * means).rank(axis=1).mean()
        assert one.theirs is not None
        assert one.theirs.mean_ranks == pytest.approx(expected[GROUP_OF_THREE["methods"]].to_dict())


def test_a_data_set_without_a_score_of_every_method_is_omitted(tmp_path: Path, make_study: Any) -> None:
    def lacking(row: dict[str, Any]) -> dict[str, Any] | None:
        return None if row["method"] == "HMC-1" and row["dataset"] == "wine" else levelled(row)

    (group,) = collected(study(tmp_path / "s", make_study, change=lacking))
    for one in group.ranks:
        assert one.theirs is not None
        assert "wine" not in one.ours.datasets
        assert (one.ours.n, one.theirs.n) == (4, 4)


def test_data_sets_that_do_not_count_are_left_out_except_beside_published_ranks(
    tmp_path: Path, make_study: Any
) -> None:
    groups = [GROUP_OF_THREE, {"name": "own", "methods": ["PBP-1", "mine"]}]
    folder = study(tmp_path / "s", make_study, groups)
    lock = store.read_lock(folder)
    lock["datasets"]["wine"]["target_values"], lock["datasets"]["yacht"]["unranked"] = 6, "a leak"
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    beside, own = collected(folder)
    assert [one.ours.n for one in beside.ranks] == [5, 5]
    assert [one.ours.datasets for one in own.ranks] == [
        ("boston", "energy", "power"),
        ("boston", "wine", "energy", "power"),
    ]
    assert [one.ours.incomplete for one in own.ranks] == [0, 0]


def test_labels_may_be_those_of_other_folders(tmp_path: Path, make_study: Any) -> None:
    groups = [{"name": "all", "methods": ["PBP-1", "HMC-1", "HMC-2"], "beside": "bui2015"}]
    first = study(tmp_path / "a", make_study, groups, methods=("HMC-1", "DGP-2-50"))
    entry = {"use": "pbp", "published": ["PBP-1"], "options": {}}
    lock = {"ranks": [], "methods": {"PBP-1": entry, "mine": entry | {"published": []}}}
    second = study(tmp_path / "b", make_study, [], methods=("PBP-1", "mine"), lock=lock)
    assert collected(first) == []
    (group,) = collected(first, second)
    assert group.ranks[0].ours.mean_ranks == {"PBP-1": 2.0, "HMC-1": 1.0}
    assert "Not in these studies: HMC-2." in group.notes


def test_published_numbers_of_other_splits_are_not_used(tmp_path: Path, make_study: Any) -> None:
    for folds, expected in ((10, {"boston"}), (3, set())):
        lock = {"splits": {"scheme": "kfold", "folds": folds}}
        merged = merge.merge([study(tmp_path / str(folds), make_study, lock=lock)])
        found = rank_groups._applicable(merged, "jylanki2014")
        assert {name for name, row in found if row["folds"] == 10} == expected


def verdicts(folder: Path) -> list[str]:
    (group,) = collected(folder)
    return [one.verdict("HMC-1", "PBP-1") for one in group.ranks]


def equal_ranks(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a study in which the methods have almost equal ranks."""
    level = (METHODS.index(row["method"]) + DATASETS.index(row["dataset"])) % 3
    return row | {"rmse": 1.0 + level, "ll": -1.0 - level}


def test_an_order_holds_beyond_the_critical_difference_only(tmp_path: Path, make_study: Any) -> None:
    folder = study(tmp_path / "s", make_study)
    assert verdicts(folder) == ["holds", "holds"]
    (group,) = collected(folder)
    assert [one.verdict("PBP-1", "HMC-1") for one in group.ranks] == ["reversed", "reversed"]
    assert [one.verdict("HMC-1", "DGP-2-50") for one in group.ranks] == ["within CD (same way)"] * 2
    assert group.ranks[0].published("HMC-1", "PBP-1") == "published +1.20"
    few = study(tmp_path / "t", make_study, change=equal_ranks)  # Friedman's test does not reject equal ranks
    assert all(verdict.startswith("not tested") for verdict in verdicts(few))


def test_data_sets_with_the_same_points_are_not_tested(tmp_path: Path, make_study: Any) -> None:
    folder = study(tmp_path / "s", make_study)
    lock = store.read_lock(folder)
    lock["datasets"]["wine"]["checksum"] = lock["datasets"]["yacht"]["checksum"]
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    assert verdicts(folder) == ["not tested (same way)"] * 2


def test_the_report_has_the_groups_and_their_pairs(tmp_path: Path, make_study: Any, sections_of: Any) -> None:
    groups = [GROUP_OF_THREE | {"pairs": [["HMC-1", "PBP-1"]]}, {"name": "empty", "methods": ["x", "y"]}]
    shown = sections_of(study(tmp_path / "s", make_study, groups))
    averages, pairs = shown["group-1"].tables
    assert averages.head[0] == "method"
    assert [row[0] for row in averages.rows] == ["HMC-1", "DGP-2-50*", "PBP-1"]
    assert [entry["text"] for entry in averages.rows[0][1:4:2]] == ["1.00", "1.00"]
    assert pairs.rows[0][0] == "HMC-1 above PBP-1"
    assert "group-2" not in shown


def test_classification_has_its_own_scores(tmp_path: Path, make_study: Any) -> None:
    groups = [{"name": "g", "methods": ["GP-50", "two"], "beside": "bui2015"}]
    entries = {"GP-50": {"use": "dgp_ep", "published": ["GP-50", "GP"], "options": {}}}
    entries["two"] = {"use": "dgp_ep", "published": ["DGP-2-50", "DGP-2"], "options": {}}
    sets = ("crabs", "pima")
    datasets = {name: {"name": name, "task": "classification", "n": 500, "d": 5, "checksum": name} for name in sets}

    def classes(row: dict[str, Any]) -> dict[str, Any]:
        better = row["method"] == "two"
        return row | {"rmse": float("nan"), "ll": -0.1 - 0.1 * better, "error_rate": 0.1, "brier": 0.2}

    lock = {"ranks": groups, "methods": entries, "datasets": datasets}
    (group,) = collected(make_study(tmp_path / "s", list(entries), sets, 3, change=classes, lock=lock))
    assert group.columns == {"GP-50": "GP", "two": "DGP-2"}
    assert [one.ours.score.name for one in group.ranks] == ["ll-classes"]
    assert group.ranks[0].ours.mean_ranks == {"GP-50": 1.0, "two": 2.0}
    assert "No data set has error rate of all methods." in group.notes
