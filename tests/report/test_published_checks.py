"""Published numbers of merged studies count once."""

from __future__ import annotations

from ep_bench import published
from ep_bench.cli.output.check import check_folders
from ep_bench.report import merge
from ep_bench.report.published_checks import merged_check


def of(label, **more):
    """Return the part of a lock with one entry that corresponds to the column PBP."""
    return {"methods": {label: {"use": "pbp", "published": ["PBP"], "options": {}}}, **more}


def test_a_number_that_two_folders_answer_is_one_row_with_the_cells_of_both(tmp_path, make_study):
    lock = of("pbp", splits={"scheme": "standard"})
    first = make_study(tmp_path / "a", ["pbp"], ["boston"], 20, lock=lock)
    half = make_study(
        tmp_path / "b", ["pbp"], ["boston"], 20, lock=lock, change=lambda row: row if row["split"] < 9 else None
    )
    single = merged_check(merge.merge([first]))
    for folders in ([first, half], [half, first]):
        merged = merged_check(merge.merge(folders))
        assert merged.drop(columns="reason").equals(single.drop(columns="reason"))
        assert set(merged["n_splits"]) == {20}


def test_a_difference_that_one_study_accepts_is_accepted(tmp_path, make_study):
    accept = [{"method": "pbp", "dataset": "boston", "metric": metric, "reason": "known"} for metric in ("rmse", "ll")]
    worse = {"splits": {"scheme": "standard"}, **of("pbp")}
    change = {"rmse": 99.0, "ll": -99.0}
    folders = [
        make_study(tmp_path / name, ["pbp"], ["boston"], 20, lock=worse | extra, change=lambda row: {**row, **change})
        for name, extra in (("a", {}), ("b", {"accept": accept}))
    ]
    checked = merged_check(merge.merge(folders))
    assert list(checked["reason"]) == ["accepted: known; published as PBP"] * 2
    assert len(published.regressions(checked)) == 0
    assert len(published.regressions(merged_check(merge.merge(folders[:1])))) == 2


def test_the_output_is_short_unless_all_is_wanted(tmp_path, make_study):
    lock = of("pbp", splits={"scheme": "standard"})
    folder = make_study(
        tmp_path / "a", ["pbp"], ["boston", "yacht"], 20, lock=lock,
        change=lambda row: row if row["dataset"] == "boston" else None,
    )  # fmt: skip
    lines, _ = check_folders([folder], (), None)
    assert not any("yacht" in line for line in lines)
    assert lines[-2] == "2 rows without a finished split are not shown; --all shows them"
    assert len(check_folders([folder], (), None, every=True)[0]) == len(lines) + 1
    summary, _ = check_folders([folder], (), None, summary=True)
    assert summary[0].split() == ["source", *published.VERDICTS]
    assert len(summary) == 3
    assert (folder / "check.csv").read_text().startswith(",".join(published.CHECK_COLUMNS) + "\n")
