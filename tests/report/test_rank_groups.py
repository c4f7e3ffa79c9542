"""Ranks of groups of methods: blocks, published ranks, orders, figure and tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import published
from ep_bench.plotting.method_style import method_styles
from ep_bench.report import build, merge, rank_group_figure, summary
from ep_bench.report.sections import rank_groups
from ep_bench.results import store

METHODS, DATASETS, SPLITS = ("PBP-1", "HMC-1", "DGP-2-50", "mine"), ("boston", "yacht", "wine", "energy", "power"), 6
LEVEL = {"HMC-1": 1.0, "DGP-2-50": 2.0, "PBP-1": 3.0, "mine": 4.0}  # RMSE; the log-likelihood has the opposite sign
STYLES = method_styles(METHODS)
GROUP_OF_THREE = {"name": "three", "methods": ["PBP-1", "HMC-1", "DGP-2-50"], "beside": "bui2015"}


def levelled(row: dict[str, Any]) -> dict[str, Any]:
    level = LEVEL[row["method"]] + 0.01 * row["split"]
    return row | {"rmse": level, "ll": -level}


def study(folder: Path, make_study: Any, groups: Any = None, change: Any = levelled, **options: Any) -> Path:
    lock = {"ranks": [GROUP_OF_THREE] if groups is None else groups, **options.pop("lock", {})}
    return make_study(folder, options.pop("methods", METHODS), DATASETS, SPLITS, change=change, lock=lock, **options)


def collected(*folders: Path) -> list[rank_groups.RankGroupResult]:
    return rank_groups.collect(merge.merge(folders))


def published_ones(group: rank_groups.RankGroupResult) -> list[rank_groups.RankGroupScore]:
    """The scores with published ranks: no source prints CRPS."""
    return [standing for standing in group.standings if standing.score.name != "crps"]


def orders(standing: rank_groups.RankGroupScore) -> list[rank_groups.RankedPair]:
    return [standing.order(pair) for pair in combinations(standing.ordered(), 2)]


def test_ranks_are_those_of_the_group_alone(tmp_path: Path, make_study: Any) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    assert [standing.score.name for standing in group.standings] == ["ll", "crps", "rmse"]
    for standing in published_ones(group):
        assert standing.blocks.mean_ranks == {"PBP-1": 3.0, "HMC-1": 1.0, "DGP-2-50": 2.0}
        assert (standing.blocks.n, standing.datasets.n) == (30, 5)
    assert group.disputed == {"DGP-2-50"}


def test_published_ranks_are_of_the_same_methods_on_the_same_data_sets(tmp_path: Path, make_study: Any) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    table = published.load_published()
    table = table[
        (table.source == "bui2015") & table.dataset.isin(DATASETS) & table.method.isin(GROUP_OF_THREE["methods"])
    ]
    for standing, sign in zip(published_ones(group), (-1.0, 1.0), strict=True):
        means = table[table.metric == standing.score.name].pivot_table("mean", "dataset", "method")
        expected = (sign * means).rank(axis=1).mean()
        assert standing.published_ranks is not None
        assert standing.published_ranks.mean_ranks == pytest.approx(expected[GROUP_OF_THREE["methods"]].to_dict())
    assert group.standings[0].printed == {"PBP-1": "13.70 ± 0.40", "HMC-1": "8.80 ± 1.38", "DGP-2-50": "5.30 ± 0.51"}


def test_a_block_without_a_score_of_every_method_is_omitted(tmp_path: Path, make_study: Any) -> None:
    def lacking(row: dict[str, Any]) -> dict[str, Any] | None:
        gone = row["method"] == "HMC-1" and (row["dataset"] == "wine" or row["split"] > 3)
        return None if gone else levelled(row)

    (group,) = collected(study(tmp_path / "s", make_study, change=lacking))
    for standing in group.standings:
        assert standing.blocks.n == 16
        assert standing.own == {"PBP-1": 30, "HMC-1": 16, "DGP-2-50": 30}
        assert standing.possible == 30
        assert standing.datasets.n == 4
    assert [one.published_ranks.n for one in published_ones(group) if one.published_ranks] == [4, 4]


def test_labels_may_be_those_of_other_folders(tmp_path: Path, make_study: Any) -> None:
    groups = [{"name": "all", "methods": ["PBP-1", "HMC-1", "HMC-2", "ours as named there"], "beside": "bui2015"}]
    first = study(tmp_path / "a", make_study, groups, methods=("HMC-1", "DGP-2-50"))
    entry = {"use": "pbp", "published": ["PBP-1"], "options": {}}
    lock = {"ranks": [], "methods": {"PBP-1": entry, "mine": entry | {"published": []}}}
    second = study(tmp_path / "b", make_study, [], methods=("PBP-1", "mine"), lock=lock)
    (alone,) = collected(first)
    assert alone.standings == []
    (group,) = collected(first, second)
    assert group.standings[0].blocks.mean_ranks == {"PBP-1": 2.0, "HMC-1": 1.0}
    assert "HMC-2 is no method of these studies: not ranked. Did you mean HMC-1?" in group.notes


def test_a_method_merged_with_another_is_found_by_its_own_label(tmp_path: Path, make_study: Any) -> None:
    first = study(tmp_path / "a", make_study, [])

    def same(lock_of: Path, label: str) -> Path:
        text = (tmp_path / "a" / "study.lock.json").read_text().replace("HMC-1", label)
        lock_of.mkdir()
        (lock_of / "study.lock.json").write_text(text.replace('"ranks": []', '"ranks": [' + GROUP + "]"))
        (lock_of / "results.csv").write_text((tmp_path / "a" / "results.csv").read_text().replace("HMC-1", label))
        return lock_of

    (group,) = collected(first, same(tmp_path / "b", "HMC"))
    assert group.columns == {"HMC-1": "HMC-1", "PBP-1": "PBP-1"}


GROUP = '{"name": "g", "methods": ["HMC", "PBP-1"], "beside": "bui2015"}'


def test_methods_without_a_published_column_are_omitted_with_a_note(tmp_path: Path, make_study: Any) -> None:
    entry = {"use": "x", "published": ["HMC-1"], "options": {}}
    groups = [{"name": "g", "methods": list(METHODS), "beside": "bui2015"}]
    methods = {name: entry if name == "mine" else entry | {"published": []} for name in METHODS}
    (group,) = collected(study(tmp_path / "s", make_study, groups, lock={"methods": methods}))
    assert "mine" not in group.columns
    assert "mine corresponds to HMC-1 of bui2015, as does HMC-1: not ranked." in group.notes
    plain = [{"name": "g", "methods": list(METHODS)}]
    (group,) = collected(study(tmp_path / "t", make_study, plain))
    assert group.standings[0].blocks.mean_ranks["mine"] == 4.0
    assert (group.columns, group.standings[0].published_ranks) == ({}, None)


def test_data_sets_with_the_same_points_are_ranked_without_a_test(tmp_path: Path, make_study: Any) -> None:
    folder = study(tmp_path / "s", make_study)
    lock = store.read_lock(folder)
    lock["datasets"]["wine"]["checksum"] = lock["datasets"]["yacht"]["checksum"]
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    (group,) = collected(folder)
    for standing in group.standings:
        for ranking in (standing.blocks, standing.datasets):
            assert ranking.repeated == "wine and yacht"
            assert not ranking.independent
            assert "contain the same data points" in summary.no_nemenyi(ranking)


def test_published_numbers_of_other_splits_are_not_used(tmp_path: Path, make_study: Any) -> None:
    rows = [row for row in published.described_rows() if (row["source"], row["folds"]) == ("jylanki2014", 10)]
    for folds, expected in ((10, {"boston"}), (3, set())):
        lock = {"splits": {"scheme": "kfold", "folds": folds}}
        merged = merge.merge([study(tmp_path / str(folds), make_study, lock=lock)])
        assert {name for name, _ in rank_groups._applicable(merged, rows)} == expected


ORDERS = [  # published difference, ours, critical difference: verdict
    (1.0, 2.0, 1.5, "holds"),
    (1.0, -2.0, 1.5, "reversed"),
    (1.0, 1.0, 1.5, "within CD (same way)"),
    (1.0, -1.0, 1.5, "within CD (other way)"),
    (1.0, 0.0, 1.5, "within CD"),
    (0.0, 2.0, 1.5, "tied in print"),
    (float("nan"), 2.0, 1.5, "holds"),
    (1.0, 2.0, float("nan"), "not tested (same way)"),  # Nemenyi's test is withheld
    (1.0, 0.0, float("nan"), "not tested"),
]


@pytest.mark.parametrize(("printed", "ours", "cd", "verdict"), ORDERS)
def test_verdicts(printed: float, ours: float, cd: float, verdict: str) -> None:
    assert rank_groups.RankedPair("a", "b", printed, ours, cd, (1.0, 1.0, 1.0)).verdict == verdict


def test_an_order_is_the_published_one_however_the_pair_is_named(tmp_path: Path, make_study: Any) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    standing = group.standings[0]
    assert standing.published_ranks is not None
    printed = standing.published_ranks.mean_ranks
    first, second = sorted(("PBP-1", "DGP-2-50"), key=lambda method: printed[method])
    one, other = standing.order(("PBP-1", "DGP-2-50")), standing.order(("DGP-2-50", "PBP-1"))
    assert one == other
    assert (one.first, one.second) == (first, second)
    assert one.published == pytest.approx(printed[second] - printed[first])
    assert one.ours == pytest.approx(1.0 if first == "DGP-2-50" else -1.0)
    assert one.ahead[1:] == ((1.0, 1.0) if first == "DGP-2-50" else (0.0, 0.0))


def test_the_figure_shows_our_and_published_ranks_on_each_methods_line(
    tmp_path: Path, make_study: Any, no_overlap: Callable[[Any], None]
) -> None:
    (group,) = collected(study(tmp_path / "s", make_study))
    picture = rank_group_figure.draw(group, STYLES)
    no_overlap(picture.figure)
    for ax, standing in zip(picture.figure.axes, group.standings, strict=True):
        if standing.published_ranks is None:
            assert standing.score.name == "crps"
            continue
        methods = sorted(standing.ordered(), key=lambda method: standing.tested.mean_ranks[method])
        points, published_marks = (
            np.concatenate([np.atleast_1d(line.get_xdata()) for line in ax.lines if line.get_marker() == marker])
            for marker in "os"
        )
        ours, printed = standing.blocks.mean_ranks, standing.published_ranks.mean_ranks
        np.testing.assert_allclose(points, [ours[method] for method in methods])
        np.testing.assert_allclose(published_marks, [printed[method] for method in methods])
    assert "DGP-2-50*" in picture.svg
    assert "disputed" in picture.caption


def test_the_legend_of_a_single_score_does_not_overlap(
    tmp_path: Path, make_study: Any, no_overlap: Callable[[Any], None]
) -> None:
    folder = study(tmp_path / "s", make_study, change=lambda row: levelled(row) | {"ll": float("nan")})
    (group,) = collected(folder)
    assert [standing.score.name for standing in group.standings] == ["crps", "rmse"]
    assert "HMC-1 has no mean test log-likelihood: not ranked by it." in group.notes
    no_overlap(rank_group_figure.draw(group, STYLES).figure)


def equal_ranks(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a study in which each method is the best on a third of the blocks."""
    level = (("PBP-1", "HMC-1", "DGP-2-50", "mine").index(row["method"]) + row["split"]) % 3
    return row | {"rmse": 1.0 + level, "ll": -1.0 - level, "crps": 1.0 + level}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (equal_ranks, "Friedman's test does not reject equal ranks (p = 1)"),
        (
            lambda row: levelled(row) if row["dataset"] == "boston" and row["split"] < 4 else None,
            "at least 5 blocks are needed, here N = 1 data set",
        ),
    ],
)
def test_no_bar_and_no_verdict_where_the_diagram_is_withheld(
    tmp_path: Path, make_study: Any, sections_of: Any, change: Any, reason: str
) -> None:
    folder = study(tmp_path / "s", make_study, change=change)
    (group,), shown = collected(folder), sections_of(folder)["group-1"]
    assert [picture.name for picture in shown.pictures] == ["ranks-three"]
    figure = shown.pictures[0].figure
    assert next(text.get_text() for text in figure.legends[0].get_texts()) == "ours"
    for ax, standing in zip(figure.axes, group.standings, strict=True):
        assert ax.get_title().endswith(", not tested")
        assert not [line for line in ax.lines if line.get_color() == "0.45"]  # colour of the bars
        assert {order.verdict.partition(" (")[0] for order in orders(standing)} <= {"not tested", "tied in print"}
    caption = shown.pictures[0].caption
    assert "Bars are" not in caption
    assert f"No bars for RMSE: {reason}." in caption
    listed = [table for table in shown.tables if "orders of" in table.caption]
    assert listed
    assert all(f"not tested: {reason}" in table.caption for table in listed)
    assert not any("critical difference 1" in line or "Nemenyi q" in line for line in shown.notes)


def test_long_names_and_many_methods_do_not_overlap(
    tmp_path: Path, make_study: Any, no_overlap: Callable[[Any], None]
) -> None:
    names = [f"a method with a long name {i}" for i in range(16)]
    folder = make_study(
        tmp_path / "s", names, ("boston", "yacht"), 3, lock={"ranks": [{"name": "g", "methods": names}]}
    )
    (group,) = collected(folder)
    no_overlap(rank_group_figure.draw(group, method_styles(names)).figure)


@pytest.mark.usefixtures("undrawn_figures")
def test_the_report_has_the_groups_and_their_pairs(tmp_path: Path, make_study: Any) -> None:
    groups = [GROUP_OF_THREE | {"pairs": [["PBP-1", "HMC-1"]]}, {"name": "empty", "methods": ["x", "y"]}]
    folder = study(tmp_path / "s", make_study, groups)
    build([folder])
    assert (folder / "report" / "figures" / "ranks-three.svg").exists()
    text = (folder / "report" / "report.html").read_text()
    assert 'id="groups"' in text
    assert "HMC-1 above PBP-1" in text
    assert "x is no method of these studies" in text


def test_the_same_group_of_two_studies_is_shown_once(tmp_path: Path, make_study: Any) -> None:
    folders = [study(tmp_path / name, make_study) for name in "ab"]
    assert len(collected(*folders)) == 1


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
    assert [standing.score.name for standing in group.standings] == ["ll-classes"]
    assert group.standings[0].blocks.mean_ranks == {"GP-50": 1.0, "two": 2.0}
    assert "No ranks by error rate: bui2015 has no data set with this score of all methods." in group.notes
