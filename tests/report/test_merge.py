"""Merged studies, missing cells and reasons."""

from __future__ import annotations

import json

import pytest

from ep_bench.report import build, first_screen, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import missing_cells
from ep_bench.report.sections import ranks as ranks_section
from ep_bench.results import store


def drop(*, method, splits):
    return lambda row: None if row["method"] == method and row["split"] in splits else row


def test_the_same_cells_count_once(tmp_path, make_study):
    first = make_study(tmp_path / "a", ["pbp", "gp"], splits=3)
    second = make_study(tmp_path / "b", ["pbp", "gp"], splits=5)
    merged = merge.merge([first, second])
    assert merged.methods == ["pbp", "gp"]
    assert len(merged.rows) == 2 * 3 * 5
    assert not merged.rows.duplicated(["method", "dataset", "split"]).any()
    assert merge.merge([first, first]).rows.equals(merge.merge([first]).rows)


def test_published_columns_do_not_depend_on_the_order_of_the_studies(tmp_path, make_study):
    methods = {"pbp": {"use": "pbp", "published": ["PBP-1"], "options": {}}}
    first = make_study(tmp_path / "a", ["pbp"], lock={"methods": methods})
    second = make_study(tmp_path / "b", ["pbp"], lock={"methods": {"pbp": methods["pbp"] | {"published": []}}})
    for folders in ([first, second], [second, first]):
        assert merge.merge(folders).published_columns() == {"pbp": ("PBP-1",)}


@pytest.mark.usefixtures("undrawn_figures")
def test_of_rows_that_disagree_the_first_is_used_with_a_note(tmp_path, make_study):
    first = make_study(tmp_path / "a", ["pbp"], ["boston"], 2)
    other = {"rmse": 99.0, "fit_seconds": 7.0}
    second = make_study(tmp_path / "b", ["pbp"], ["boston"], 2, change=lambda row: {**row, **other})
    merged = merge.merge([first, second])
    assert merged.rows["rmse"].max() < 10.0
    (note,) = merged.notes
    assert "the same cells disagree in rmse (splits 0-1). The report shows those of a, not of b" in note
    logged: list[str] = []
    build([first, second], tmp_path / "out", log=logged.append)
    assert logged == [note]


@pytest.mark.parametrize(("factor", "noted"), [(1 + 1e-10, False), (1 + 1e-6, True)])
def test_equal_cells_agree_up_to_rounding(tmp_path, make_study, factor, noted):
    folders = [
        make_study(tmp_path / name, ["pbp"], ["boston"], 1, change=lambda row, value=value: {**row, "rmse": value})
        for name, value in (("a", 2.0), ("b", 2.0 * factor))
    ]
    assert bool(merge.merge(folders).notes) is noted


def test_one_label_with_two_configurations_becomes_two_columns(tmp_path, make_study):
    folders = [make_study(tmp_path / name, ["pbp"], ["boston"], 2, seed=seed) for name, seed in (("a", 0), ("b", 1))]
    merged = merge.merge(folders)
    assert merged.methods == ["pbp [a]", "pbp [b]"]
    assert merged.planned == {("pbp [a]", "boston"): 2, ("pbp [b]", "boston"): 2}
    assert "configured differently" in merged.notes[0]


def test_one_configuration_under_two_labels_is_one_column(tmp_path, make_study):
    first = make_study(tmp_path / "a", ["pbp"], ["boston"], 2)
    second = make_study(tmp_path / "b", ["pbp"], ["boston", "yacht"], 2)
    lock = json.loads((second / store.LOCK).read_text())
    for group in lock["groups"]:
        group["method"] = "PBP-1"
    store.write_lock(second, {key: value for key, value in lock.items() if key != "format"})
    merged = merge.merge([first, second])
    assert merged.methods == ["pbp"]
    assert merged.planned == {("pbp", "boston"): 2, ("pbp", "yacht"): 2}


def test_different_data_under_one_label_are_separate_data_sets(tmp_path, make_study):
    first = make_study(tmp_path / "a", ["pbp"], ["boston"], 2)
    splits = {"splits": {"scheme": "kfold", "folds": 10, "seed": 0}}
    second = make_study(tmp_path / "b", ["gp"], ["boston"], 2, lock=splits)
    merged = merge.merge([first, second])
    assert merged.datasets == ["boston [a]", "boston [b]"]
    assert "separate data sets" in merged.notes[0]
    third = make_study(tmp_path / "c", ["pbp"], ["boston"], 2)
    merged = merge.merge([first, second, third])
    assert merged.datasets == ["boston [a]", "boston [b]"]
    assert merged.planned["pbp", "boston [a]"] == 2


def test_data_sets_with_the_same_data_points_are_no_independent_blocks(tmp_path, make_study):
    sets = ["boston", "concrete", "energy", "wine", "yacht"]
    splits = {"splits": {"scheme": "kfold", "folds": 10, "seed": 0}}
    studies = [make_study(tmp_path / "a", datasets=sets), make_study(tmp_path / "b", datasets=sets, lock=splits)]
    for folders, tested in ((studies[:1], True), (studies, False)):
        report = ReportContext(merge.merge(folders))
        (shown,) = ranks_section.sections(report)
        lines = "\n".join(line for part in shown.parts for line in part.lines)
        assert ("Friedman χ²" in lines) is tested
        assert ("no test, because boston [a] and boston [b]; concrete [a]" in lines) is not tested
        verdict = first_screen.verdict(report, report.leaderboards[0])
        assert ("contain the same data points" in verdict) is not tested


def test_gaps_count_missing_and_failed(tmp_path, make_study):
    def change(row):
        if row["method"] == "gp" and row["dataset"] == "yacht" and row["split"] in {0, 3}:
            bare = {key: row[key] for key in ("study", "method", "dataset", "split", "seed", "cell")}
            return bare | {"status": "failed", "reason": "no stationary point"}
        return drop(method="gp", splits={4})(row)

    merged = merge.merge([make_study(tmp_path / "a", ["pbp", "gp"], ["boston", "yacht"], 5, change=change)])
    assert missing_cells.gaps(merged) == [
        {"method": "gp", "dataset": "boston", "done": "4 of 5 splits", "detail": "1 missing"},
        {"method": "gp", "dataset": "yacht", "done": "2 of 5 splits", "detail": "2 failed, 1 missing"},
    ]
    assert missing_cells.remarks(merged) == [
        {"method": "gp", "dataset": "yacht", "status": "failed", "reason": "no stationary point", "splits": "0, 3"}
    ]


def test_combinations_left_out_are_listed_unless_another_study_has_them(tmp_path, make_study):
    folders = [
        make_study(tmp_path / "a", ["pbp", "gp"], ["boston"], 2),
        make_study(tmp_path / "b", ["gp"], ["yacht"], 2),
    ]
    path = folders[0] / store.LOCK
    lock = json.loads(path.read_text())
    lock["left_out"] = [{"method": m, "dataset": "yacht", "reason": "takes a week"} for m in ("pbp", "gp")]
    path.write_text(json.dumps(lock))
    assert missing_cells.left_out(merge.merge(folders)) == [("pbp", "yacht", "takes a week")]
    assert missing_cells.gaps(merge.merge(folders)) == []
