"""Real faults of disk and data: a clear message, finished cells are kept, damaged files are ignored."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.results import store
from ep_bench.runner.plan import make_plan
from ep_bench.runner.run import PeriodicExport, RunOptions, run_plan
from ep_bench.spec import read_study
from ep_bench.types import Record
from tests.commands import ep_bench
from tests.runner.support import becomes_true, scores, scores_in

pytestmark = pytest.mark.usefixtures("in_process")

STUDY = """
study: faults
datasets: [diabetes, friedman1]
methods: ["ep_bench.baselines:ConstantRegressor"]
"""
CELLS = 40


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of results of a run without faults."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.yaml").write_text(STUDY)
    assert run(folder / "study.yaml", folder).returncode == 0
    return folder / "faults"


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Path:
    """Return a folder with a copy of these results."""
    shutil.copytree(finished, tmp_path / "results" / "faults")
    return tmp_path / "results"


def run(study: Path, results: Path) -> subprocess.CompletedProcess[str]:
    return ep_bench("run", study, "--results", results)


def mount(folder: Path, *options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode != 0:
        pytest.skip("file systems cannot be mounted here")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "size=160k")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cells").glob("*.json")}


@pytest.mark.slow
def test_a_full_disk(study: Path, small_disk: Path) -> None:
    full = run(study, small_disk)
    assert full.returncode == 2
    assert "No space left on device" in full.stderr
    assert "every stored cell is kept" in full.stderr
    assert "Traceback" not in full.stderr
    before = stored(small_disk / "faults")
    assert 0 < len(before) < CELLS
    assert len(list(store.each_record(small_disk / "faults", []))) == len(before)
    assert not list((small_disk / "faults" / "cells").glob("*.tmp"))
    subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
    more = run(study, small_disk)
    assert more.returncode == 0, more.stderr
    assert f"{CELLS - len(before)} cells run" in more.stdout
    assert before.items() <= stored(small_disk / "faults").items()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_limit_on_the_size_of_files(study: Path, tmp_path: Path) -> None:
    """The cell files fit, results.csv does not: the cells are kept, and the table is written by the next run."""
    results = tmp_path / "results"
    limited = subprocess.run(
        [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(results)],
        capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000)),
    )  # fmt: skip
    assert limited.returncode == 2
    assert "File too large" in limited.stderr
    assert "Traceback" not in limited.stderr
    kept = stored(results / "faults")
    assert len(kept) == CELLS
    assert not (results / "faults" / "results.csv").exists()
    again = run(study, results)
    assert again.returncode == 0
    assert "0 cells run" in again.stdout
    assert stored(results / "faults") == kept
    assert len(store.read_rows(results / "faults" / "results.csv")) == CELLS


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_read_only_folder(study: Path, small_disk: Path, finished: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
    shutil.copytree(finished, small_disk / "faults")
    study.write_text(STUDY.replace("friedman1", "friedman2"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused = run(study, small_disk)
    assert refused.returncode == 2
    assert "not writable: Read-only file system" in refused.stderr
    assert [line.partition(":")[0] for line in refused.stderr.splitlines()] == ["warning", "ep-bench"]
    assert ep_bench("status", small_disk / "faults").returncode == 0
    report = ep_bench("report", small_disk / "faults", "--out", study.parent / "report")
    assert report.returncode == 0, report.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(study: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir(mode=0o500)
    refused = run(study, results)
    assert refused.returncode == 2
    assert "Permission denied" in refused.stderr


def test_damaged_cell_files_are_computed_again(study: Path, results: Path) -> None:
    folder = results / "faults"
    good, rows = stored(folder), store.read_rows(folder / "results.csv")
    paths = sorted((folder / "cells").glob("*.json"))
    for path, length in zip(paths, (0, 20, -9), strict=False):
        path.write_bytes(path.read_bytes()[:length])
    (folder / "results.csv").unlink()  # otherwise its rows are used, as in a fresh clone
    status = ep_bench("status", folder)
    assert "37 ok, 3 missing" in status.stdout
    assert "3 cell files are damaged and ignored" in status.stdout
    again = run(study, results)
    assert (again.returncode, "3 cells run" in again.stdout) == (0, True)
    assert f"ignored: {paths[0]}" in again.stderr
    untouched = {path.name for path in paths[3:]}
    assert {name: stored(folder)[name] for name in untouched} == {name: good[name] for name in untouched}
    assert scores_in(folder) == list(map(scores, rows))


@pytest.mark.parametrize("name", ["study.lock.json", "cell"])
def test_a_folder_of_a_newer_version_is_left_alone(study: Path, results: Path, name: str) -> None:
    folder = results / "faults"
    path = folder / name if name != "cell" else sorted((folder / "cells").glob("*.json"))[3]
    path.write_text(path.read_text().replace('"format": 2', '"format": 99', 1))
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    refused = run(study, results)
    assert refused.returncode == 2
    assert "written by a newer version of ep-bench (format 99" in refused.stderr
    assert str(path) in refused.stderr
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_an_interrupt_just_after_a_cell_is_stored(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """results.csv has all stored cells, whenever the signal arrives."""
    written = store.write_record

    def write_then_interrupt(folder: Path, record: Record) -> None:
        written(folder, record)
        if len(store.stamps(folder)) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "write_record", write_then_interrupt)
    plan = make_plan(read_study(study), study.parent / "results")
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, RunOptions(quiet=True))
    assert {row["cell"] for row in store.read_rows(plan.folder / "results.csv")} == store.stamps(plan.folder).keys()


def test_results_are_written_while_cells_are_running(study: Path, finished: Path, tmp_path: Path) -> None:
    """A cell file that appears, from this run or from another one, is in the table and the lock file soon after."""
    plan = make_plan(read_study(study), tmp_path / "results")
    store.write_lock(plan.folder, plan.lock())
    (plan.folder / "cells").mkdir()
    with PeriodicExport(plan, interval=0.01):
        for path in sorted((finished / "cells").glob("*.json"))[:3]:
            shutil.copy(path, plan.folder / "cells" / path.name)
            assert becomes_true(
                lambda key=path.stem: key in {row["cell"] for row in store.read_rows(plan.folder / store.RESULTS)}
            )
    assert len(store.finished_rows(plan.folder).rows) == 3
    shutil.rmtree(plan.folder / "cells")
    assert len(store.read_intact(plan.folder).rows) == 3


def test_an_edited_table_is_refused_until_its_cells_are_run_again(study: Path, results: Path) -> None:
    """A fresh clone: there are no cell files."""
    folder = results / "faults"
    shutil.rmtree(folder / "cells")
    rows = store.read_rows(folder / "results.csv")
    place = f"{rows[7]['method']} on {rows[7]['dataset']}, split {rows[7]['split']}"
    store.write_rows(folder / "results.csv", [*rows[:7], rows[7] | {"rmse": 0.5}, *rows[8:20], *rows[23:]])
    for command in ("report", "check"):
        refused = ep_bench(command, folder)
        assert refused.returncode == 2
        assert "4 rows were altered or removed after the run" in refused.stderr
        assert place in refused.stderr
    shown = ep_bench("status", folder).stdout
    assert shown.count("altered or removed after the run: ") == 4
    assert place in shown
    assert "4 rows were altered" in ep_bench("plan", study, "--results", results).stderr
    assert "4 cells run" in run(study, results).stdout
    assert scores_in(folder) == list(map(scores, rows))
    assert ep_bench("report", folder).returncode == 0
