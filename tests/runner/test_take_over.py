"""Cells that another study below the same results folder has finished are taken over, not computed again."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from ep_bench import load_results
from ep_bench.results import curves, row_scores, store
from ep_bench.results.cell_files import write_record
from ep_bench.results.files import sole_writer
from ep_bench.runner.jobs import LOST, BasePlan
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from tests.commands import cells_in_this_process, ep_bench
from tests.runner.support import change_environment

pytestmark = pytest.mark.usefixtures("in_process")

FIRST = """
study: first
datasets: [diabetes]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: one, hidden: [5], epochs: 3}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
compare: {rows: one}
"""
SECOND = """
study: second
datasets: [diabetes]
splits: {scheme: standard, count: 3}
methods:
  - {use: pbp, label: another label, hidden: [5], epochs: 3}
compare: {rows: another label}
"""


def run(folder: Path, text: str, *words: str) -> str:
    name = text.split()[1]
    (folder / f"{name}.yaml").write_text(text)
    found = ep_bench("run", folder / f"{name}.yaml", "--results", folder / "results", *words)
    assert found.returncode == 0, found.stderr
    return str(found.stdout)


def read_plan(folder: Path, name: str = "second") -> BasePlan:
    return make_plan(read_study(folder / f"{name}.yaml"), folder / "results")


def plan(folder: Path) -> list[str]:
    return [planned.state for planned in read_plan(folder).cells]


def row_of(folder: Path, split: int) -> dict[str, object]:
    return next(row for row in store.read_study(folder).rows if row["split"] == split and row["method"] != "constant")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with cells_in_this_process():
        run(folder, FIRST, "--quiet")
    (folder / "second.yaml").write_text(SECOND)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "made"))


def test_cells_are_taken_over_with_their_provenance_curves_and_scores(folder: Path) -> None:
    change_environment(folder / "results" / "first")

    assert plan(folder) == ["elsewhere", "elsewhere", "missing"]
    printed = ep_bench("plan", folder / "second.yaml", "--results", folder / "results").stdout
    assert "elsewhere: 2 cells are finished in first; `run` takes them over" in printed
    assert "3 cells, 1 to run" in printed
    out = run(folder, SECOND)
    assert "second: 2 cells taken over from first" in out
    assert "second: 1 cells run; 3 ok" in out
    assert plan(folder) == ["done"] * 3

    second = store.read_intact(folder / "results" / "second")
    processors = {row["split"]: second.origin(row).environment["machine"]["processor"] for row in second.rows}
    assert processors[0] == processors[1] == "another" != processors[2]
    before, after = row_of(folder / "results" / "first", 0), row_of(second.folder, 0)
    assert after == before | {"study": "second", "method": "another label"}
    assert row_scores.read(second.folder).keys() == {row["cell"] for row in second.rows}
    (entry,) = curves.read(second.folder).traces
    assert (entry["method"], entry["splits"]) == ("another label", [0, 1])


def test_curves_and_scores_of_points_are_those_of_the_first_seed(folder: Path) -> None:
    second = folder / "results" / "second"
    run(folder, SECOND)
    alone = curves.read(second), row_scores.read(second)
    shutil.rmtree(second)
    out = run(folder, SECOND.replace("study: second", "study: second\nseeds: 2"))
    assert "2 cells taken over from first" in out
    assert "4 cells run; 6 ok" in out
    assert (curves.read(second), row_scores.read(second)) == alone
    assert len(load_results(second)) == 6


def test_a_second_run_changes_nothing(folder: Path) -> None:
    run(folder, SECOND)
    second = folder / "results" / "second"
    before = {path: path.read_bytes() for path in second.rglob("*") if path.is_file()}
    assert "taken over" not in run(folder, SECOND)
    assert {path: path.read_bytes() for path in second.rglob("*") if path.is_file()} == before


def test_stored_cells_alone_are_taken_over_and_none_is_run(folder: Path) -> None:
    out = run(folder, SECOND, "--stored-only")
    assert "second: 2 cells taken over from first" in out
    assert "second: 0 cells run; 2 ok, 1 missing" in out
    assert plan(folder) == ["done", "done", "missing"]
    nowhere = ep_bench("run", folder / "second.yaml", "--results", folder / "empty", "--stored-only")
    assert nowhere.returncode == 0
    assert f"no other study below {folder / 'empty'} has a finished cell of second" in nowhere.stderr


def test_only_selected_cells_are_taken_over(folder: Path) -> None:
    run(folder, SECOND, "--select", "split=1")
    assert plan(folder) == ["elsewhere", "done", "missing"]


def test_an_altered_row_is_not_taken_over(folder: Path) -> None:
    shutil.rmtree(folder / "results" / "first" / "cells")
    path = folder / "results" / "first" / store.RESULTS
    row = row_of(path.parent, 1)
    path.write_text(path.read_text().replace(f",{row['rmse']},", ",50.0,"))
    assert plan(folder) == ["elsewhere", "missing", "missing"]


def give_status(first: Path, status: str, reason: str) -> None:
    """Replace the status of all rows of a folder."""
    finished, lock = store.finished_rows(first), store.read_lock(first)
    assert lock is not None
    for row in finished.rows.values():
        row |= {"status": status, "reason": reason}
    shutil.rmtree(first / "cells")
    store.write_lock(first, {**lock, **finished.lock_entries(finished.rows.keys())})
    store.export(first, finished)


def test_a_failed_row_is_not_taken_over(folder: Path) -> None:
    give_status(folder / "results" / "first", "failed", "diverged")
    assert plan(folder) == ["missing"] * 3
    assert "second: 3 cells run; 3 ok" in run(folder, SECOND)


@pytest.mark.parametrize(
    ("status", "reason", "taken"), [("failed", "diverged", 2), ("timeout", "over 3 s", 0), ("failed", LOST, 0)]
)
def test_failures_of_methods_are_taken_over_if_no_cell_runs(folder: Path, status: str, reason: str, taken: int) -> None:
    give_status(folder / "results" / "first", status, reason)
    assert ("2 failed, 1 missing" in run(folder, SECOND, "--stored-only")) == (taken == 2)
    rows = store.read_study(folder / "results" / "second").rows
    assert [(row["method"], row["reason"]) for row in rows] == [("another label", reason)] * taken
    assert plan(folder) == ["failed"] * taken + ["missing"] * (3 - taken)
    assert "3 ok" in run(folder, SECOND, "--retry-failed")


def test_a_cell_that_two_folders_have_is_taken_over_once(folder: Path) -> None:
    run(folder, FIRST.replace("study: first", "study: also"), "--quiet")
    assert run(folder, SECOND).count("taken over") == 1


def test_the_estimate_uses_the_times_of_other_folders(folder: Path) -> None:
    row = row_of(folder / "results" / "first", 0)
    estimate = read_plan(folder).cells[2].job.estimate
    assert estimate is not None
    assert 0 < estimate < 10 * (row["fit_seconds"] + row["predict_seconds"])  # type: ignore[operator]


@pytest.mark.parametrize("with_cell_files", [True, False])
def test_a_run_that_began_earlier_keeps_the_rows_of_another_run(folder: Path, with_cell_files: bool) -> None:
    """Also those that have no cell files, such as rows that version control brings."""
    earlier = read_plan(folder)
    run(folder, SECOND)
    if not with_cell_files:
        shutil.rmtree(earlier.folder / store.CELLS)
    earlier.save(with_curves=False)
    assert len(store.read_intact(earlier.folder).rows) == 3


def test_a_lock_file_is_written_after_the_export_of_another_run(folder: Path) -> None:
    """Otherwise the export would write the plan that it has read before."""
    first = folder / "results" / "first"
    (folder / "first.yaml").write_text(FIRST.replace("label: constant", "label: mean"))
    whole = read_plan(folder, "first")
    with sole_writer(first):
        later = threading.Thread(target=whole.begin, args=([],))
        later.start()
        time.sleep(0.3)
        assert "mean" not in (first / store.LOCK).read_text()
    later.join()
    assert "mean" in (first / store.LOCK).read_text()


def test_scores_of_single_points_come_from_cell_files_if_the_other_study_compares_none(folder: Path) -> None:
    shutil.rmtree(folder / "results" / "first")
    run(folder, FIRST.replace("study: first", "study: plain").replace("compare: {rows: one}", ""), "--quiet")
    assert "2 cells taken over from plain" in run(folder, SECOND)
    assert len(row_scores.read(folder / "results" / "second")) == 3


def test_cell_files_that_differ_from_the_table_are_not_taken_over(folder: Path) -> None:
    table = row_of(folder / "results" / "first", 0)
    record = store.read_record(folder / "results" / "first" / store.CELLS / f"{table['cell']}.json")
    assert record is not None
    record.row["rmse"] *= 2.0
    write_record(folder / "results" / "first", record)
    assert "2 cells taken over from first" in run(folder, SECOND)
    assert row_of(folder / "results" / "second", 0)["rmse"] == table["rmse"]


def test_classes_in_files_are_not_taken_over(folder: Path) -> None:
    """Two files may have the same name and declare the same version."""
    for name, shift in (("a", 1), ("b", 2)):
        (folder / name).mkdir()
        (folder / name / "m.py").write_text(
            "from ep_bench.baselines import ConstantRegressor\n"
            f"class M(ConstantRegressor):\n    version = 1\n    def fit(self, X, y):\n"
            f"        return super().fit(X, y + {shift})\n"
        )
        text = f"study: s{name}\ndatasets: [diabetes]\nsplits: {{scheme: standard, count: 1}}\nmethods: ['./m.py:M']\n"
        (folder / name / "s.yaml").write_text(text)
        assert ep_bench("run", folder / name / "s.yaml", "--results", folder / "results", "--quiet").returncode == 0
    rmse = [store.read_intact(folder / "results" / f"s{name}").rows[0]["rmse"] for name in "ab"]
    assert rmse[0] != rmse[1]


def test_a_damaged_table_is_kept_by_a_run(folder: Path) -> None:
    first = folder / "results" / "first"
    shutil.rmtree(first / "cells")
    path = first / store.RESULTS
    row = row_of(first, 1)
    path.write_text(path.read_text().replace(f",{row['rmse']},", ",50.0,"))
    damaged = path.read_text()
    run(folder, FIRST, "--quiet")
    assert (first / store.DAMAGED).read_text() == damaged
    assert row_of(first, 1)["rmse"] == row["rmse"]
