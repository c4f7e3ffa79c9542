"""Published numbers of merged studies count once."""

from __future__ import annotations

import errno
import re

import pytest

from ep_bench import published
from ep_bench.cli.output import check as check_output
from ep_bench.report import merge
from ep_bench.report.published_checks import merged_check
from ep_bench.results import store
from tests.commands import lines_of


def check_folders(*words, **options):
    """Return the printed lines of a check, and whether nothing is worse."""
    items, fine = check_output.check_folders(*words, **options)
    return lines_of(items), fine


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


def test_accepted_differences_are_named_as_such_and_not_as_reproduced(tmp_path, make_study):
    accept = [{"method": "pbp", "dataset": "boston", "metric": "rmse", "reason": "known"}]
    change = {"rmse": 99.0, "ll": -99.0}
    for name, accepted, words in (
        ("none", [], "2 worse"),
        ("one", accept, "2 worse (1 of them accepted with a reason)"),
        ("both", [*accept, accept[0] | {"metric": "ll"}], "2 worse (accepted with a reason)"),
    ):
        lock = of("pbp", splits={"scheme": "standard"}, accept=accepted)
        folder = make_study(tmp_path / name, ["pbp"], ["boston"], 20, lock=lock, change=lambda row: row | change)
        lines, fine = check_folders([folder], (), None)
        assert lines[-1] == f"2 published numbers: {words} -> {folder / 'check.csv'}"
        assert fine is (name == "both")


def test_a_merged_check_leaves_the_files_of_each_folder(tmp_path, make_study):
    lock = of("pbp", splits={"scheme": "standard"})
    folders = [make_study(tmp_path / name, ["pbp"], [name], 20, lock=lock) for name in ("boston", "yacht")]
    check_folders(folders[:1], (), None)
    before = (folders[0] / "check.csv").read_bytes()
    lines, _ = check_folders(folders, (), None)
    assert lines[-1] == "No file written for several folders; --out DIR writes check.csv and claims.csv."
    assert (folders[0] / "check.csv").read_bytes() == before
    assert not (folders[1] / "check.csv").exists()
    lines, _ = check_folders(folders, (), tmp_path / "out")
    assert lines[-1].endswith(f" -> {tmp_path / 'out' / 'check.csv'}")
    assert (tmp_path / "out" / "check.csv").read_text().count("\n") == 5
    check_folders([folders[1], folders[1]], (), None)  # one folder, named twice
    assert (folders[1] / "check.csv").exists()


def test_the_reason_has_the_counts_of_converged_splits(tmp_path, make_study):
    def change(row):
        if row["split"] < 3:
            return row | {"reason": "not converged: sweep limit"}
        return row | ({"r_hat": 1.03} if row["split"] < 8 else {})

    folder = make_study(
        tmp_path / "a", ["pbp"], ["boston"], 20, lock=of("pbp", splits={"scheme": "standard"}), change=change
    )
    counts = "0 of 8 converged, 5 nearly, 3 not"
    assert set(merged_check(merge.merge([folder]))["reason"]) == {f"published as PBP; {counts}"}


def test_the_output_is_short_and_the_file_complete(tmp_path, make_study):
    lock = of("pbp", splits={"scheme": "standard"})
    folder = make_study(
        tmp_path / "a", ["pbp"], ["boston", "yacht"], 20, lock=lock,
        change=lambda row: row if row["dataset"] == "boston" else None,
    )  # fmt: skip
    lines, _ = check_folders([folder], (), None)
    assert not any("yacht" in line for line in lines)
    assert lines[-2] == "2 rows without a finished split are not shown; check.csv has them"
    assert (folder / "check.csv").read_text().count("yacht") == 2
    summary, _ = check_folders([folder], (), None, summary=True)
    assert summary[0].split() == ["source", *published.VERDICTS]
    assert len(summary) == 3
    assert (folder / "check.csv").read_text().startswith(",".join(published.CHECK_COLUMNS) + "\n")


def test_cells_that_did_not_end_ok_are_a_warning(tmp_path, make_study):
    def change(row):
        return row if row["split"] else {**row, "status": "timeout"}

    folder = make_study(
        tmp_path / "a", ["pbp"], ["boston"], 20, lock=of("pbp", splits={"scheme": "standard"}), change=change
    )
    lines, _ = check_folders([folder], (), None)
    assert lines[-1].endswith("1 of 20 cells did not end ok and are not compared: 1 timeout")


def test_a_quoted_number_that_is_worse_is_shown_and_counts_for_the_exit_status(tmp_path, make_study, monkeypatch):
    lock = of("pbp", splits={"scheme": "standard"})
    lock["methods"]["pbp"]["published"] = ["PBP", "PBP-1"]
    folder = make_study(tmp_path / "a", ["pbp"], ["boston"], 20, lock=lock)
    frame = merged_check(merge.merge([folder]))
    quoted = frame["repeats"].ne("")
    assert quoted.any()
    for worse in (quoted, ~quoted):
        changed = frame.assign(verdict=frame["verdict"].mask(worse, "worse").mask(~worse, "reproduced"))
        monkeypatch.setattr(check_output, "merged_check", lambda *_, changed=changed: changed)
        lines, fine = check_folders([folder], (), None)
        assert not fine
        shown = [line for line in lines if re.search(r"\bworse\b", line) and "boston" in line]
        assert len(shown) == int(worse.sum())


def test_altered_data_files_are_noted(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ["PBP"], ["boston"], splits=20)
    lock = store.read_lock(folder)
    lock["datasets"]["boston"]["altered_file"] = True
    store.write_lock(folder, lock)
    lines, fine = check_folders([folder], (), None)
    assert fine
    assert any(line.startswith(f"note: {folder}: the file of boston does not match the card") for line in lines)


def test_a_folder_that_is_not_writable_is_compared(tmp_path, make_study, monkeypatch):
    folder = make_study(tmp_path / "a", ["pbp"], ["boston"], 20, lock=of("pbp", splits={"scheme": "standard"}))
    whole, _ = check_folders([folder], (), tmp_path / "out")

    def refuse(path, _):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(store, "write_atomically", refuse)
    lines, _ = check_folders([folder], (), None)
    assert lines[:2] == whole[:2]
    reason = "is not written: Read-only file system; --out DIR writes check.csv and claims.csv elsewhere"
    assert lines[-1] == f"{folder / 'check.csv'} {reason}"
    with pytest.raises(OSError, match="Read-only"):
        check_folders([folder], (), tmp_path / "out")
