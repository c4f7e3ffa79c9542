"""Several runs in one folder: each cell is computed once, and locks of a dead run are free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ep_bench.results import store
from ep_bench.runner.cell_locks import CellLocks, running
from tests.commands import ep_bench
from tests.runner.support import becomes_true

STUDY = """
study: shared
datasets: [yacht]
splits: {scheme: standard, count: %d}
methods:
  - {use: "./logging_method.py:Logged", label: logged}
"""

METHOD = """
import time
from pathlib import Path

class Logged:
    \"\"\"The constant predictor; it does not import scikit-learn, so that runs start faster.\"\"\"
    def fit(self, X, y):
        log = Path(__file__).with_name("log")
        with log.open("a") as file:
            file.write(f"{float(X.sum())!r}\\n")
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline and not (CONDITION):
            time.sleep(0.05)
        self.mean, self.std = y.mean(), y.std()
        return self
    def predict(self, X, return_std=False):
        mean = self.mean + 0.0 * X[:, 0]
        return (mean, self.std + 0.0 * mean) if return_std else mean
"""
FOR_GO = "log.with_name('go').exists()"
FOR_ANOTHER = "len(log.read_text().splitlines()) >= 2"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY % 4)
    return path


def write_method(study: Path, condition: str) -> None:
    """Write a method that logs each fit, then waits for a condition."""
    (study.parent / "logging_method.py").write_text(METHOD.replace("CONDITION", condition))


def start(study: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(study.parent / "results"), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(study: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return ep_bench("run", study, "--results", study.parent / "results", *more)


def computed(study: Path) -> list[str]:
    """Return the sum of the training inputs of each computed cell, one per fit."""
    return (study.parent / "log").read_text().splitlines()


def test_a_lock_is_exclusive_until_it_is_released(tmp_path: Path) -> None:
    with CellLocks(tmp_path) as mine, CellLocks(tmp_path) as yours:
        assert mine.take("a")
        assert mine.take("a")  # already locked
        assert not yours.take("a")
        assert yours.take("b")
        assert [run.cells for run in running(tmp_path)] == [2]  # both have the same process and start
        mine.release("a")
        assert yours.take("a")
    assert running(tmp_path) == []
    assert not list((tmp_path / "cells" / "locks").iterdir())


HOLDS = """
import sys
from pathlib import Path
from ep_bench.runner.cell_locks import CellLocks
with CellLocks(Path(sys.argv[1])) as own:
    print(sum(own.take(f"cell{i}") for i in range(500)), flush=True)
    input()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Return a process that locks as many of 500 cells as it can, and prints their number."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdin=pipe, stdout=pipe, text=True)


def test_locks_of_a_killed_run_are_free(tmp_path: Path) -> None:
    other = holder(tmp_path)
    assert other.stdout is not None
    assert other.stdout.readline() == "500\n"
    with CellLocks(tmp_path) as mine:
        assert not mine.take("cell0")
        assert [(run.pid, run.cells) for run in running(tmp_path)] == [(other.pid, 500)]
        other.kill()
        other.wait()
        assert mine.take("cell0")
        assert [(run.pid, run.cells) for run in running(tmp_path)] == [(os.getpid(), 1)]


def test_each_cell_is_locked_by_one_of_several_runs(tmp_path: Path) -> None:
    holders = [holder(tmp_path) for _ in range(3)]
    counts = [int(each.stdout.readline()) for each in holders]  # type: ignore[union-attr]
    for each in holders:
        each.communicate("\n")
    assert sum(counts) == 500


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"{}", b"[1]"])
def test_a_file_without_a_lock_is_free_whatever_its_content(content: bytes, tmp_path: Path) -> None:
    with CellLocks(tmp_path) as mine:
        (tmp_path / "cells" / "locks").mkdir(parents=True)
        (tmp_path / "cells" / "locks" / "a.lock").write_bytes(content)
        assert running(tmp_path) == []
        assert mine.take("a")


@pytest.mark.slow
def test_two_runs_share_the_cells(study: Path) -> None:
    write_method(study, FOR_ANOTHER)
    other = start(study)
    mine = run(study)
    output = other.communicate(timeout=120)[0]
    assert (mine.returncode, other.returncode) == (0, 0), mine.stderr + output
    assert len(store.read_rows(study.parent / "results" / "shared" / "results.csv")) == 4
    assert len(computed(study)) == len(set(computed(study))) == 4
    by_run = [int(text.split(" cells run")[0].split()[-1]) for text in (mine.stdout, output)]
    assert sum(by_run) == 4
    assert min(by_run) > 0


@pytest.mark.slow
@pytest.mark.exhaustive
def test_eight_runs_share_the_cells_as_in_an_array_of_jobs(study: Path) -> None:
    write_method(study, "True")
    study.write_text(STUDY.replace("[yacht]", "[yacht, {name: yacht, label: half, train_points: 100}]") % 20)
    outputs = [(each.communicate(timeout=300)[0], each.returncode) for each in [start(study) for _ in range(8)]]
    assert [code for _, code in outputs] == [0] * 8, outputs
    assert len({row["cell"] for row in store.read_intact(study.parent / "results" / "shared").rows}) == 40
    assert len(computed(study)) == len(set(computed(study))) == 40
    assert sum(int(text.split(" cells run")[0].split()[-1]) for text, _ in outputs) == 40


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_computes_the_cells_that_a_killed_run_left(study: Path) -> None:
    write_method(study, FOR_GO)
    folder = study.parent / "results" / "shared"
    first = start(study)
    assert becomes_true((study.parent / "log").exists)
    second = start(study)
    assert becomes_true(lambda: len(computed(study)) == 2)
    assert len(running(folder)) == 2
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    (study.parent / "go").touch()
    output = second.communicate(timeout=120)[0]
    assert second.returncode == 0, output
    assert len(store.read_rows(folder / "results.csv")) == 4
    assert len(computed(study)) == 5  # the cell that the kill broke, repeated
    assert len(set(computed(study))) == 4


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_waits_for_the_last_cells_of_another(study: Path) -> None:
    write_method(study, FOR_GO)
    study.write_text(STUDY % 1)
    first = start(study)
    assert becomes_true((study.parent / "log").exists)
    second = start(study)
    assert second.stdout is not None
    assert "running in another run" in second.stdout.readline()
    status = ep_bench("status", study.parent / "results" / "shared").stdout
    assert f"running: process {first.pid} on" in status
    assert "1 missing" in status
    (study.parent / "go").touch()
    output = second.communicate(timeout=60)[0]
    first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0), output
    assert len(computed(study)) == 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_failure_is_retried_by_one_of_two(study: Path) -> None:
    write_method(study, "1 / 0")
    study.write_text(STUDY % 2)
    assert run(study).returncode == 3
    other = start(study, "--retry-failed")
    mine = run(study, "--retry-failed")
    assert (mine.returncode, other.wait()) == (3, 3)
    assert 4 <= len(computed(study)) <= 6  # 2 by the first run; twice more where the second began after the first
